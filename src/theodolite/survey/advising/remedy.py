"""What a remedy is: a rule that it answers and the code that it writes."""

from collections.abc import Callable
from dataclasses import dataclass

from theodolite.survey.records.finding import AdviceKind, Finding
from theodolite.survey.records.whole_survey import Survey


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A way to answer findings of some rules.

    Attributes:
        rules: Rules whose findings it answers.
        kind: What is changed.
        title: One line.
        write: The code for a finding in a survey, None where it does not apply. Names
            are quoted by ``repr``, so that no name of a module can become code.
    """

    rules: tuple[str, ...]
    kind: AdviceKind
    title: str
    write: Callable[[Survey, Finding], str | None]


def operated(*calls: str) -> str:
    """Return the lines of surgeries, after which the optimiser moves the new model.

    Args:
        calls: What follows ``surgery.``: the first of ``before`` and ``inputs``,
            others of ``model`` and ``inputs``.
    """
    return (
        "from theodolite import surgery\n"
        "from theodolite.survey import refit\n"
        "before = model\n"
        + "".join(f"model = surgery.{call}.model\n" for call in calls)
        + "optimiser = refit(optimiser, before, model)\n"
    )
