"""Features of samples as rows, with labels and weights, split to fit a cache."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.core import MeasurementError


def tensor_of(given: Any) -> Tensor:
    """Return a tensor as it is, and numbers on the CPU."""
    return given if isinstance(given, Tensor) else torch.as_tensor(given, device="cpu")


def rows_of(features: Any, samples: torch.Size) -> Tensor:
    """Return features as rows, one for each label."""
    try:
        rows = tensor_of(features).detach()
    except (TypeError, ValueError, RuntimeError):
        rows = torch.zeros(0, dtype=torch.complex64, device="cpu")
    if rows.is_complex() or not rows.is_floating_point():
        raise MeasurementError(
            f"features came as {type(features).__name__} of type {rows.dtype}, wanted "
            "are real floats, one row per sample: convert them"
        )
    if rows.shape[: len(samples)] != samples and samples[-1:] == (1,):
        samples = samples[:-1]
    if rows.shape[: len(samples)] != samples or rows.ndim <= len(samples):
        raise MeasurementError(
            f"features have shape {tuple(rows.shape)} and labels {tuple(samples)}: "
            "pass a row of features for each label"
        )
    return rows.reshape(samples.numel(), rows.shape[len(samples) :].numel())


def version_of(tensor: Tensor) -> int:
    """Return a number that changes when a tensor is written to."""
    return 0 if tensor.is_inference() else tensor._version


def mean_row(features: Any, width: int) -> Tensor:
    """Return the mean of features of a given width."""
    rows = tensor_of(features).detach()
    mean = rows.reshape(len(rows), -1).double().mean(0) if rows.ndim > 1 else rows
    if mean.shape != (width,) or not bool(torch.isfinite(mean).all()):
        raise MeasurementError(
            f"other features have shape {tuple(rows.shape)}, wanted are finite rows "
            f"of {width}: take them from the same layer"
        )
    return mean


def other_width(came: int, wanted: int) -> MeasurementError:
    """Return the error for features of another layer or size."""
    return MeasurementError(
        f"features of width {came} came after those of width {wanted}: use one meter a "
        "layer, and inputs of one size"
    )


def not_finite() -> MeasurementError:
    """Return the error for features with NaN or infinity."""
    return MeasurementError(
        "the features hold NaN or infinity: check the data, the weights, and the dtype "
        "for overflow"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureBatch:
    """Features of some samples.

    Attributes:
        features: One row per sample, of any real type.
        labels: Indices of classes.
        weights: Weights in float64; None if all are 1.
        decisions: Indices of predicted classes; None if unknown.
    """

    features: Tensor
    labels: Tensor
    weights: Tensor | None = None
    decisions: Tensor | None = None

    def __len__(self) -> int:
        return self.labels.shape[0]

    def part(self, start: int, stop: int) -> "FeatureBatch":
        """Return the samples from ``start`` to ``stop``."""
        return FeatureBatch(
            features=self.features[start:stop],
            labels=self.labels[start:stop],
            weights=None if self.weights is None else self.weights[start:stop],
            decisions=None if self.decisions is None else self.decisions[start:stop],
        )

    def renamed(self, places: Tensor) -> "FeatureBatch":
        """Return the batch with classes renumbered; -1 for classes left out."""
        decisions = None if self.decisions is None else places[self.decisions]
        return FeatureBatch(
            features=self.features,
            labels=places[self.labels],
            weights=self.weights,
            decisions=decisions,
        )

    def mass(self) -> Tensor:
        """Return the weights in float64, ones by default."""
        if self.weights is not None:
            return self.weights
        return torch.ones(len(self), dtype=torch.float64, device=self.labels.device)


def chunks(pieces: Sequence[FeatureBatch], size: int) -> Iterator[FeatureBatch]:
    """Yield the samples of all pieces, at most ``size`` at a time."""
    for piece in pieces:
        if len(piece) <= size:
            yield piece
            continue
        for start in range(0, len(piece), size):
            yield piece.part(start, start + size)


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Samples of several pieces, without a copy of their features.

    Attributes:
        parts: The pieces.
        labels: Indices of classes, of all samples.
        weights: Weights of all samples; None if all are 1.
        decisions: Predicted classes of all samples; None if unknown.
    """

    parts: tuple[FeatureBatch, ...]
    labels: Tensor
    weights: Tensor | None
    decisions: Tensor | None

    @classmethod
    def of(cls, parts: Sequence[FeatureBatch]) -> "Block":
        """Join pieces that have the same fields set."""

        def joined(name: str) -> Tensor | None:
            values = [getattr(part, name) for part in parts]
            return None if values[0] is None else torch.cat(values)

        labels = torch.cat([part.labels for part in parts])
        weights, decisions = joined("weights"), joined("decisions")
        return cls(
            parts=tuple(parts), labels=labels, weights=weights, decisions=decisions
        )

    def __len__(self) -> int:
        return self.labels.shape[0]

    def exact(self, samples: Tensor) -> Tensor:
        """Return the features of some samples in float64, in order."""
        ends = list(itertools.accumulate(len(part) for part in self.parts))
        cuts = torch.searchsorted(samples, torch.tensor(ends, device=samples.device))
        rows, start, first = [], 0, 0
        for part, end, last in zip(self.parts, ends, cuts.tolist(), strict=True):
            if last > first:
                rows.append(part.features[samples[first:last] - start])
            start, first = end, last
        return torch.cat(rows).double()


def blocks(pieces: Sequence[FeatureBatch], size: int) -> Iterator[Block]:
    """Yield about so many samples at a time, joining small pieces of the same kind."""
    held: list[FeatureBatch] = []
    count = 0
    for piece in chunks(pieces, size):
        alike = not held or _known(held[-1]) == _known(piece)
        if held and (not alike or count + len(piece) > size):
            yield Block.of(held)
            held, count = [], 0
        held.append(piece)
        count += len(piece)
    if held:
        yield Block.of(held)


def _known(piece: FeatureBatch) -> tuple[bool, bool]:
    return piece.weights is None, piece.decisions is None


def working(dtype: torch.dtype) -> torch.dtype:
    """Return the type to compute in: sums in half precision are too coarse."""
    return dtype if dtype in (torch.float32, torch.float64) else torch.float32


def weights_by_class(pieces: Sequence[FeatureBatch], classes: int) -> Tensor:
    """Return the weight of each class."""
    device = pieces[0].labels.device if pieces else None
    count = torch.zeros(classes, dtype=torch.float64, device=device)
    for piece in pieces:
        if piece.weights is None:
            count += torch.bincount(piece.labels, minlength=classes)
        else:
            count.index_add_(0, piece.labels, piece.weights)
    return count
