r"""The numbers of neural collapse, from class means, sums about them and a head.

The simplex equiangular tight frame of $C$ vectors has the Gram matrix $I -
\frac1C 11^\top$ up to scale: equal norms, all cosines $-1/(C-1)$. Gram matrices are
computed in blocks of rows, so that thousands of classes take little memory, and
distances are summed entry by entry, since $2 - 2\langle G, E\rangle$ would cancel.

References:
    Papyan, Han and Donoho (2020), Prevalence of neural collapse during the terminal
    phase of deep learning training, PNAS (NC1 to NC4).
    Galanti, György and Hutter (2022), On the role of neural collapse in transfer
    learning, ICLR (class-distance normalised variance).
    Ammar et al. (2024), NECO: neural collapse based out-of-distribution detection,
    ICLR (NC5).
    Zhu et al. (2021), A geometric analysis of neural collapse with unconstrained
    features, NeurIPS (distances of normalised Gram matrices).
    Liu et al. (2023), Generalizing and decoupling neural collapse via hyperspherical
    uniformity gap, ICLR (logarithmic energy).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .class_deviations import Deviations
from .final_layer import Head

# Rows of a matrix computed at a time, by choice: 512 of 5,000 take 20 MB.
_BLOCK = 512
# Bins of the histogram of cosines between -1 and 1, by choice.
BINS = 80


@dataclass(frozen=True, kw_only=True, eq=False)
class Shape:
    r"""The shape of some vectors, one per class.

    Attributes:
        norm_spread: Standard deviation of the norms over their mean.
        angle_spread: Standard deviation of the cosines of pairs.
        angle_gap: Mean of $|\cos + 1/(C-1)|$ over pairs.
        simplex_distance: Distance between the Gram matrices of the vectors and of a
            simplex, each of Frobenius norm 1.
        energy: Mean of $-\ln\|\hat v_i - \hat v_j\|$ over pairs of unit vectors.
        histogram: Share of pairs whose cosine is in each bin.
    """

    norm_spread: float
    angle_spread: float
    angle_gap: float
    simplex_distance: float
    energy: float
    histogram: Tensor


def shape_of(vectors: Tensor) -> Shape:
    """Measure the shape of vectors, given as rows in float64, none of them zero."""
    count, norms = len(vectors), vectors.norm(dim=1)
    units = vectors / norms[:, None]
    ideal, pairs = -1 / (count - 1), count * (count - 1)
    total, squares, gap, energy = (
        torch.zeros((), dtype=torch.float64, device="cpu") for _ in "1234"
    )
    histogram = torch.zeros(BINS, dtype=torch.float64, device="cpu")
    for start, cosines in _gram(units, units):
        own = torch.arange(len(cosines), device=cosines.device)
        cosines[own, start + own] = ideal  # and subtracted again below
        gaps = cosines - ideal
        total += gaps.sum().cpu()
        squares += gaps.square().sum().cpu()
        gap += gaps.abs().sum().cpu()
        inside = cosines.clamp_(-1, 1)
        histogram += torch.histc(inside.float(), BINS, -1, 1).double().cpu()
        # |u - v|^2 = 2 - 2 cos; equal vectors have infinite energy.
        energy -= 0.5 * (2 - 2 * inside).log_().sum().cpu()
    energy += 0.5 * count * math.log(2 - 2 * ideal)
    histogram -= (
        count * torch.histc(torch.tensor([ideal], device="cpu"), BINS, -1, 1).double()
    )
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
    total = 0.0
    for start, block in _gram(one, other):
        rows = torch.arange(len(block), device=block.device)
        gap = block / norm + 1 / (count * edge)
        gap[rows, start + rows] -= 1 / edge
        total += float(gap.square().sum())
    return math.sqrt(total)


def on_polygon(one: Tensor, other: Tensor) -> Tensor:
    r"""Return one point of the plane per class; a simplex gives a regular polygon.

    Row $c$ of the Gram matrix $AB^\top$, scaled to the simplex's norm, holds weights
    for the corners of a polygon with one corner per class: $I - \frac1C 11^\top$ leaves
    each corner in place.
    """
    count = len(one)
    turns = torch.arange(count, dtype=torch.float64, device=one.device) / count
    corners = torch.stack([(math.tau * turns).cos(), (math.tau * turns).sin()], dim=1)
    square = sum((float(block.square().sum()) for _, block in _gram(one, other)), 0.0)
    return one @ (other.T @ corners) * (math.sqrt(count - 1) / math.sqrt(square))


def _gram(one: Tensor, other: Tensor) -> Iterator[tuple[int, Tensor]]:
    for start in range(0, len(one), _BLOCK):
        yield start, one[start : start + _BLOCK] @ other.T


# Error of sums and products of the head's shape, in roundings of float64.
_ROUNDINGS = 64


def numbers_of(
    deviations: Deviations, head: Head | None, rows: Tensor, outside: Tensor | None
) -> dict[str, Any]:
    """Return the fields of a reading.

    Args:
        deviations: Class means, and deviations of features from them.
        head: The classifier's last layer, if the features are its inputs.
        rows: Its row for each class mean.
        outside: Mean feature of other data.
    """
    weight = None if head is None else head.weight[rows]
    return {
        **_variability(deviations),
        **_means(deviations, outside),
        **_head(deviations, weight),
        **_decisions(deviations),
    }


def _variability(deviations: Deviations) -> dict[str, Any]:
    between, relative = deviations.between, deviations.loss + 4 * deviations.eps
    variance = deviations.square / between.count
    ratio = between.ratio(deviations.along)
    total = float(deviations.square.sum() / between.count.sum())
    noise = total / float(between.centred.square().sum(1).mean())
    cdnv, closest = _cdnv(variance, between.centred)
    # Rounding makes close means harder to distinguish.
    blur = 4 * deviations.mean_error / closest if closest else math.inf
    return {
        "nc1_variability": ratio,
        "nc1_variability_error": ratio * relative,
        "nc1_noise": noise,
        "nc1_noise_error": noise * relative,
        "nc1_cdnv": cdnv,
        "nc1_cdnv_error": cdnv * (relative + blur) if cdnv else 0.0,
        "class_weight": _array(between.count),
        "class_variance": _array(variance),
        "class_variance_error": float(variance.max()) * relative,
        "class_distance_error": deviations.mean_error,
        "class_distance": _array(between.centred.norm(dim=1)),
    }


def _cdnv(variance: Tensor, means: Tensor) -> tuple[float, float]:
    """Return the mean over pairs, and the smallest distance of two means."""
    count, total, closest = len(means), 0.0, math.inf
    for start in range(0, count, _BLOCK):
        rows = slice(start, start + _BLOCK)
        # Not by products, which cancel if means are close.
        apart = torch.cdist(
            means[rows], means, compute_mode="donot_use_mm_for_euclid_dist"
        )
        own = torch.arange(len(apart), device=apart.device)
        apart[own, start + own] = math.inf
        spread = (variance[rows, None] + variance) / 2
        total += float((spread / apart.square()).nan_to_num(nan=0.0).sum())
        closest = min(closest, float(apart.min()))
    return total / (count * (count - 1)), closest


def _means(deviations: Deviations, outside: Tensor | None) -> dict[str, Any]:
    centred, count = deviations.between.centred, len(deviations.between.means)
    shape = shape_of(centred)
    shortest = float(centred.norm(dim=1).min())
    eps = torch.finfo(torch.float64).eps
    # Errors of cosines and norm ratios are those of a unit vector; that of a simplex
    # distance is that of all rows together.
    unit = deviations.mean_error / shortest if shortest else 1.0
    error = 4 * unit * count**0.5 + _ROUNDINGS * eps
    least = -0.5 * math.log(2 + 2 / (count - 1))
    means = deviations.between.means
    apart = float("nan")
    if outside is not None:
        outside = outside.to(means)
        cosines = means @ outside / (means.norm(dim=1) * outside.norm())
        apart = float(cosines.abs().mean())
    return {
        "nc2_mean_norms": shape.norm_spread,
        "nc2_mean_angles": shape.angle_spread,
        "nc2_mean_gap": shape.angle_gap,
        "nc2_mean_simplex": shape.simplex_distance,
        "energy": shape.energy - least,
        # The derivative of the energy by a cosine is 1/(2 - 2 cos).
        "energy_error": error * (1 + math.exp(2 * abs(shape.energy))),
        "mean_shape_error": error,
        "nc5_outside": apart,
        "plane": _array(on_polygon(centred, centred)),
        "cosines": _array(shape.histogram),
    }


def _head(deviations: Deviations, weight: Tensor | None) -> dict[str, Any]:
    centred, count = deviations.between.centred, len(deviations.between.means)
    names = ("norms", "angles", "gap", "simplex")
    if weight is None:
        absent = {f"nc2_head_{name}": float("nan") for name in names}
        third = {f"nc3_{n}": float("nan") for n in ("duality", "simplex", "alignment")}
        plane = _array(torch.full((count, 2), torch.nan, device="cpu"))
        return {**absent, **third, "head_plane": plane, "head_shape_error": 0.0}
    shape, units = shape_of(weight), torch.nn.functional.normalize
    cosines = (units(weight, dim=1) * units(centred, dim=1)).sum(1)
    gap = weight / weight.norm() - centred / centred.norm()
    return {
        "nc2_head_norms": shape.norm_spread,
        "nc2_head_angles": shape.angle_spread,
        "nc2_head_gap": shape.angle_gap,
        "nc2_head_simplex": shape.simplex_distance,
        "nc3_duality": float(gap.square().sum()),
        "nc3_simplex": simplex_distance(weight, centred),
        "nc3_alignment": float((1 - cosines).mean()),
        "head_plane": _array(on_polygon(weight, centred)),
        "head_shape_error": _ROUNDINGS * torch.finfo(torch.float64).eps * count**0.5,
    }


def _decisions(deviations: Deviations) -> dict[str, Any]:
    """Return shares of samples as intervals, which unchecked samples make wider."""
    decided, agreed, right, own, seen, unsure = deviations.tally.tolist()
    total = whole = float(deviations.between.count.sum())
    if seen and not decided:  # there is no head
        decided = agreed = right = total = float("nan")
    return {
        **_share("nc4_disagreement", decided - agreed, decided, total, unsure),
        **_share("accuracy", right, decided, total, 0.0),
        **_share("nearest_accuracy", own, seen, whole, unsure),
    }


def _share(
    name: str, met: float, looked: float, total: float, unsure: float
) -> dict[str, float]:
    rest = total - looked
    rest = 0.0 if rest < 1e-9 * total else rest
    error = (rest / 2 + unsure) / total
    return {name: (met + rest / 2) / total, f"{name}_error": error}


def _array(tensor: Tensor) -> Any:
    return tensor.detach().double().cpu().numpy()
