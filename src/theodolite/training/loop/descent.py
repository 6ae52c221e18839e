r"""Gradient descent: its rate, momentum, weight decay and schedule."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
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
        _check("learning rate lr", self.lr, positive=True)
        _check("momentum", self.momentum)
        _check("weight_decay", self.weight_decay)
        if self.momentum >= 1:
            raise ConfigError(
                f"momentum is {self.momentum!r}: pass a number from 0 to below 1"
            )
        for step, factor in self.drops.items():
            if isinstance(step, bool) or not isinstance(step, int) or step < 0:
                raise ConfigError(
                    f"the rate drops at step {step!r}: pass whole numbers from 0 up"
                )
            _check(f"factor on the rate at step {step}", factor, positive=True)

    def rates(self, start: int, stop: int) -> np.ndarray:
        """Return the learning rates of steps ``start`` to ``stop - 1``."""
        steps = np.arange(start, stop)
        rates = np.full(len(steps), float(self.lr))
        for step, factor in sorted(self.drops.items()):
            rates[steps >= step] *= factor
        return rates

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON values."""
        drops = {str(step): factor for step, factor in sorted(self.drops.items())}
        return {
            "lr": self.lr,
            "momentum": self.momentum,
            "weight_decay": self.weight_decay,
            "drops": drops,
        }


def _check(what: str, value: Any, *, positive: bool = False) -> None:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0 or (positive and value == 0):
        wanted = "a positive number" if positive else "a number from 0 up"
        raise ConfigError(f"{what} is {value!r}: pass {wanted}")
