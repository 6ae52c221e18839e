"""What a measure is: a name, a share of the effort, and rows that come one by one."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

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


class Measure(ABC):
    """One of the survey's measures; subclasses are final.

    What it computes follows from the model, the data and the effort: it never reads the
    clock, and no other measure changes its numbers.

    Attributes:
        name: Name of the measure.
        share: Share of the effort that it may use. It is 0 if the one gradient pass
            that all measures share has all that it needs.
        fixed: Gradients that it computes whatever the effort.
    """

    name: ClassVar[str]
    share: ClassVar[float] = 0.0
    fixed: ClassVar[int] = 0

    def refusal(self, context: SurveyContext) -> str:
        """Return in a sentence why it cannot measure this model, or an empty string."""
        del context
        return ""

    def least(self, context: SurveyContext) -> float:
        """Return the gradients of the smallest part that is still useful."""
        del context
        return 0.0

    @abstractmethod
    def rows(self, context: SurveyContext, gradients: float) -> Iterator[Found]:
        """Measure; a row has a quantity, a value, an error and labels.

        Args:
            context: The model, opened.
            gradients: About how much may be computed.
        """


def number(
    quantity: str, value: float, error: float | None = None, **labels: Any
) -> Found:
    """Return a row."""
    return {"quantity": quantity, "value": value, "error": error, **labels}
