r"""One pass over features: squares along a basis, nearest class means, decisions.

With $z = Q(h - \mu_y)$ the squared distance of a feature to the mean of class $j$ is
$-2\,a_j \cdot z + \|a_y - a_j\|^2$ up to a constant in $j$. It uses differences of
means only, so that features close to their mean lose no digits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..distributed.processes import Team
from .class_statistics import BetweenClasses
from .features import Block, FeatureBatch, blocks, chunks
from .final_layer import Head

# Samples per chunk: 1024 of width 512 in float32 take 2 MB, which fits a core's cache.
CHUNK = 1024
# Number of products and scores that are held in memory at once.
_SCORES = 2**18
# Scores within so many roundings count as equal and are computed again in float64.
_ROUNDINGS = 32


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums:
    """Sums that one pass accumulates, in float64.

    Attributes:
        along: Squared deviations from the class mean, along each row of the basis.
        squares: Sum of squared norms of (features - shift), one number per class.
        apart: Sum of (features - shift), one row per class; empty without a shift.
        tally: Six sums of sample weights. Samples with a known decision; of these,
            those whose nearest mean is that of the decided class; those decided
            correctly. Samples nearest to the mean of their class; all; those whose two
            nearest means are too close to separate, given the error of means.
    """

    along: Tensor
    squares: Tensor
    apart: Tensor
    tally: Tensor

    def over(self, team: Team) -> "Sums":
        """Return the sums over all processes."""
        return Sums(**{name: team.sum(part) for name, part in vars(self).items()})


class Pass:
    """One pass over features, relative to given class means.

    Args:
        between: The class means.
        head: Linear classifier that decides if decisions are unknown.
        shift: Subtracted from the features first, one row per class, or None.
        dtype: Type that features are converted to.
        rows: The head's row for each class mean.
        error: Largest error of a class mean, in norm.
    """

    def __init__(
        self,
        between: BetweenClasses,
        head: Head | None,
        shift: Tensor | None,
        dtype: torch.dtype,
        rows: Tensor,
        error: float = 0.0,
    ) -> None:
        self._between, self._head, self._shift = between, head, shift
        self._error = error
        self._dtype, self._classes = dtype, rows
        basis, base = between.basis, torch.zeros_like(between.means)
        base = base if shift is None else shift.double()
        self._rank = len(basis)
        both = basis if head is None else torch.cat([basis, head.weight])
        self._rows = both.to(dtype)
        # Class means minus the shift, along the basis; one column per class.
        self._offset = ((between.means - base) @ basis.T).T.to(dtype).contiguous()
        self._places = between.coordinates
        gaps = torch.cdist(self._places, self._places).square()
        self._slopes, self._gaps = (-2 * self._places).to(dtype), gaps.to(dtype)
        slope = 2 * float(self._places.norm(dim=1).max())
        size = float((between.means - base).norm(dim=1).max())
        self._near_reach = slope, slope * size + float(gaps.max())
        if head is not None:
            logits = head.weight @ base.T + head.bias[:, None]
            self._logits = logits.to(dtype).contiguous()
            slope = float(head.weight.norm(dim=1).max())
            self._head_reach = slope, float(logits.abs().max())
        self._size = max(_SCORES // max(len(both), len(gaps)), 64)

    def sums(self, pieces: Sequence[FeatureBatch]) -> Sums:
        """Return the sums over all samples."""
        between, zeros = self._between, torch.zeros_like
        along, squares = zeros(between.eigenvalues), zeros(between.count)
        shifted = self._shift is not None
        apart = zeros(between.means) if shifted else between.means.new_zeros(0)
        tally = torch.zeros(6, dtype=torch.float64, device=along.device)
        for block in blocks(pieces, self._size):
            norms, projected = self._products(block, apart)
            strays = projected[: self._rank]
            strays -= self._offset.index_select(1, block.labels)
            mass, squared = norms.double().square(), strays.square()
            if block.weights is not None:
                mass = mass * block.weights
                squared *= block.weights.to(self._dtype)
            squares.index_add_(0, block.labels, mass)
            along += squared.sum(1)
            tally += self._tally(
                block, projected[self._rank :], strays, float(norms.max())
            )
        return Sums(along=along, squares=squares, apart=apart, tally=tally)

    def _products(self, block: Block, apart: Tensor) -> tuple[Tensor, Tensor]:
        """Return norms and products of features, computed while they are in cache."""
        projected = self._rows.new_empty(len(self._rows), len(block))
        norms, start = self._rows.new_empty(len(block)), 0
        room = self._rows.new_empty(min(CHUNK, len(block)), self._rows.shape[1])
        for piece in chunks(block.parts, CHUNK):
            stop = start + len(piece)
            h = piece.features.to(self._dtype)
            if self._shift is not None:
                off = room[: len(piece)]
                torch.index_select(self._shift, 0, piece.labels, out=off)
                h = torch.sub(h, off, out=off)
                add_by_class(apart, piece, h)
            torch.linalg.vector_norm(h, dim=1, out=norms[start:stop])
            torch.mm(self._rows, h.T, out=projected[:, start:stop])
            start = stop
        return norms, projected

    def _tally(
        self, block: Block, logits: Tensor, strays: Tensor, size: float
    ) -> Tensor:
        """Return six sums of weights, by nearest mean and decision."""
        near, unsure = self._nearest(block, strays, size)
        own = _at(near, block.labels)
        every = torch.ones_like(own)
        if block.decisions is not None:
            known, other = every, block.decisions < 0
            agreed = _at(near, block.decisions.clamp_min(0)) & ~other
            right = block.decisions == block.labels
        elif self._head is not None:
            best = self._best(block, logits, size)
            # Each sample has one best score in both, so both hold for one class.
            known, agreed, right = every, near & best, _at(best, block.labels)
        else:
            known = agreed = right = ~every
        counted = (known, agreed, right, own, every, unsure)
        return torch.stack([_weighed(part, block.weights) for part in counted])

    def _nearest(
        self, block: Block, strays: Tensor, size: float
    ) -> tuple[Tensor, Tensor]:
        """Return masks: the nearest class mean per sample, and where it is unsure."""
        gaps = self._gaps.index_select(1, block.labels)
        scores = torch.addmm(gaps, self._slopes, strays)
        close = scores <= scores.amin(0) + self._blur(self._near_reach, size)
        unsure = torch.zeros_like(close[0])
        if len(tied := _tied(close)):
            h, labels = block.exact(tied), block.labels[tied]
            z = (h - self._between.means[labels]) @ self._between.basis.T
            gaps = torch.cdist(self._places[labels], self._places).square()
            exact = gaps - 2 * z @ self._places.T
            _settle(close, tied, exact.argmin(1))
            least, next_one = exact.topk(2, 1, largest=False).values.unbind(1)
            # Squared distances change by twice a distance, for each of the two means.
            reach = gaps.max().sqrt() + z.norm(dim=1)
            unsure[tied] = next_one - least <= 4 * self._error * reach
        return close, unsure

    def _best(self, block: Block, logits: Tensor, size: float) -> Tensor:
        """Return a mask of the class that the head predicts for each sample."""
        assert self._head is not None
        scores = logits.add_(self._logits.index_select(1, block.labels))
        close = scores >= scores.amax(0) - self._blur(self._head_reach, size)
        if len(tied := _tied(close)):
            h = block.exact(tied)
            exact = h @ self._head.weight.T + self._head.bias
            _settle(close, tied, exact.argmax(1))
        whole = len(self._classes) == len(close)
        return close if whole else close[self._classes]

    def _blur(self, reach: tuple[float, float], size: float) -> float:
        eps = torch.finfo(self._dtype).eps
        return _ROUNDINGS * eps * (reach[0] * size + reach[1])


def _at(close: Tensor, places: Tensor) -> Tensor:
    """Return one entry per sample, that of the given class."""
    return close.gather(0, places.unsqueeze(0)).squeeze(0)


def _weighed(samples: Tensor, weights: Tensor | None) -> Tensor:
    """Return the total weight of marked samples, or their number."""
    if weights is None:
        return torch.count_nonzero(samples)
    return (samples.double() @ weights).sum()


def _tied(close: Tensor) -> Tensor:
    """Return the samples with more than one best score."""
    if int(torch.count_nonzero(close)) == close.shape[1]:
        return torch.zeros(0, dtype=torch.int64, device=close.device)
    return (torch.count_nonzero(close, dim=0) > 1).nonzero().squeeze(1)


def _settle(close: Tensor, tied: Tensor, place: Tensor) -> None:
    close[:, tied] = False
    close[place, tied] = True


def add_by_class(total: Tensor, piece: FeatureBatch, h: Tensor) -> Tensor:
    """Add features to the sums of their classes; return the chunk's sums."""
    weighed = h if piece.weights is None else h * piece.weights[:, None].to(h.dtype)
    if 4 * len(total) > CHUNK or h.dtype == torch.float64:
        return total.index_add_(0, piece.labels, weighed.double())
    part = torch.zeros(total.shape, dtype=h.dtype, device=h.device)
    part.index_add_(0, piece.labels, weighed)
    total += part
    return part
