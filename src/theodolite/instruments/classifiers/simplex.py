r"""How near vectors, one a class, are to the vertices of a regular simplex.

The simplex equiangular tight frame of $C$ vectors has the Gram matrix $I -
\frac1C 11^\top$ up to scale: equal norms, all cosines $-1/(C-1)$. Gram matrices are
walked in blocks of rows, so that thousands of classes take little memory, and
distances are summed entry by entry, since $2 - 2\langle G, E\rangle$ would cancel.

References:
    Papyan, Han and Donoho (2020), Prevalence of neural collapse during the terminal
    phase of deep learning training, PNAS.
    Zhu et al. (2021), A geometric analysis of neural collapse with unconstrained
    features, NeurIPS (distances of normalised Gram matrices).
    Liu et al. (2023), Generalizing and decoupling neural collapse via hyperspherical
    uniformity gap, ICLR (logarithmic energy).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

# Rows of a Gram matrix at a time, by choice: 512 of 5,000 take 20 MB.
_BLOCK = 512
# Bins of the histogram of cosines between -1 and 1, by choice.
BINS = 80


@dataclass(frozen=True, kw_only=True, eq=False)
class Shape:
    r"""The shape of some vectors, one a class.

    Attributes:
        norm_spread: Standard deviation of the norms over their mean.
        angle_spread: Standard deviation of the cosines of pairs.
        angle_gap: Mean of $|\cos + 1/(C-1)|$ over pairs.
        simplex_distance: Distance of the Gram matrices of the vectors and of the
            simplex, each of Frobenius norm 1.
        energy: Mean of $-\ln\|\hat v_i - \hat v_j\|$ over pairs of unit vectors.
        histogram: Share of pairs with cosines in each of the bins.
    """

    norm_spread: float
    angle_spread: float
    angle_gap: float
    simplex_distance: float
    energy: float
    histogram: Tensor


def shape_of(vectors: Tensor) -> Shape:
    """Measure the shape of vectors, rows in float64, none of them zero."""
    count, norms = len(vectors), vectors.norm(dim=1)
    units = vectors / norms[:, None]
    ideal, pairs = -1 / (count - 1), count * (count - 1)
    total, squares, gap, energy = (torch.zeros((), dtype=torch.float64) for _ in "1234")
    histogram = torch.zeros(BINS, dtype=torch.float64)
    for start, cosines in _gram(units, units):
        own = torch.arange(len(cosines), device=cosines.device)
        cosines[own, start + own] = ideal  # and taken off again below
        gaps = cosines - ideal
        total += gaps.sum().cpu()
        squares += gaps.square().sum().cpu()
        gap += gaps.abs().sum().cpu()
        inside = cosines.clamp_(-1, 1)
        histogram += torch.histc(inside.float(), BINS, -1, 1).double().cpu()
        # |u - v|^2 = 2 - 2 cos; vectors that coincide have infinite energy.
        energy -= 0.5 * (2 - 2 * inside).log_().sum().cpu()
    energy += 0.5 * count * math.log(2 - 2 * ideal)
    histogram -= count * torch.histc(torch.tensor([ideal]), BINS, -1, 1).double()
    shift = total / pairs
    spread = (squares / pairs - shift.square()).clamp_min(0).sqrt()
    return Shape(
        norm_spread=float(norms.std(correction=0) / norms.mean()),
        angle_spread=float(spread),
        angle_gap=float(gap / pairs),
        simplex_distance=simplex_distance(vectors, vectors),
        energy=float(energy / pairs),
        histogram=histogram / pairs,
    )


def simplex_distance(one: Tensor, other: Tensor) -> float:
    r"""Return $\|AB^\top/\|AB^\top\|_F - E/\|E\|_F\|_F$, $E = I - \frac1C 11^\top$."""
    count = len(one)
    square = sum((float(block.square().sum()) for _, block in _gram(one, other)), 0.0)
    norm, edge = math.sqrt(square), math.sqrt(count - 1)
    found = 0.0
    for start, block in _gram(one, other):
        rows = torch.arange(len(block), device=block.device)
        gap = block / norm + 1 / (count * edge)
        gap[rows, start + rows] -= 1 / edge
        found += float(gap.square().sum())
    return math.sqrt(found)


def on_polygon(one: Tensor, other: Tensor) -> Tensor:
    r"""Return points of a plane, which for a simplex are those of a regular polygon.

    Row $c$ of the Gram matrix $AB^\top$, scaled to the simplex's norm, weighs the
    corners of a polygon with a corner a class: $I - \frac1C 11^\top$ leaves each where
    it is.
    """
    count = len(one)
    turns = torch.arange(count, dtype=torch.float64, device=one.device) / count
    corners = torch.stack([(math.tau * turns).cos(), (math.tau * turns).sin()], dim=1)
    square = sum((float(block.square().sum()) for _, block in _gram(one, other)), 0.0)
    return one @ (other.T @ corners) * (math.sqrt(count - 1) / math.sqrt(square))


def _gram(one: Tensor, other: Tensor) -> Iterator[tuple[int, Tensor]]:
    for start in range(0, len(one), _BLOCK):
        yield start, one[start : start + _BLOCK] @ other.T
