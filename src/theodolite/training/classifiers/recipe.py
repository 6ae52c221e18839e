"""How a classifier is trained."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

from theodolite.core import ConfigError, unknown_name

ClassifierLoss = Literal["square", "cross_entropy"]


@dataclass(frozen=True, kw_only=True)
class ClassifierRecipe:
    r"""Mini-batch descent with momentum, as ``torch.optim.SGD`` does it.

    The square loss is $\frac1B \sum_n \|g(x_n) - y_n\|^2$: a sum over outputs, a mean
    over the batch. With one output, cross-entropy is $\ln(1 + e^{-y g})$. Decay adds
    ``weight_decay`` times the weights to the gradient: it is $\lambda = N\,w/2$ beside
    a sum of squares over $N$ samples.

    Attributes:
        epochs: Passes over the samples, each in a new order; what does not fill a last
            batch is left out of a pass.
        batch_size: Samples a step.
        rate: Learning rate, constant.
        momentum: Of the velocity.
        weight_decay: Of all weights.
        loss: ``square`` or ``cross_entropy``.
        label_noise: Size of noise on the targets of the square loss: added or taken
            off, drawn anew for every sample, output and epoch.
    """

    epochs: int = 1000
    batch_size: int = 128
    rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    loss: ClassifierLoss = "square"
    label_noise: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if not (_is(Integral, value) and value >= 1):
                raise ConfigError(f"{name} is {value!r}: pass a whole number from 1 up")
        if not (_is(Real, self.rate) and 0 < self.rate < math.inf):
            raise ConfigError(f"rate is {self.rate!r}: pass a positive number")
        if not (_is(Real, self.momentum) and 0 <= self.momentum < 1):
            raise ConfigError(
                f"momentum is {self.momentum!r}: pass a number from 0 to below 1"
            )
        if not (_is(Real, self.weight_decay) and 0 <= self.weight_decay < math.inf):
            raise ConfigError(
                f"weight_decay is {self.weight_decay!r}: pass a number from 0 up"
            )
        if self.loss not in get_args(ClassifierLoss):
            raise unknown_name("loss", self.loss, get_args(ClassifierLoss))
        if not (_is(Real, self.label_noise) and 0 <= self.label_noise < math.inf):
            raise ConfigError(
                f"label_noise is {self.label_noise!r}: pass a number from 0 up"
            )
        if self.label_noise and self.loss != "square":
            raise ConfigError(
                f"label_noise is {self.label_noise} and the loss is {self.loss}, whose "
                "targets are classes: pass loss='square'"
            )

    @property
    def together(self) -> tuple[Any, ...]:
        """What runs must have in common to be trained in one stack."""
        return self.epochs, self.batch_size, self.momentum, self.loss


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def log_epochs(epochs: int, count: int = 40) -> tuple[int, ...]:
    """Return about ``count`` epochs from 0 to the last, evenly spaced in logarithm.

    Example:
        >>> log_epochs(1000, 5)
        (0, 1, 10, 100, 1000)
    """
    if epochs < 1 or count < 2:
        raise ConfigError(
            f"epochs is {epochs} and count is {count}: pass at least 1 and 2"
        )
    steps = range(count - 1)
    places = (epochs ** (i / max(1, count - 2)) for i in steps)
    return tuple(sorted({0, epochs, *(round(place) for place in places)}))
