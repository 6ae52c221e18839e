"""Features of some samples, with what is known of each, cut to fit a cache."""

import itertools
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
        return self.labels.shape[0]

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
        if len(piece) <= size:
            yield piece
            continue
        for start in range(0, len(piece), size):
            yield piece.part(start, start + size)


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Samples of several pieces, whose features stay where they are.

    Attributes:
        parts: The pieces.
        labels: Places of classes, of all.
        weights: Weights of all, None for 1 each.
        decisions: Decisions of all, None where not known.
    """

    parts: tuple[Piece, ...]
    labels: Tensor
    weights: Tensor | None
    decisions: Tensor | None

    @classmethod
    def of(cls, parts: Sequence[Piece]) -> "Block":
        """Join pieces that know the same of their samples."""

        def joined(name: str) -> Tensor | None:
            found = [getattr(part, name) for part in parts]
            return None if found[0] is None else torch.cat(found)

        labels = torch.cat([part.labels for part in parts])
        weights, decisions = joined("weights"), joined("decisions")
        return cls(
            parts=tuple(parts), labels=labels, weights=weights, decisions=decisions
        )

    def __len__(self) -> int:
        return self.labels.shape[0]

    def exact(self, samples: Tensor) -> Tensor:
        """Return features of some samples in float64, samples in order."""
        ends = list(itertools.accumulate(len(part) for part in self.parts))
        cuts = torch.searchsorted(samples, torch.tensor(ends, device=samples.device))
        found, start, first = [], 0, 0
        for part, end, last in zip(self.parts, ends, cuts.tolist(), strict=True):
            if last > first:
                found.append(part.features[samples[first:last] - start])
            start, first = end, last
        return torch.cat(found).double()


def blocks(pieces: Sequence[Piece], size: int) -> Iterator[Block]:
    """Yield samples about so many at a time, joining small pieces that are alike."""
    held: list[Piece] = []
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


def _known(piece: Piece) -> tuple[bool, bool]:
    return piece.weights is None, piece.decisions is None


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
