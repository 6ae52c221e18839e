"""Labels of samples: whole numbers from 0 up, or ±1 for two classes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from theodolite.core import MeasurementError

from ..model.objective import Batch
from .features import tensor_of

Labels = Callable[[Batch], Any]
SampleWeights = Callable[[Batch], Any]


class Labelling:
    """Turns labels into indices of classes; -1 and 1 become 0 and 1.

    Args:
        classes: Number of classes; by default that of the labels.
        ignore_index: Label of samples to ignore.
    """

    def __init__(self, classes: int | None, ignore_index: int | None) -> None:
        if classes is not None and (isinstance(classes, bool) or classes < 2):
            raise MeasurementError(
                f"classes is {classes!r}, and a classifier tells at least 2 apart: "
                "pass their number, or None to have labels say it"
            )
        self.classes, self._ignored = classes, ignore_index
        self._zero = self._minus = False
        self._highest = 1

    def read(self, labels: Any) -> tuple[Tensor, Tensor]:
        """Return class indices and a mask of the samples that count, both flat."""
        flat = _whole(labels).reshape(-1)
        counts = torch.ones_like(flat, dtype=torch.bool)
        if not flat.numel():
            return flat, counts
        if self._ignored is not None and bool((left := flat == self._ignored).any()):
            counts = ~left
        told = flat if bool(counts.all()) else flat[counts]
        if told.numel():
            lowest, highest = (int(end) for end in told.aminmax())
            zero = lowest == 0 or (lowest < 0 and bool((told == 0).any()))
            self._check(lowest, highest, zero)
            if lowest >= 0:
                return flat, counts
        return torch.where(flat == -1, 0, flat), counts

    def merge(self, other: "Labelling") -> None:
        """Add the kind of labels that another labelling has read."""
        self._highest = max(self._highest, other._highest)
        lowest = -1 if other._minus else 0
        self._check(lowest, self._highest, other._zero)

    def _check(self, lowest: int, highest: int, zero: bool) -> None:
        self._highest = max(self._highest, highest)
        self._zero |= zero
        self._minus |= lowest == -1
        signed = self._minus and (self._zero or self._highest > 1)
        if lowest < -1 or signed:
            raise MeasurementError(
                f"labels reach from {lowest} to {highest}, wanted are -1 and 1, or "
                "whole numbers from 0 up: number the classes"
            )
        if self.classes is not None and highest >= self.classes:
            raise MeasurementError(
                f"a label is {highest} and there are {self.classes} classes, from 0 to "
                f"{self.classes - 1}: check the labels, or classes="
            )


def labels_in(batch: Batch, pick: Labels | None) -> Any:
    """Return the labels of a batch: from the given function, or its second part."""
    if pick is not None:
        return pick(batch)
    if isinstance(batch, Mapping) and "labels" in batch:
        return batch["labels"]
    if isinstance(batch, Sequence) and not isinstance(batch, str) and len(batch) == 2:
        return batch[1]
    raise MeasurementError(
        f"a batch of type {type(batch).__name__} says no labels: pass pairs (inputs, "
        "labels), or labels=lambda batch: …"
    )


def sample_weights(given: Any, like: Tensor) -> Tensor:
    """Return weights of samples in float64, one for each label."""
    try:
        weights = tensor_of(given).detach().to(like.device, torch.float64)
    except (TypeError, ValueError, RuntimeError):
        weights = torch.full((1,), torch.nan, device="cpu")
    weights = weights.reshape(-1)
    fits = weights.numel() == like.numel()
    if not fits or not bool((weights >= 0).all() & torch.isfinite(weights).all()):
        raise MeasurementError(
            f"weights came as {type(given).__name__} of {weights.numel()} numbers, "
            f"wanted are {like.numel()}, one per sample, finite and from 0 up: check "
            "weights="
        )
    return weights


def _whole(labels: Any) -> Tensor:
    """Return labels as int64, or raise if they are not whole numbers."""
    try:
        numbers = tensor_of(labels).detach()
    except (TypeError, ValueError, RuntimeError):
        raise MeasurementError(
            f"labels came as {type(labels).__name__}, wanted is a tensor of whole "
            "numbers, or of ±1: pick them with labels=lambda batch: …"
        ) from None
    if numbers.is_complex():
        raise MeasurementError("labels are complex: pass whole numbers, or ±1")
    if not numbers.is_floating_point():
        return numbers.long()
    if not bool((numbers.abs() == 1).all()):
        odd = numbers[numbers.abs() != 1].reshape(-1)[0].item()
        raise MeasurementError(
            f"labels are {str(numbers.dtype).removeprefix('torch.')} and one is {odd:g}"
            ", wanted are whole numbers as integers, or ±1: convert class numbers with "
            ".long(), one-hot rows with .argmax(1)"
        )
    return numbers.long()
