"""Settings of a classifier's training, and the labelled samples it is trained on."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ConfigError, DataError, as_integer

from ..optimizers.descent import check_number


@dataclass(frozen=True, eq=False)
class LabelledSamples:
    """Samples with labels, to train on and to test on.

    Attributes:
        inputs: Training samples, floating, (N, ...).
        labels: -1 and +1 for networks of one output; class numbers from 0 up for those
            with one output per class.
        test_inputs: Samples held out; may be left out.
        test_labels: Their labels.

    Example:
        >>> samples = LabelledSamples(np.eye(2), np.array([-1.0, 1.0]))
        >>> samples.targets(samples.labels, 1, torch.float64).tolist()
        [[-1.0], [1.0]]
    """

    inputs: Any
    labels: Any
    test_inputs: Any = None
    test_labels: Any = None

    def __post_init__(self) -> None:
        for name in ("inputs", "labels", "test_inputs", "test_labels"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _tensor(value))
        if self.inputs is None or self.labels is None:
            raise DataError("inputs or labels are None: pass arrays or tensors of both")
        if (self.test_inputs is None) != (self.test_labels is None):
            raise DataError(
                "test samples came without labels or labels without samples: pass both "
                "or neither"
            )
        for name in ("", "test_") if self.tested else ("",):
            _check(getattr(self, f"{name}inputs"), getattr(self, f"{name}labels"), name)
        classes = torch.unique(self.labels).tolist()
        if len(classes) < 2:
            raise DataError(
                f"all labels are {classes[0]:g} and a classifier tells classes apart: "
                "pass samples of at least 2"
            )

    @property
    def tested(self) -> bool:
        """Whether samples are held out."""
        return self.test_inputs is not None

    def __len__(self) -> int:
        return len(self.labels)

    def targets(self, labels: Tensor, outputs: int, dtype: torch.dtype) -> Tensor:
        """Return the target outputs, (N, outputs)."""
        values = torch.unique(labels).tolist()
        if outputs == 1:
            if not set(values) <= {-1, 1}:
                raise DataError(
                    f"labels hold {values[:4]} and a network of one output wants -1 "
                    "and +1: pass such labels, or outputs = the number of classes"
                )
            return labels.to(dtype)[:, None]
        if any(label != int(label) or not 0 <= label < outputs for label in values):
            raise DataError(
                f"labels run from {values[0]:g} to {values[-1]:g} and {outputs} "
                f"outputs want whole numbers from 0 to {outputs - 1}: pass the place "
                "of a sample's class"
            )
        return torch.nn.functional.one_hot(labels.long(), outputs).to(dtype)


def _tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach()
    try:
        return torch.tensor(np.asarray(value), device="cpu")
    except (TypeError, ValueError) as error:
        raise DataError(
            f"a value of type {type(value).__name__} holds no numbers ({error}): pass "
            "arrays or tensors"
        ) from error


def _check(inputs: Tensor, labels: Tensor, name: str) -> None:
    if labels.ndim != 1 or len(inputs) != len(labels) or not len(labels):
        raise DataError(
            f"{name}inputs of shape {tuple(inputs.shape)} and {name}labels of shape "
            f"{tuple(labels.shape)}: pass one label per sample, and at least one sample"
        )
    if not inputs.is_floating_point():
        raise DataError(
            f"{name}inputs are of type {inputs.dtype}: pass floating numbers, such as "
            "rows of norm 1"
        )
    for part, what in ((inputs, "inputs"), (labels, "labels")):
        if part.is_floating_point() and not bool(torch.isfinite(part).all()):
            raise DataError(f"{name}{what} hold NaN or infinity: clean the data first")


ClassifierLoss = Literal["square", "cross_entropy"]


@dataclass(frozen=True, kw_only=True)
class ClassifierRecipe:
    r"""Mini-batch descent with momentum, as ``torch.optim.SGD`` does it.

    The square loss is $\frac1B \sum_n \|g(x_n) - y_n\|^2$: a sum over outputs, a mean
    over the batch. With one output, cross-entropy is $\ln(1 + e^{-y g})$. Decay adds
    ``weight_decay`` times the weights to the gradient: it is $\lambda = N\,w/2$ beside
    a sum of squares over $N$ samples.

    Attributes:
        epochs: Passes over the samples, each in a new order; a last batch that is not
            full is left out.
        batch_size: Samples per step.
        rate: Learning rate, constant.
        momentum: Of the velocity.
        weight_decay: Of all weights.
        loss: ``square`` or ``cross_entropy``.
        label_noise: Size of noise on the targets of the square loss: added or
            subtracted at random, for every sample, output and epoch.
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
            as_integer(name, getattr(self, name), 1)
        check_number("rate", self.rate, positive=True)
        check_number("momentum", self.momentum, below=1)
        check_number("weight_decay", self.weight_decay)
        check_number("label_noise", self.label_noise)
        if self.label_noise and self.loss != "square":
            raise ConfigError(
                f"label_noise is {self.label_noise} and the loss is {self.loss}, whose "
                "targets are classes: pass loss='square'"
            )

    @property
    def together(self) -> tuple[Any, ...]:
        """Settings that the runs of one stack must share."""
        return self.epochs, self.batch_size, self.momentum, self.loss


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
