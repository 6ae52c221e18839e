r"""Deviations of features in memory from their class means, exact and in few passes.

With a basis $q_i$ of the span of centred class means, $\operatorname{tr}(\Sigma_W
\Sigma_B^\dagger) = \sum_i \operatorname{Var}(q_i \cdot h)/\lambda_i$: one product of
the features with fewer rows than there are classes, and no matrix of width by width.

Features are read in their own type, and chunks are summed in float64. Sums about the
origin lose digits if deviations are small and the means far from the origin. That loss
is estimated. If it is too large, the sums are computed again about the class means, for
as long as the means still change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..distributed.processes import Team
from .chunked_pass import CHUNK, Pass, Sums, add_by_class
from .class_statistics import BetweenClasses, Centre, ClassMoments
from .features import FeatureBatch, chunks, not_finite, working
from .final_layer import Head

# Relative error that triggers another pass, and the most passes; both by choice.
_WANTED, _PASSES = 2e-7, 4
# Samples that are measured in float64 first, to estimate rounding.
_FEW = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class Deviations:
    """Deviations of features from their class means.

    Attributes:
        between: The class means.
        along: Within-class sums of squares along the basis between them.
        square: Sum of squared distances to the mean, one number per class.
        tally: As in :class:`Sums`.
        mean_error: Largest error of a class mean, in norm.
        loss: Relative error of the sums of squares, by cancellation and rounded means.
        eps: Relative rounding error of a number.
    """

    between: BetweenClasses
    along: Tensor
    square: Tensor
    tally: Tensor
    mean_error: float
    loss: float
    eps: float

    def blurred(self, noise: float) -> "Deviations":
        """Return these deviations, with errors that include noise of the features.

        The noise (in norm) adds to deviations along the basis and moves class means,
        each by its full size at most.
        """
        if not noise:
            return self
        seen = noise**2 * float(self.between.count.sum())
        steep = seen / float(self.between.eigenvalues.min())
        ratio = float((self.along / self.between.eigenvalues).sum())
        within = float(self.square.sum())
        shares = [steep / ratio if ratio else 0.0, seen / within if within else 0.0]
        worst = max(share + 2 * share**0.5 for share in shares)
        worst += 2 * noise / self.between.narrowest
        return replace(self, mean_error=self.mean_error + noise, loss=self.loss + worst)


def deviations(
    pieces: Sequence[FeatureBatch],
    count: Tensor,
    width: int,
    *,
    head: Head | None,
    rows: Tensor,
    centre: Centre,
    team: Team,
) -> Deviations:
    """Measure deviations of features from their class means.

    Args:
        pieces: The features.
        count: Weight of each class, all positive.
        width: Length of a feature.
        head: Linear classifier that decides if decisions are unknown.
        rows: The head's row for each class mean.
        centre: Point at which class means are centred.
        team: Processes that hold the other features.
    """
    exact = team.largest(any(p.features.dtype == torch.float64 for p in pieces))
    dtype = torch.float64 if exact else torch.float32
    means, error = class_means(pieces, count, width, team)
    between = BetweenClasses.of(means, count, centre)
    eps = torch.finfo(dtype).eps
    lost = team.largest(_foreseen(pieces, between, error, eps))
    shift, before = means.to(dtype) if lost > _WANTED else None, float("inf")
    for turn in range(_PASSES):
        sums = Pass(between, head, shift, dtype, rows, error).sums(pieces).over(team)
        result = _about_means(between, sums, shift, error, eps)
        # Repeat while the error is too large and the last pass reduced it.
        done = result.loss <= _WANTED or result.loss > before / 2
        if done or turn == _PASSES - 1:
            return result
        if shift is not None:
            before, means = result.loss, shift.double() + sums.apart / count[:, None]
        shift, between = means.to(dtype), BetweenClasses.of(means, count, centre)
    raise AssertionError("a pass is made")


def from_moments(moments: ClassMoments, tally: Tensor, *, centre: Centre) -> Deviations:
    """Return the deviations of features that were already folded into moments."""
    between = BetweenClasses.of(moments.mean, moments.count, centre)
    along = ((between.basis @ moments.scatter) * between.basis).sum(1)
    eps = torch.finfo(torch.float64).eps
    size = float(between.means.norm(dim=1).max())
    ratio = float((along / between.eigenvalues).sum())
    # Rounding of the scatter along the basis, bounded by that of its whole trace.
    trace = eps * float(moments.square.sum()) * float((1 / between.eigenvalues).sum())
    return Deviations(
        between=between,
        along=along.clamp_min(0),
        square=moments.square,
        tally=tally,
        mean_error=8 * eps * size,
        loss=16 * eps * size / between.narrowest + (trace / ratio if ratio else 0.0),
        eps=8 * eps,
    )


def class_means(
    pieces: Sequence[FeatureBatch], count: Tensor, width: int, team: Team
) -> tuple[Tensor, float]:
    """Return the mean of each class in float64, and the largest error of a mean.

    The error is measured on a few samples, summed in their own type and in float64.
    Over a chunk it grows with the square root of the number of samples, as sums do;
    errors of different chunks are independent.
    """
    sums = torch.zeros(len(count), width, dtype=torch.float64, device=count.device)
    lost = passed = 0.0
    for piece in chunks(pieces, CHUNK):
        h = piece.features.to(working(piece.features.dtype))
        if h is piece.features:  # else it was just written and is in cache
            _read_ahead(h)
        part = add_by_class(sums, piece, h)
        if not passed and part is not sums:
            few = piece.part(0, _FEW)
            rough = add_by_class(torch.zeros_like(sums), few, h[:_FEW])
            exact = add_by_class(torch.zeros_like(sums), few, h[:_FEW].double())
            lost = float((rough - exact).norm(dim=1).max())
            lost *= (len(piece) / len(few)) ** 1.5
        passed += 1
    sums = team.sum(sums)
    if not bool(torch.isfinite(sums).all()):
        raise not_finite()
    own = torch.finfo(torch.float64).eps * float(sums.norm(dim=1).max())
    error = (3 * lost * passed**0.5 + own) / float(count.min())
    return sums / count[:, None], team.largest(error)


def _read_ahead(h: Tensor) -> None:
    """Load rows into a processor's cache at once, by computing their norms.

    Sums by class wait for memory row by row: with 50,000 rows of 512 they took 11.4 ms
    on one core without this, and 7.8 ms with it, this function included.
    """
    if h.device.type == "cpu":
        torch.linalg.vector_norm(h, dim=1)


def _foreseen(
    pieces: Sequence[FeatureBatch], between: BetweenClasses, error: float, eps: float
) -> float:
    """Return the loss of sums about the origin, estimated from a few samples."""
    few = float(between.count.min()) ** 0.5  # rounding averages out over these
    for piece in chunks(pieces, CHUNK):
        h, labels = piece.features[:_FEW].double(), piece.labels[:_FEW]
        within = float((h - between.means[labels]).square().sum())
        total, count = float(h.square().sum()), len(h)
        tilt = error / h.shape[1] ** 0.5
        lost = eps * total / few + 2 * tilt * (total * count) ** 0.5
        own = 2 * tilt / between.narrowest
        return own + (lost / within if within else float("inf"))
    return 0.0


def _about_means(
    between: BetweenClasses, sums: Sums, shift: Tensor | None, error: float, eps: float
) -> Deviations:
    """Convert sums about a shift to class means, and bound their rounding."""
    count = between.count
    along, off = sums.along, between.means
    if shift is not None:
        off = sums.apart / count[:, None]
        moved = shift.double() + off - between.means
        error = float(moved.norm(dim=1).max())
        along = along - count @ (moved @ between.basis.T).square()
    square = sums.squares - count * off.square().sum(1)
    along, square = along.clamp_min(0), square.clamp_min(0)
    total, within = float(sums.squares.sum()), float(square.sum())
    # Rounding of a projected feature, by its size; the squares add up.
    noise = eps**2 * total * float((1 / between.eigenvalues).sum())
    ratio = float((along / between.eigenvalues).sum())
    # Coordinates are rounded independently: few errors align with a given direction.
    tilt = error / between.means.shape[1] ** 0.5
    lost = eps * total / float(count.min()) ** 0.5
    if shift is None:
        norm = float(between.means.norm(dim=1).max())
        lost += 2 * tilt * norm * float(count.sum())
    worst = max(noise / ratio if ratio else 0.0, lost / within if within else 0.0)
    return Deviations(
        between=between,
        along=along,
        square=square,
        tally=sums.tally,
        mean_error=error,
        loss=worst + 2 * tilt / between.narrowest,
        eps=eps,
    )
