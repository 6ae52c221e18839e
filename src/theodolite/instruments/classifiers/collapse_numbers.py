r"""The numbers of neural collapse, from class means, sums about them and a head.

References:
    Papyan, Han and Donoho (2020), Prevalence of neural collapse during the terminal
    phase of deep learning training, PNAS (NC1 to NC4).
    Galanti, György and Hutter (2022), On the role of neural collapse in transfer
    learning, ICLR (class-distance normalised variance).
    Ammar et al. (2024), NECO: neural collapse based out-of-distribution detection,
    ICLR (NC5).
"""

import math
from typing import Any

import torch
from torch import Tensor

from theodolite.instruments.classifiers.final_layer import Head
from theodolite.instruments.classifiers.kept_features import Deviations
from theodolite.instruments.classifiers.simplex import (
    on_polygon,
    shape_of,
    simplex_distance,
)

# Rows of a matrix of pairs at a time, by choice.
_BLOCK = 512
# Roundings of float64 that sums and products of the head's shape may be off by.
_ROUNDINGS = 64


def numbers_of(
    found: Deviations, head: Head | None, rows: Tensor, outside: Tensor | None
) -> dict[str, Any]:
    """Return the fields of a reading.

    Args:
        found: Class means, and features about them.
        head: The classifier's last layer, where the features are its inputs.
        rows: Its row for each class mean.
        outside: Mean of features of other data.
    """
    weight = None if head is None else head.weight[rows]
    return {
        **_variability(found),
        **_means(found, outside),
        **_head(found, weight),
        **_decisions(found),
    }


def _variability(found: Deviations) -> dict[str, Any]:
    between, relative = found.between, found.loss + 4 * found.eps
    variance = found.square / between.count
    ratio = between.ratio(found.along)
    total = float(found.square.sum() / between.count.sum())
    noise = total / float(between.centred.square().sum(1).mean())
    cdnv, closest = _cdnv(variance, between.centred)
    # Means that are close are told apart the less the more they are rounded.
    blur = 4 * found.mean_error / closest if closest else math.inf
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
        "class_distance_error": found.mean_error,
        "class_distance": _array(between.centred.norm(dim=1)),
    }


def _cdnv(variance: Tensor, means: Tensor) -> tuple[float, float]:
    """Return the mean over pairs, and the least distance of two means."""
    count, total, closest = len(means), 0.0, math.inf
    for start in range(0, count, _BLOCK):
        rows = slice(start, start + _BLOCK)
        # Not by products, which cancel where means are close.
        apart = torch.cdist(
            means[rows], means, compute_mode="donot_use_mm_for_euclid_dist"
        )
        own = torch.arange(len(apart), device=apart.device)
        apart[own, start + own] = math.inf
        spread = (variance[rows, None] + variance) / 2
        total += float((spread / apart.square()).nan_to_num(nan=0.0).sum())
        closest = min(closest, float(apart.min()))
    return total / (count * (count - 1)), closest


def _means(found: Deviations, outside: Tensor | None) -> dict[str, Any]:
    centred, count = found.between.centred, len(found.between.means)
    shape = shape_of(centred)
    shortest = float(centred.norm(dim=1).min())
    eps = torch.finfo(torch.float64).eps
    # Cosines and shares of norms move by what a unit vector does; a simplex distance
    # by that of all rows together.
    unit = found.mean_error / shortest if shortest else 1.0
    error = 4 * unit * count**0.5 + _ROUNDINGS * eps
    least = -0.5 * math.log(2 + 2 / (count - 1))
    means = found.between.means
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
        # The energy's slope by a cosine is 1/(2 - 2 cos).
        "energy_error": error * (1 + math.exp(2 * abs(shape.energy))),
        "mean_shape_error": error,
        "nc5_outside": apart,
        "plane": _array(on_polygon(centred, centred)),
        "cosines": _array(shape.histogram),
    }


def _head(found: Deviations, weight: Tensor | None) -> dict[str, Any]:
    centred, count = found.between.centred, len(found.between.means)
    names = ("norms", "angles", "gap", "simplex")
    if weight is None:
        absent = {f"nc2_head_{name}": float("nan") for name in names}
        third = {f"nc3_{n}": float("nan") for n in ("duality", "simplex", "alignment")}
        plane = _array(torch.full((count, 2), torch.nan))
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


def _decisions(found: Deviations) -> dict[str, Any]:
    """Return shares of samples; of those not looked at, nothing is known."""
    decided, agreed, right, own, seen, unsure = found.tally.tolist()
    total = whole = float(found.between.count.sum())
    if seen and not decided:  # nobody decides
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
