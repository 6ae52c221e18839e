"""When a probe measures: every n steps, at given steps, log-spaced, or at losses."""

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

from theodolite.core import ConfigError, as_integer


@runtime_checkable
class Schedule(Protocol):
    """A schedule of measurements. It keeps no state, so many runs can share one.

    Attributes:
        levels: Losses, largest first, at whose first crossing from above to measure.
    """

    @property
    def levels(self) -> tuple[float, ...]:
        """Losses at whose first crossing to measure."""
        ...

    def due(self, step: int) -> bool:
        """Return whether to measure before the update of this step."""
        ...


class _BySteps:
    """A schedule that waits for no loss."""

    @property
    def levels(self) -> tuple[float, ...]:
        """No losses."""
        return ()


@dataclass(frozen=True)
class Every(_BySteps):
    """Every ``n`` steps, from step 0 on.

    Example:
        >>> [step for step in range(10) if Every(4).due(step)]
        [0, 4, 8]
    """

    n: int

    def __post_init__(self) -> None:
        as_integer("n", self.n, 1)

    def due(self, step: int) -> bool:
        """Return whether the step is a multiple of n."""
        return step % self.n == 0


@dataclass(frozen=True)
class AtSteps(_BySteps):
    """At these steps.

    Example:
        >>> [step for step in range(10) if AtSteps([0, 3]).due(step)]
        [0, 3]
    """

    steps: Iterable[int]

    def __post_init__(self) -> None:
        try:
            steps = {operator.index(step) for step in self.steps}
        except TypeError:
            steps = {-1}
        if min(steps, default=0) < 0:
            raise ConfigError(f"steps {self.steps!r}: pass whole numbers from 0 up")
        # Sorted, so that equal schedules have equal text.
        object.__setattr__(self, "steps", tuple(sorted(steps)))

    def due(self, step: int) -> bool:
        """Return whether the step is one of them."""
        return step in self._chosen

    @cached_property
    def _chosen(self) -> frozenset[int]:
        return frozenset(self.steps)


@dataclass(frozen=True)
class LogSpaced(_BySteps):
    """At step 0 and then ``per_decade`` times as the step grows tenfold.

    Example:
        >>> [step for step in range(101) if LogSpaced(3).due(step)]
        [0, 1, 2, 5, 10, 22, 46, 100]
    """

    per_decade: int = 10

    def __post_init__(self) -> None:
        n = self.per_decade
        as_integer("n", n, 1)

    def due(self, step: int) -> bool:
        """Return whether the step is a power of the ratio, rounded."""
        if step < 1:
            return step == 0
        power = round(self.per_decade * math.log10(step))
        return any(
            round(10 ** (near / self.per_decade)) == step
            for near in (power - 1, power, power + 1)
        )


@dataclass(frozen=True)
class AtLosses:
    """At the first step whose loss is at or below each level.

    A run that starts below a level measures at step 0; one that never reaches it does
    not measure.
    """

    losses: Iterable[float]

    def __post_init__(self) -> None:
        try:
            levels = tuple(sorted({float(x) for x in self.losses}, reverse=True))
        except (TypeError, ValueError):
            levels = ()
        if not levels or not all(map(math.isfinite, levels)):
            raise ConfigError(
                f"loss levels {self.losses!r}: pass at least one, and finite numbers"
            )
        object.__setattr__(self, "losses", levels)

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels, largest first."""
        return tuple(self.losses)

    def due(self, step: int) -> bool:
        """Return False: no step is due by its number."""
        return False
