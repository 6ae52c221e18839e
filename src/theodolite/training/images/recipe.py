"""What image classifiers are trained on and how, and what became of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ConfigError, DataError, unknown_name

Precision = Literal["float32", "tf32", "bf16"]
Epoch = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained.

    Attributes:
        epochs: Passes over the images; what does not fill a last batch is left out of
            a pass.
        batch_size: Images a step.
        rate: Learning rate at the start.
        momentum: Of the velocity.
        weight_decay: Of all parameters.
        nesterov: Whether the momentum is Nesterov's.
        milestones: Fractions of all steps at which the rate is multiplied by
            ``factor``. Li et al. (2016), figure 2: at the 81st and the 122nd of 200
            epochs.
        factor: See ``milestones``.
        precision: ``float32``, ``tf32`` or ``bf16`` (autocast; the last two on CUDA).
        test_every: Epochs from one test to the next; the start and the last epoch are
            always tested.
    """

    epochs: int
    batch_size: int = 128
    rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    nesterov: bool = True
    milestones: tuple[float, ...] = (80 / 200, 121 / 200)
    factor: float = 0.1
    precision: Precision = "float32"
    test_every: int = 1

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "test_every"):
            value = getattr(self, name)
            if not (_is(Integral, value) and value >= 1):
                raise ConfigError(f"{name} is {value!r}: pass a whole number from 1 up")
        for name in ("rate", "factor"):
            value = getattr(self, name)
            if not (_is(Real, value) and 0 < value < math.inf):
                raise ConfigError(f"{name} is {value!r}: pass a positive number")
        if not (_is(Real, self.momentum) and 0 <= self.momentum < 1):
            raise ConfigError(
                f"momentum is {self.momentum!r}: pass a number from 0 to below 1"
            )
        if not (_is(Real, self.weight_decay) and 0 <= self.weight_decay < math.inf):
            raise ConfigError(
                f"weight_decay is {self.weight_decay!r}: pass a number from 0 up"
            )
        if self.precision not in get_args(Precision):
            raise unknown_name("precision", self.precision, get_args(Precision))

    def rate_at(self, progress: float) -> float:
        """Return the learning rate when this fraction of all steps is done.

        Example:
            >>> Recipe(epochs=200, factor=0.5).rate_at(80 / 200)
            0.05
        """
        return self.rate * self.factor ** sum(progress >= m for m in self.milestones)

    def tests_at(self, epoch: float) -> bool:
        """Say whether a reading at this point includes a test.

        Example:
            >>> [e for e in range(8) if Recipe(epochs=7, test_every=3).tests_at(e)]
            [0, 3, 6, 7]
        """
        always = self.test_every == 1 or epoch == self.epochs
        return always or epoch % self.test_every == 0


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


@dataclass(frozen=True, eq=False)
class Images:
    """Images and classes to train on and to test on, resident on one device.

    Attributes:
        inputs: Training images (N, C, H, W), uint8 or floating.
        labels: Their classes, int64.
        test_inputs: Images held out.
        test_labels: Their classes.
        centre: Mean of each channel, in the units of the images.
        scale: Deviation of each channel.
    """

    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor
    centre: Tensor
    scale: Tensor

    def __post_init__(self) -> None:
        for name in ("", "test_"):
            inputs, labels = (getattr(self, name + n) for n in ("inputs", "labels"))
            if len(inputs) != len(labels) or not len(labels):
                raise DataError(
                    f"{len(inputs)} {name}inputs and {len(labels)} {name}labels: pass "
                    "one label an image, and at least one image"
                )
        for name, part in vars(self).items():
            if part.is_floating_point() and not torch.isfinite(part).all():
                raise DataError(
                    f"{int((~torch.isfinite(part)).sum())} of the {part.numel()} "
                    f"numbers of {name} are NaN or infinite: clean the data first"
                )

    @classmethod
    def of_pixels(
        cls,
        inputs: np.ndarray,
        labels: np.ndarray,
        test_inputs: np.ndarray,
        test_labels: np.ndarray,
    ) -> "Images":
        """Take images (N, H, W) or (N, H, W, C), of 8 bits or within 0 and 1.

        They become 8-bit (N, C, H, W); centre and scale are those of the channels of
        the training images.

        Example:
            >>> x, y = np.array([[[0, 4]], [[0, 4]]], np.uint8), np.array([0, 1])
            >>> images = Images.of_pixels(x, y, x, y)
            >>> images.inputs.shape, images.centre, images.scale
            (torch.Size([2, 1, 1, 2]), tensor([2.]), tensor([2.]))
        """
        train, test = _channels_first(inputs), _channels_first(test_inputs)
        # Counting values is exact and needs no float copy of the images.
        counts = [
            np.bincount(part.ravel(), minlength=256) for part in train.swapaxes(0, 1)
        ]
        levels = np.arange(256.0)
        centre = [c @ levels / c.sum() for c in counts]
        scale = [
            math.sqrt(c @ (levels - mean) ** 2 / c.sum())
            for c, mean in zip(counts, centre, strict=True)
        ]
        answers = (np.asarray(given, np.int64) for given in (labels, test_labels))
        own, other = map(torch.tensor, answers)
        shades = torch.tensor(centre).float(), torch.tensor(scale).float()
        return cls(torch.tensor(train), own, torch.tensor(test), other, *shades)

    def to(self, device: torch.device | str) -> "Images":
        """Return the images on a device."""
        return Images(*(t.to(device) for t in vars(self).values()))


def _channels_first(pixels: np.ndarray) -> np.ndarray:
    if pixels.dtype != np.uint8:
        pixels = np.round(255 * pixels).astype(np.uint8)
    if pixels.ndim == 3:
        return pixels[:, None]
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """What became of one network.

    Attributes:
        status: ``finished``, ``diverged``, ``stopped`` (by the time limit) or
            ``failed``.
        history: A reading an epoch, from epoch 0, the start, and one at every step
            that was asked for: ``epoch``, ``step`` (updates made), ``train_loss`` and
            ``train_error`` (means over the epoch so far, while weights move; none at
            0), ``test_loss`` and ``test_error`` where a test was due, ``seconds``
            since the run began, and what the probe found.
        graphed: Whether its steps were replayed as a CUDA graph.
        error: Why it failed, or why its graph could not be captured; else empty.
        retired: Why ``probe`` or ``report`` was called no more, for those that raised.
    """

    status: str
    history: tuple[Epoch, ...]
    graphed: bool = False
    error: str = ""
    retired: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return how it ended; ``history`` holds every epoch."""
        last = self.history[-1] if self.history else {}
        told = {k: f"{v:.4g}" for k, v in last.items() if isinstance(v, float)}
        words = ", ".join(f"{name} {value}" for name, value in told.items())
        why = f", {self.error}" if self.error else ""
        return f"Trained({self.status}, {len(self.history)} readings, {words}{why})"
