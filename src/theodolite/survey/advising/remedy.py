"""A remedy: the rules that it answers, and the code that it writes."""

from collections.abc import Callable
from dataclasses import dataclass

from ..records.finding import AdviceKind, Finding
from ..records.whole_survey import Survey


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """Writes code that answers findings of some rules.

    Attributes:
        rules: Rules whose findings it answers.
        kind: What is changed.
        title: One line.
        write: Returns the code for a finding, or None if the remedy does not apply.
            It quotes names by ``repr``, so that no module name can become code.
    """

    rules: tuple[str, ...]
    kind: AdviceKind
    title: str
    write: Callable[[Survey, Finding], str | None]


def operated(call: str) -> str:
    """Return the code of a surgery, and code that gives the optimiser the new model.

    Args:
        call: The call after ``surgery.``; it may use ``before`` and ``inputs``.
    """
    return (
        "from theodolite import surgery\n"
        "from theodolite.survey import refit\n"
        "before = model\n"
        f"model = surgery.{call}.model\n"
        "optimizer = refit(optimizer, before, model)\n"
    )
