r"""Schedules of a norm $\rho(t)$, in steps; any function of the step will do."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from theodolite.core import ConfigError

# By then a logistic curve is within one per cent of its end.
_NINETY_NINE = 99.0


@dataclass(frozen=True, kw_only=True)
class ConstantNorm:
    r"""One norm at all times.

    Attributes:
        rho: The norm.

    Example:
        >>> ConstantNorm(rho=2.0)(10)
        2.0
    """

    rho: float

    def __post_init__(self) -> None:
        check_norm("rho", self.rho)

    def __call__(self, step: float) -> float:
        """Return the norm, whatever the step."""
        return float(self.rho)


@dataclass(frozen=True, kw_only=True)
class RampedNorm:
    r"""A norm that goes from one value to another in a straight line, and stays.

    Attributes:
        start: Norm at step 0.
        end: Norm from step ``steps`` on.
        steps: How long it takes.

    Example:
        >>> [RampedNorm(start=1.0, end=3.0, steps=10)(t) for t in (0, 5, 20)]
        [1.0, 2.0, 3.0]
    """

    start: float
    end: float
    steps: float

    def __post_init__(self) -> None:
        _check(self.start, self.end, self.steps)

    def __call__(self, step: float) -> float:
        """Return the norm at a step."""
        share = min(max(step / self.steps, 0.0), 1.0)
        return float(self.start + share * (self.end - self.start))


@dataclass(frozen=True, kw_only=True)
class CosineNorm:
    r"""A norm that goes from one value to another along half a cosine, and stays.

    Attributes:
        start: Norm at step 0.
        end: Norm from step ``steps`` on.
        steps: How long it takes.

    Example:
        >>> [round(CosineNorm(start=3, end=1, steps=8)(t), 9) for t in (0, 4, 8)]
        [3.0, 2.0, 1.0]
    """

    start: float
    end: float
    steps: float

    def __post_init__(self) -> None:
        _check(self.start, self.end, self.steps)

    def __call__(self, step: float) -> float:
        """Return the norm at a step."""
        share = min(max(step / self.steps, 0.0), 1.0)
        bend = (1 - math.cos(math.pi * share)) / 2
        return float(self.start + bend * (self.end - self.start))


@dataclass(frozen=True, kw_only=True)
class LogisticNorm:
    r"""A norm that grows, or falls, as a logistic curve.

    $\rho(t) = \rho_\infty/(1 + c\,e^{-kt})$ with $c = \rho_\infty/\rho_0 - 1$, which is
    how norms of two layers grow under gradient flow with outputs held; $k$ is such that
    about one per cent is left to go at ``steps``.

    Attributes:
        start: $\rho_0$.
        end: $\rho_\infty$.
        steps: When it is all but there.

    References:
        Poggio & Liao (2020), equation 28 with $L = 2$.

    Example:
        >>> curve = LogisticNorm(start=0.01, end=4.0, steps=100)
        >>> [round(curve(t), 2) for t in (0, 50, 100, 1000)]
        [0.01, 1.33, 3.96, 4.0]
    """

    start: float
    end: float
    steps: float

    def __post_init__(self) -> None:
        _check(self.start, self.end, self.steps)

    def __call__(self, step: float) -> float:
        """Return the norm at a step."""
        c = self.end / self.start - 1
        rate = math.log1p(_NINETY_NINE * abs(c)) / self.steps
        return float(self.end / (1 + c * math.exp(-rate * max(step, 0))))


NormSchedule = (
    ConstantNorm | RampedNorm | CosineNorm | LogisticNorm | Callable[[int], float]
)


def norm_at(rho: Any, step: int) -> float:
    """Return a norm or a schedule's norm at a step, or say what is wrong with it."""
    if not callable(rho):
        return check_norm("rho", rho)
    return check_norm(f"rho at step {step}", rho(step))


def check_norm(what: str, value: Any) -> float:
    """Return a norm as a number; refuse what is none."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < float(value) < math.inf:
        raise ConfigError(
            f"{what} is {value!r}: pass a positive number, or a function of the step "
            "that returns one"
        )
    return float(value)


def _check(start: Any, end: Any, steps: Any) -> None:
    check_norm("the norm at the start", start)
    check_norm("the norm at the end", end)
    number = isinstance(steps, Real) and not isinstance(steps, bool)
    if not number or not 0 < float(steps) < math.inf:
        raise ConfigError(f"steps is {steps!r}: pass a positive number of steps")
