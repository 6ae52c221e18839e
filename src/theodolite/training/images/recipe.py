"""Settings and data of image classifiers, and the results of their training."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from theodolite.core import DataError, as_integer

from ..optimizers.descent import check_number

Precision = Literal["float32", "tf32", "bf16"]
Epoch = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained.

    Attributes:
        epochs: Passes over the images; a last batch that is not full is left out.
        batch_size: Images per step.
        rate: Learning rate at the start.
        momentum: Of the velocity.
        weight_decay: Of all parameters, or of all but those of norms.
        decay_norms: Whether scales and shifts of normalisation layers decay as well.
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
    decay_norms: bool = True
    nesterov: bool = True
    milestones: tuple[float, ...] = (80 / 200, 121 / 200)
    factor: float = 0.1
    precision: Precision = "float32"
    test_every: int = 1

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "test_every"):
            as_integer(name, getattr(self, name), 1)
        for name in ("rate", "factor"):
            check_number(name, getattr(self, name), positive=True)
        check_number("momentum", self.momentum, below=1)
        check_number("weight_decay", self.weight_decay)

    def rate_at(self, progress: float) -> float:
        """Return the learning rate when this fraction of all steps is done.

        Example:
            >>> Recipe(epochs=200, factor=0.5).rate_at(80 / 200)
            0.05
        """
        return self.rate * self.factor ** sum(progress >= m for m in self.milestones)

    def tests_at(self, epoch: float) -> bool:
        """Return whether a reading at this point includes a test.

        Example:
            >>> [e for e in range(8) if Recipe(epochs=7, test_every=3).tests_at(e)]
            [0, 3, 6, 7]
        """
        always = self.test_every == 1 or epoch == self.epochs
        return always or epoch % self.test_every == 0


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
                    "one label per image, and at least one image"
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
        """Make ``Images`` of arrays (N, H, W) or (N, H, W, C), uint8 or from 0 to 1.

        They become uint8 (N, C, H, W); centre and scale are those of the channels of
        the training images.

        Example:
            >>> x, y = np.array([[[0, 4]], [[0, 4]]], np.uint8), np.array([0, 1])
            >>> images = Images.of_pixels(x, y, x, y)
            >>> images.inputs.shape, images.centre, images.scale
            (torch.Size([2, 1, 1, 2]), tensor([2.]), tensor([2.]))
        """
        train, test = _channels_first(inputs), _channels_first(test_inputs)
        # Counting values is exact and needs no float copy of the images.
        channels, levels = train.swapaxes(0, 1), np.arange(256.0)
        counts = [np.bincount(part.ravel(), minlength=256) for part in channels]
        centre = [c @ levels / c.sum() for c in counts]
        scale = [
            math.sqrt(c @ (levels - mean) ** 2 / c.sum())
            for c, mean in zip(counts, centre, strict=True)
        ]
        answers = (np.asarray(given, np.int64) for given in (labels, test_labels))
        own, other = map(torch.tensor, answers)
        shades = (
            torch.tensor(centre, device="cpu").float(),
            torch.tensor(scale, device="cpu").float(),
        )
        return cls(
            torch.tensor(train, device="cpu"),
            own,
            torch.tensor(test, device="cpu"),
            other,
            *shades,
        )

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
    """Result of the training of one network.

    Attributes:
        status: ``finished``, ``diverged``, ``stopped`` (by the time limit) or
            ``failed``.
        history: One reading per epoch, from epoch 0, the start, and one at every step
            that was asked for: ``epoch``, ``step`` (updates made), ``train_loss`` and
            ``train_error`` (means over the epoch so far, while weights move; none at
            0), ``test_loss`` and ``test_error`` where a test was due, ``seconds``
            since the run began, and the probe's numbers.
        graphed: Whether its steps were replayed as a CUDA graph.
        error: Why it failed, or why its graph could not be captured; else empty.
        retired: Errors of ``probe`` or ``report``, which are not called after one.
    """

    status: str
    history: tuple[Epoch, ...]
    graphed: bool = False
    error: str = ""
    retired: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return how it ended; ``history`` holds every epoch."""
        last = self.history[-1] if self.history else {}
        numbers = [f"{k} {v:.4g}" for k, v in last.items() if isinstance(v, float)]
        words = ", ".join(numbers)
        why = f", {self.error}" if self.error else ""
        return f"Trained({self.status}, {len(self.history)} readings, {words}{why})"
