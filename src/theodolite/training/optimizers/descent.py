"""Gradient descent: its rate, momentum, weight decay and schedule."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from theodolite.core import ConfigError


@dataclass(frozen=True, kw_only=True)
class Descent:
    r"""Gradient descent or SGD, as torch's ``SGD`` does it.

    $g \leftarrow g + \lambda w$, $v \leftarrow \mu v + g$, $w \leftarrow w - \eta v$.

    Attributes:
        lr: Learning rate $\eta$ at the start.
        momentum: $\mu$.
        weight_decay: $\lambda$.
        drops: Step to factor: from that step on the rate is multiplied by it.

    Example:
        >>> Descent(lr=0.1, drops={100: 0.1}).rates(0, 200)[[0, 99, 100]]
        array([0.1 , 0.1 , 0.01])
    """

    lr: float
    momentum: float = 0.0
    weight_decay: float = 0.0
    drops: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_number("learning rate lr", self.lr, positive=True)
        check_number("momentum", self.momentum, below=1)
        check_number("weight_decay", self.weight_decay)
        for step, factor in self.drops.items():
            if isinstance(step, bool) or not isinstance(step, int) or step < 0:
                raise ConfigError(
                    f"the rate drops at step {step!r}: pass whole numbers from 0 up"
                )
            check_number(f"factor on the rate at step {step}", factor, positive=True)

    def rates(self, start: int, stop: int) -> np.ndarray:
        """Return the learning rates of steps ``start`` to ``stop - 1``."""
        steps = np.arange(start, stop)
        rates = np.full(len(steps), float(self.lr))
        for step, factor in sorted(self.drops.items()):
            rates[steps >= step] *= factor
        return rates


def check_number(
    what: str, value: Any, *, positive: bool = False, below: float = math.inf
) -> None:
    """Refuse a value that is no finite number from 0 up, and below a limit."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 <= float(value) < below or (positive and value == 0):
        wanted = "a positive number" if positive else "a number from 0 up"
        wanted = wanted if below == math.inf else f"a number from 0 to below {below}"
        raise ConfigError(f"{what} is {value!r}: pass {wanted}")
