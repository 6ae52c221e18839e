r"""Schedules of a norm $\rho(t)$, in steps; any function of the step works as well."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

from theodolite.core import ConfigError

from .descent import check_number

# At this point a logistic curve is within one per cent of its end.
_NINETY_NINE = 99.0


def check_norm(what: str, value: Any) -> float:
    """Return a norm as a float; refuse one that is not positive and finite."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < float(value) < math.inf:
        raise ConfigError(
            f"{what} is {value!r}: pass a positive number, or a function of the step "
            "that returns one"
        )
    return float(value)


@dataclass(frozen=True, kw_only=True)
class ConstantNorm:
    r"""A constant norm, ``rho``.

    Example:
        >>> ConstantNorm(rho=2.0)(10)
        2.0
    """

    rho: float

    def __post_init__(self) -> None:
        check_norm("rho", self.rho)

    def __call__(self, step: float) -> float:
        """Return the norm, the same at every step."""
        return float(self.rho)


@dataclass(frozen=True, kw_only=True)
class LogisticNorm:
    r"""A norm that grows, or falls, as a logistic curve.

    $\rho(t) = \rho_\infty/(1 + c\,e^{-kt})$ with $c = \rho_\infty/\rho_0 - 1$: norms of
    two layers grow like this under gradient flow with outputs held fixed. $k$ is such
    that about one per cent of the way is left at ``steps``.

    Attributes:
        start: $\rho_0$.
        end: $\rho_\infty$.
        steps: Step at which the norm has almost reached ``end``.

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
        check_norm("the norm at the start", self.start)
        check_norm("the norm at the end", self.end)
        check_number("steps", self.steps, positive=True)

    def __call__(self, step: float) -> float:
        """Return the norm at a step."""
        c = self.end / self.start - 1
        rate = math.log1p(_NINETY_NINE * abs(c)) / self.steps
        return float(self.end / (1 + c * math.exp(-rate * max(step, 0))))


NormSchedule = ConstantNorm | LogisticNorm | Callable[[int], float]


def norm_at(rho: Any, step: int) -> float:
    """Return a norm, or a schedule's norm at a step, if it is positive."""
    if not callable(rho):
        return check_norm("rho", rho)
    return check_norm(f"rho at step {step}", rho(step))
