"""What a measure is: a name, a forecast, and rows that come one by one."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from theodolite.core import StopCheck

from .site import Site

Found = dict[str, Any]


class OutOfTimeError(BaseException):
    """The time limit of a measure is reached; its rows so far are kept.

    Not an ``Exception``, so that ``except Exception`` does not take it for a failure
    of the model.
    """


class Allowance:
    """A time limit of a measure, counted from when this object was made.

    Example:
        >>> allowance = Allowance(0.0)
        >>> allowance.left() <= 0
        True
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.perf_counter() + seconds

    def left(self) -> float:
        """Return the seconds left, negative after the limit."""
        return self._end - time.perf_counter()

    def check(self) -> None:
        """Stop the measure if nothing is left.

        Raises:
            OutOfTimeError: No time is left.
        """
        if self.left() <= 0:
            raise OutOfTimeError


def deadline(allowance: Allowance, *, grace: float) -> StopCheck:
    """Stop the code inside at a safe point if it exceeds its time limit by ``grace``.

    Measures check their limit themselves; this stops instruments that they call.

    Args:
        allowance: Time limit of the measure.
        grace: Seconds beyond the limit that are tolerated.
    """

    def check() -> None:
        if allowance.left() < -grace:
            raise OutOfTimeError

    return StopCheck(check)


class Measure(ABC):
    """One of the survey's measures; subclasses are final.

    Rows are yielded as soon as they are measured, so that they are kept when time is up
    or the user interrupts.

    Attributes:
        name: Name of the measure.
        weight: Share of the budget that it may use, relative to other measures.
        essential: Whether it runs even with the smallest budget.
    """

    name: ClassVar[str]
    weight: ClassVar[float] = 1.0
    essential: ClassVar[bool] = False

    def refusal(self, site: Site) -> str:
        """Return in a sentence why it cannot measure this model, or an empty string."""
        del site
        return ""

    @abstractmethod
    def forecast(self, site: Site) -> float:
        """Return the seconds of the smallest part that is still useful."""

    @abstractmethod
    def rows(self, site: Site, allowance: Allowance) -> Iterator[Found]:
        """Measure; a row has a quantity, a value, an error and labels."""


def number(
    quantity: str, value: float, error: float | None = None, **labels: Any
) -> Found:
    """Return a row."""
    return {"quantity": quantity, "value": value, "error": error, **labels}
