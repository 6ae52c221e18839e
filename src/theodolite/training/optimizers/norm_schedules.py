r"""Schedules of a norm $\rho(t)$, in steps; any function of the step works as well."""

import math
from abc import ABC, abstractmethod
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
class _Change(ABC):
    """A norm that changes from ``start`` to ``end`` within ``steps`` steps."""

    start: float
    end: float
    steps: float

    def __post_init__(self) -> None:
        check_norm("the norm at the start", self.start)
        check_norm("the norm at the end", self.end)
        check_number("steps", self.steps, positive=True)

    @abstractmethod
    def __call__(self, step: float) -> float:
        """Return the norm at a step."""


@dataclass(frozen=True, kw_only=True)
class RampedNorm(_Change):
    r"""A norm that changes linearly from one value to another and then stays.

    Attributes:
        start: Norm at step 0.
        end: Norm from step ``steps`` on.
        steps: Length of the change.

    Example:
        >>> [RampedNorm(start=1.0, end=3.0, steps=10)(t) for t in (0, 5, 20)]
        [1.0, 2.0, 3.0]
    """

    def __call__(self, step: float) -> float:
        """Return the norm at a step."""
        share = min(max(step / self.steps, 0.0), 1.0)
        return float(self.start + share * (self.end - self.start))


@dataclass(frozen=True, kw_only=True)
class CosineNorm(_Change):
    r"""A norm that follows half a cosine from one value to another and then stays.

    Takes the arguments of :class:`RampedNorm`.

    Example:
        >>> [round(CosineNorm(start=3, end=1, steps=8)(t), 9) for t in (0, 4, 8)]
        [3.0, 2.0, 1.0]
    """

    def __call__(self, step: float) -> float:
        """Return the norm at a step."""
        share = min(max(step / self.steps, 0.0), 1.0)
        bend = (1 - math.cos(math.pi * share)) / 2
        return float(self.start + bend * (self.end - self.start))


@dataclass(frozen=True, kw_only=True)
class LogisticNorm(_Change):
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

    def __call__(self, step: float) -> float:
        """Return the norm at a step."""
        c = self.end / self.start - 1
        rate = math.log1p(_NINETY_NINE * abs(c)) / self.steps
        return float(self.end / (1 + c * math.exp(-rate * max(step, 0))))


NormSchedule = (
    ConstantNorm | RampedNorm | CosineNorm | LogisticNorm | Callable[[int], float]
)


def norm_at(rho: Any, step: int) -> float:
    """Return a norm, or a schedule's norm at a step, if it is positive."""
    if not callable(rho):
        return check_norm("rho", rho)
    return check_norm(f"rho at step {step}", rho(step))
