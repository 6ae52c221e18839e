"""Compare two networks, or two surveys that were made before."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from theodolite.core import ConfigError

from ..records.finding import with_symptoms
from ..records.whole_survey import Survey
from .comparison import Comparison
from .differences import differences_of, match_blocks

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from ..subject.subject import Subject as Prepared

    Subject = Survey | nn.Module | Prepared
else:
    Subject = Any


def compare(
    before: Subject,
    after: Subject,
    batches: Any = None,
    *,
    optimizers: "tuple[Optimizer, Optimizer] | None" = None,
    seed: int = 0,
    **settings: Any,
) -> Comparison:
    """Compare two models, or two surveys.

    Models are surveyed first, both with the same batches, seed and effort.

    Args:
        before: A survey, or a model (or a subject from ``subject_of``).
        after: The other survey or model.
        batches: Batches to survey models on; surveys need none.
        optimizers: The optimiser of each model.
        seed: Seed of all random numbers in the surveys.
        settings: Further arguments of :func:`theodolite.survey.survey`, such as
            ``loss`` and ``effort``.

    Returns:
        Differences of all numbers that both have, with intervals, and the findings
        that are gone, new and kept. Numbers on different sample counts, in different
        norm modes, or of which only one converged, are not compared;
        ``not_compared`` lists them.

    Raises:
        ConfigError: One is a survey and the other is not, or one optimiser was given.
    """
    if isinstance(before, Survey) and isinstance(after, Survey):
        if batches is not None or settings:
            given = ["batches"] * (batches is not None) + sorted(settings)
            raise ConfigError(
                f"{', '.join(given)} was given with two surveys, which are made "
                "already: leave it out, or pass two models"
            )
        return compare_surveys(before, after)
    if isinstance(before, Survey) or isinstance(after, Survey):
        kinds = f"{type(before).__name__} and {type(after).__name__}"
        raise ConfigError(
            f"{kinds} cannot be compared: pass two surveys, or two models and batches"
        )
    if "optimizer" in settings:
        raise ConfigError(
            "one optimiser was given, which moves the weights of one network: pass "
            "optimizers=(of the first, of the second)"
        )
    from theodolite.instruments import read_batches

    from ..run.surveying import survey

    # Otherwise a shuffling loader would give each network different samples.
    same = None if batches is None else read_batches(batches)
    same = list(same) if isinstance(same, tuple) else same
    one, other = optimizers or (None, None)
    settings = {"tries": False, **settings}  # of which a comparison shows nothing
    first = survey(before, same, optimizer=one, seed=seed, **settings)
    second = survey(after, same, optimizer=other, seed=seed, **settings)
    return compare_surveys(first, second)


def compare_surveys(before: Survey, after: Survey) -> Comparison:
    """Compare two surveys."""
    pairs = match_blocks(before.blocks, after.blocks)
    differences, refused = differences_of(before.rows(), after.rows(), pairs)
    old = {one.rule for one in with_symptoms(before.findings)}
    now = {one.rule for one in with_symptoms(after.findings)}
    return Comparison(
        before=before,
        after=after,
        pairs=pairs,
        differences=differences,
        gone=tuple(one for one in before.findings if one.rule not in now),
        new=tuple(one for one in after.findings if one.rule not in old),
        kept=tuple(one for one in after.findings if one.rule in old),
        caveats=tuple(_caveats(before, after)),
        not_compared=refused,
    )


def _caveats(before: Survey, after: Survey) -> Iterator[str]:
    for name, one, other in (
        ("seed", before.seed, after.seed),
        ("inputs", before.inputs, after.inputs),
        ("loss", before.settings.get("loss"), after.settings.get("loss")),
    ):
        if one != other:
            yield (
                f"The {name} of the two differ ({one or 'none'}; {other or 'none'}): "
                "part of a difference may come from that."
            )
    short = [
        each.measure
        for each in before.measured
        for other in after.measured
        if each.measure == other.measure
        and (each.status == "done") != (other.status == "done")
    ]
    if short:
        yield (
            f"Only one of the two was measured in full by {', '.join(short)}: survey "
            "both with the effort that it takes."
        )
