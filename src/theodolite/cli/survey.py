"""Commands that survey and compare networks; heavy imports happen on use."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Trust, require_trust
from .output import escape_logs, print_error, print_json, print_text

if TYPE_CHECKING:
    from theodolite.survey import ApprovedSpec, Subject, Survey

Data = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|DIR|FILE.npz", help="Samples; made up by default, and said so."
    ),
]
LossName = Annotated[
    str | None,
    typer.Option(
        help="cross-entropy, mse, … or package.module:function or file.py:function."
    ),
]
Effort = Annotated[
    str,
    typer.Option(help="quick, normal, thorough, or a number of gradients of a batch."),
]
TimeLimit = Annotated[
    str | None, typer.Option(help="Abort after this time, such as 30s, 10min, 1h.")
]
Html = Annotated[Path | None, typer.Option(help="Write a page to this file.")]
JsonFile = Annotated[
    Path | None, typer.Option("--json", help="Write JSON to this file, - to print it.")
]
Shape = Annotated[
    str | None, typer.Option(help="Shape of one made-up sample, such as 3,32,32.")
]
BatchSize = Annotated[int | None, typer.Option(help="Samples per batch.")]
NBatches = Annotated[int, typer.Option("--batches", help="Number of batches.")]
NormMode = Annotated[
    str,
    typer.Option(help="Statistics that norms use: as_is, batch, eval, full or frozen."),
]
Seed = Annotated[int, typer.Option(help="Of weights and made-up samples.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:0 …")]
Measures = Annotated[
    str | None, typer.Option(help="Only these measures, by commas; all by default.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULE",
        help="Leave out findings of this rule; repeat it, or name several by commas.",
    ),
]
Full = Annotated[
    bool, typer.Option("--full", help="Print all that was found, not one screen.")
]
FailOn = Annotated[
    str | None,
    typer.Option(help="sick, warning or note: exit with 3 at such a finding or worse."),
]
Optimizer = Annotated[
    str | None, typer.Option(help="In use, such as sgd:lr=0.1,momentum=0.9.")
]


def survey(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC",
            help="package.module:callable(args) or file.py:callable(args).",
        ),
    ],
    data: Data = None,
    loss: LossName = None,
    weights: Annotated[
        Path | None, typer.Option(help="A state dict, saved by torch.save.")
    ] = None,
    effort: Effort = "normal",
    time_limit: TimeLimit = None,
    html: Html = None,
    to_json: JsonFile = None,
    tries: Annotated[
        bool,
        typer.Option("--try/--no-try", help="Repair copies, and try advice on them."),
    ] = True,
    optimizer: Optimizer = None,
    norm_mode: NormMode = "as_is",
    measures: Measures = None,
    ignore: Ignore = None,
    fail_on: FailOn = None,
    full: Full = False,
    shape: Shape = None,
    batch_size: BatchSize = None,
    batches: NBatches = 4,
    seed: Seed = 0,
    device: Device = None,
    trust: Trust = False,
) -> None:
    """Find out why a network does not train, and print the repair."""
    _check_files(html, to_json)
    failing = _severities(fail_on)
    ignored = _names(",".join(ignore), "ignore") if ignore else ()
    escape_logs()
    with _stopped_in_a_sentence():
        from theodolite.survey import subject_of

        model = _approved(spec, trust=trust)
        chosen = loss and _approved(loss, trust=trust)
        subject = subject_of(
            model, data=data, loss=chosen, weights=weights, shape=_shape(shape),
            batch_size=batch_size, n_batches=batches, seed=seed, device=device,
        )  # fmt: skip
        result = _surveyed(
            subject, optimizer, effort=effort, time_limit=time_limit,
            norm_mode=norm_mode, seed=seed,
            measures=_names(measures), ignore=ignored,
            **({} if tries else {"tries": False}),
        )  # fmt: skip
    _write_result(result, html, to_json, full=full)
    if _is_interrupted(result):
        print_error("stopped; what was measured until then is shown")
        raise typer.Exit(130)
    if result.incomplete:
        print_error(f"incomplete: {result.outcome(result.incomplete[0]).reason}")
        raise typer.Exit(124)  # as the command timeout does
    _refuse_empty(result)
    if any(finding.severity in failing for finding in result.findings):
        raise typer.Exit(3)


def compare(
    before: Annotated[
        str, typer.Argument(metavar="SPEC", help="A network, or SURVEY.json.")
    ],
    after: Annotated[
        str, typer.Argument(metavar="SPEC", help="Another, or SURVEY.json.")
    ],
    data: Data = None,
    loss: LossName = None,
    effort: Effort = "normal",
    time_limit: TimeLimit = None,
    to_json: JsonFile = None,
    optimizer: Optimizer = None,
    norm_mode: NormMode = "as_is",
    measures: Measures = None,
    shape: Shape = None,
    batch_size: BatchSize = None,
    batches: NBatches = 4,
    seed: Seed = 0,
    device: Device = None,
    trust: Trust = False,
) -> None:
    """Compare two networks, or two saved surveys.

    Both are surveyed with the same settings; effort and time limit are for each.
    """
    _check_files(None, to_json)
    escape_logs()
    with _stopped_in_a_sentence():
        from theodolite.survey import Survey, subject_of
        from theodolite.survey import compare as side_by_side

        models = [
            one if _is_saved(one) else _approved(one, trust=trust)
            for one in (before, after)
        ]
        chosen = loss and _approved(loss, trust=trust)
        # Both are read before the first takes its time.
        made = [
            Survey.from_json(model)
            if isinstance(model, str)
            else subject_of(
                model, data=data, loss=chosen, shape=_shape(shape), seed=seed,
                batch_size=batch_size, n_batches=batches, device=device,
            )
            for model in models
        ]  # fmt: skip
        surveys = [
            one
            if isinstance(one, Survey)
            else _complete(
                _surveyed(
                    one, optimizer, effort=effort, time_limit=time_limit,
            norm_mode=norm_mode, seed=seed,
                    measures=_names(measures),
                )
            )
            for one in made
        ]  # fmt: skip
    _write_result(side_by_side(*surveys), None, to_json)


@contextmanager
def _stopped_in_a_sentence() -> Iterator[None]:
    """Turn Ctrl-C into a sentence and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        print_error("stopped before there was anything to show: run the command again")
        raise typer.Exit(130) from None


def _is_interrupted(result: "Survey") -> bool:
    return any(one.status == "interrupted" for one in result.measured)


def _complete(result: "Survey") -> "Survey":
    """Return a complete survey; raise KeyboardInterrupt for an interrupted one."""
    if _is_interrupted(result):
        raise KeyboardInterrupt
    _refuse_empty(result)
    return result


def _refuse_empty(result: "Survey") -> None:
    """Refuse a survey without any number, with the reason of its first measure."""
    if why := result.why_empty:
        from theodolite.core import SubjectError

        raise SubjectError(f"nothing was measured of {result.title}: {why}")


def _is_saved(spec: str) -> bool:
    return spec.strip().endswith(".json")


def _approved(text: str, *, trust: bool) -> "ApprovedSpec":
    """Ask the user to approve the code that a SPEC names, before any of it runs."""
    from theodolite.survey import approve

    return approve(text, trust=trust, ask=partial(require_trust, trust=trust))


def _surveyed(subject: "Subject", optimizer: str | None, **settings: Any) -> "Survey":
    import theodolite.survey
    from theodolite.survey import optimizer_of

    given = optimizer is not None
    chosen = optimizer_of(optimizer, subject.model) if given else None
    return theodolite.survey.survey(
        subject, optimizer=chosen, progress=sys.stderr.isatty(), **settings
    )


def _shape(text: str | None) -> tuple[int, ...] | None:
    """Read a shape such as ``3,32,32`` or ``3x32x32``."""
    if text is None:
        return None
    with suppress(ValueError):
        sizes = tuple(int(part) for part in text.lower().replace("x", ",").split(","))
        if min(sizes) > 0:
            return sizes
    from theodolite.core import ConfigError

    raise ConfigError(
        f"--shape {text!r} is no shape: pass whole numbers above 0, such as 3,32,32"
    )


def _severities(worst: str | None) -> tuple[str, ...]:
    """Return a severity and all that are worse, none for None."""
    from theodolite.core import unknown_name

    known = ("sick", "warning", "note")
    if worst is not None and worst not in known:
        raise unknown_name("severity", worst, known)
    return () if worst is None else known[: known.index(worst) + 1]


def _names(text: str | None, option: str = "measures") -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        from theodolite.core import ConfigError

        raise ConfigError(
            f"--{option} {text!r} names none: pass some, by commas, or leave it out"
        )
    return names


def _check_files(html: Path | None, to_json: Path | None) -> None:
    """Refuse files that cannot be written, before the survey starts."""
    from theodolite.core import ConfigError

    if html is not None and html == to_json:
        raise ConfigError(f"--html and --json both name {html}: pass two files")
    for path in (html, to_json):
        if path is not None and str(path) != "-" and (why := _why_not_writable(path)):
            raise ConfigError(
                f"{path} cannot be written, since {why}: pass the path of a file in a "
                "folder that is yours to write to"
            )


def _why_not_writable(path: Path) -> str:
    """Return why a file cannot be written, empty if it can."""
    if path.is_dir():
        return "it is a folder"
    # Devices, pipes and open files are written through, others put in their folder.
    stream = path.is_symlink() and path.absolute().parts[1] in ("dev", "proc")
    if stream or (path.exists() and not path.is_file()):
        return ""
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        return "its folder is not there"
    own = os.access in os.supports_effective_ids
    if os.access(folder, os.W_OK, effective_ids=own):
        return ""
    return "its folder may not be written to"


def _write_result(
    result: Any, html: Path | None, to_json: Path | None, *, full: bool = False
) -> None:
    if str(to_json) == "-":
        print_json(result.to_dict())
    else:
        print_text(result.text(full=True) if full else str(result))
    if to_json is not None and str(to_json) != "-":
        result.to_json(to_json)
        print_error(f"wrote {to_json}")
    if html is not None:
        result.to_html(html)
        print_error(f"wrote {html}")
