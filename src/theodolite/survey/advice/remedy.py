"""A remedy: the rules that it answers, and the code that it writes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..records.finding import AdviceKind, Finding
from ..records.whole_survey import Survey

Writer = Callable[[Survey, Finding], str | None]
# Code that runs the model once; better with all batches of the training set.
RUN = """\
args = inputs if isinstance(inputs, tuple) else (inputs,)
with torch.no_grad():
    model(**inputs) if isinstance(inputs, dict) else model(*args)
"""


@dataclass(frozen=True)
class Remedy:
    """Writes code that answers findings of some rules.

    Attributes:
        kind: What is changed.
        title: One line.
        write: Returns the code for a finding, or None if the remedy does not apply.
            It quotes names by ``repr``, so that no module name can become code.
        rules: Rules whose findings it answers.
    """

    kind: AdviceKind
    title: str
    write: Writer
    rules: tuple[str, ...]


REMEDIES: list[Remedy] = []
# In place of a rule: of a remedy for a training whose fault is not known.
ANY = "any-training"


def remedy(kind: AdviceKind, title: str, *rules: str) -> Callable[[Writer], Writer]:
    """Add a function that writes code to the remedies of some rules."""

    def add(write: Writer) -> Writer:
        REMEDIES.append(Remedy(kind, title, write, rules))
        return write

    return add


def operated(survey: Survey, call: str) -> str:
    """Return the code of a surgery, and code that gives the optimiser the new model.

    Args:
        survey: The survey, which says whether there is an optimiser.
        call: The call after ``surgery.``; it may use ``before`` and ``inputs``.
    """
    return (
        "from theodolite import surgery\n"
        "before = model\n"
        f"model = surgery.{call}.model\n"
        f"{refitted(survey)}"
    )


def refitted(survey: Survey) -> str:
    """Return code that moves the optimiser to an altered model, if there is one."""
    if not survey.settings.get("optimizer"):
        return ""
    return (
        "from theodolite.survey import refit\n"
        "optimizer = refit(optimizer, before, model)\n"
    )


def enlisted(survey: Survey) -> str:
    """Return code that gives the optimiser, if there is one, what it lacks."""
    if not survey.settings.get("optimizer"):
        return ""
    return (
        'known = {id(p) for g in optimizer.param_groups for p in g["params"]}\n'
        "new = [p for p in model.parameters() if id(p) not in known]\n"
        'optimizer.add_param_group({"params": new})\n'
    )


def within(survey: Survey) -> str:
    """Return code that lets ``calls`` act in a loss and a step as well."""
    given = [n for n in ("loss", "step") if n in survey.settings.get("given", ())]
    return "".join(f"{name} = calls.inside({name})\n" for name in given)


def trained(survey: Survey, within: Sequence[str] | None = None) -> list[str]:
    """Return the modules that own trained parameters, in order of the model.

    Frozen ones, those that the loss does not reach and those that the optimiser does
    not hold, such as the other half of a GAN, are left out.

    Args:
        survey: The survey.
        within: Blocks or modules to look in; None for the whole model.
    """
    left = {row["module"] for row in survey.find("left_out")}
    names = [row["module"] for row in survey.find("gradient_rms")]
    names = [name for name in names if name not in left]
    if within is None:
        return names
    paths = list(dict.fromkeys(path.split("#")[0] for path in within))
    if not survey.find("gradient_rms"):  # which was not measured
        return paths
    return [n for n in names if any(n == p or n.startswith(f"{p}.") for p in paths)]
