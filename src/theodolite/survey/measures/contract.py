"""What a measure is: a name, a forecast, and rows that come one by one."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from theodolite.core import StopCheck

from .site import Site

Found = dict[str, Any]


class OutOfTimeError(BaseException):
    """The allowance of a measure is spent; its rows so far stand.

    No ``Exception``, since code that tries something out must not take it for a
    failure of a model.
    """


class Allowance:
    """Seconds that a measure may take, counted from when it was made.

    Example:
        >>> allowance = Allowance(0.0)
        >>> allowance.left() <= 0
        True
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.perf_counter() + seconds

    def left(self) -> float:
        """Return the seconds that are left, negative where it is overdrawn."""
        return self._end - time.perf_counter()

    def check(self) -> None:
        """Stop the measure if nothing is left.

        Raises:
            OutOfTimeError: Nothing is.
        """
        if self.left() <= 0:
            raise OutOfTimeError


def deadline(allowance: Allowance, *, grace: float) -> StopCheck:
    """Stop what runs inside at a safe point, once an allowance is well overdrawn.

    Measures mind their allowance themselves; this is for what they cannot see into.

    Args:
        allowance: What the measure may take.
        grace: Seconds beyond it that are forgiven.
    """

    def check() -> None:
        if allowance.left() < -grace:
            raise OutOfTimeError

    return StopCheck(check)


class Measure(ABC):
    """One of the survey's measures; subclasses are final.

    Rows are yielded as they come, so that those that were measured stay when time is
    over or a person interrupts.

    Attributes:
        name: Of the measure.
        weight: Share of the budget that it may claim, relative to the others'.
        essential: Whether it runs however small the budget is.
    """

    name: ClassVar[str]
    weight: ClassVar[float] = 1.0
    essential: ClassVar[bool] = False

    def refusal(self, site: Site) -> str:
        """Return in a sentence why it cannot be taken here, or nothing."""
        del site
        return ""

    @abstractmethod
    def forecast(self, site: Site) -> float:
        """Return the seconds that the least useful part of it takes."""

    @abstractmethod
    def rows(self, site: Site, allowance: Allowance) -> Iterator[Found]:
        """Measure; a row has a quantity, a value, an error and labels."""


def number(
    quantity: str, value: float, error: float | None = None, **labels: Any
) -> Found:
    """Return a row."""
    return {"quantity": quantity, "value": value, "error": error, **labels}
