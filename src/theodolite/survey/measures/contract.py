"""What a measure is: a name, a share of the effort, and rows that come one by one."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from theodolite.core import StopCheck

from .context import SurveyContext

Found = dict[str, Any]


class OutOfTimeError(BaseException):
    """The time limit of the survey is reached.

    Not an ``Exception``, so that ``except Exception`` does not take it for a failure
    of the model.
    """


def deadline(end: float) -> StopCheck:
    """Abort the code inside at the first safe point after the end.

    Args:
        end: Time of ``time.perf_counter``.
    """

    def check() -> None:
        if time.perf_counter() > end:
            raise OutOfTimeError

    return StopCheck(check)


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One of the survey's measures.

    What it computes follows from the model, the data and the effort: it never reads the
    clock, and no other measure changes its numbers.

    Attributes:
        name: Name of the measure.
        rows: Measures an opened model with about so many gradients; a row has a
            quantity, a value, an error and labels.
        share: Share of the effort that it may use. It is 0 if the one gradient pass
            that all measures share has all that it needs.
        fixed: Gradients that it computes whatever the effort.
        least: Gradients of the smallest part that is still useful.
        refusal: Returns in a sentence why it cannot measure a model, or an empty one.
    """

    name: str
    rows: Callable[[SurveyContext, float], Iterator[Found]]
    share: float = 0.0
    fixed: int = 0
    least: float = 0.0
    refusal: Callable[[SurveyContext], str] = lambda context: ""


def number(
    quantity: str, value: float, error: float | None = None, **labels: Any
) -> Found:
    """Return a row."""
    return {"quantity": quantity, "value": value, "error": error, **labels}
