"""Features of some samples, with what is known of each, cut to fit a cache."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """Features of some samples.

    Attributes:
        features: A row a sample, of any real type.
        labels: Places of classes.
        weights: Weights in float64, None for 1 each.
        decisions: Places that the classifier decided for, None where not known.
    """

    features: Tensor
    labels: Tensor
    weights: Tensor | None = None
    decisions: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, start: int, stop: int) -> "Piece":
        """Return the samples from ``start`` to ``stop``."""
        return Piece(
            features=self.features[start:stop],
            labels=self.labels[start:stop],
            weights=None if self.weights is None else self.weights[start:stop],
            decisions=None if self.decisions is None else self.decisions[start:stop],
        )

    def renamed(self, places: Tensor) -> "Piece":
        """Return the same with other places for classes; -1 for those left out."""
        decisions = None if self.decisions is None else places[self.decisions]
        return Piece(
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


def chunks(pieces: Sequence[Piece], size: int) -> Iterator[Piece]:
    """Yield the samples of all pieces, so many at a time at most."""
    for piece in pieces:
        for start in range(0, len(piece), size):
            yield piece.part(start, start + size)


def working(dtype: torch.dtype) -> torch.dtype:
    """Return the type to compute in: half precision has no sums worth having."""
    return dtype if dtype in (torch.float32, torch.float64) else torch.float32


def weights_by_class(pieces: Sequence[Piece], classes: int) -> Tensor:
    """Return the weight of each class."""
    device = pieces[0].labels.device if pieces else None
    count = torch.zeros(classes, dtype=torch.float64, device=device)
    for piece in pieces:
        if piece.weights is None:
            count += torch.bincount(piece.labels, minlength=classes)
        else:
            count.index_add_(0, piece.labels, piece.weights)
    return count
