"""Mean numbers of critical points at finite dimension."""

import math
from itertools import pairwise

from theodolite.core import Row, SpinGlassBlueprint
from theodolite.studies.littwin2016loss.critical_points.config import (
    LADDER,
    LEVEL,
    MIXTURES,
    Config,
)
from theodolite.studies.littwin2016loss.shared.rows import named
from theodolite.theory import (
    MeanCount,
    critical_exponent,
    mean_critical_points,
    path_weights,
)

# Standard errors of a sampled mean that its error covers.
_COVER = 4.0
# Orders whose approach to Eq 31 is followed, and dimensions in which counts rise.
APPROACHED = (3, 5)
RISING = (2, 3, 5, 8, 12, 20)
_RATIOS = tuple(1 + 0.5 * i for i in range(9))


def counts(config: Config) -> list[Row]:
    """Means by index of the glasses that are counted, and Eq 31 taken for a number."""
    rows: list[Row] = []
    # The whole ladder is foretold, also where not all of it is counted.
    glasses = {3: (), **dict(config.glasses)}
    glasses[3] = tuple(dict.fromkeys((*glasses[3], *LADDER)))
    for width, names in glasses.items():
        for name in names:
            plan = SpinGlassBlueprint(width=width, mixture=MIXTURES[name])
            labels = {"width": width, "mixture": name}
            rows += _row("total", mean_critical_points(plan), **labels)
            for k in range(width):
                found = mean_critical_points(plan, index=k)
                rows += _row("count", found, index=k, **labels)
            growth = math.exp(width * critical_exponent(MIXTURES[name]))
            rows += named({"asymptotic": growth}, 1e-12 * growth, **labels)
            if name == "two-three" and width == 3:
                rows += _below(plan, **labels)
    return rows


def _below(plan: SpinGlassBlueprint, **labels: object) -> list[Row]:
    """Return the mean number of all critical points up to an energy."""
    found = [
        mean_critical_points(plan, index=k, below=LEVEL, seed=k)
        for k in range(plan.width)
    ]
    error = sum(_COVER * part.error * part.value for part in found)
    return named({"below": sum(part.value for part in found)}, error, **labels)


def _row(name: str, found: MeanCount, **labels: object) -> list[Row]:
    cover = _COVER if found.method == "sampling" else 1.0
    return named({name: found.value}, cover * found.error * found.value, **labels)


def approach(config: Config) -> list[Row]:
    r"""$\frac1\Lambda \log E\,Crt_k$ less Eq 31, dimension by dimension."""
    rows: list[Row] = []
    for order in APPROACHED:
        limit = critical_exponent({order: 1.0})
        for width in config.limits:
            for k in range(3):
                plan = SpinGlassBlueprint(width=width, mixture={order: 1.0})
                found = mean_critical_points(plan, index=k)
                error = found.error / width
                labels = {"order": order, "width": width, "index": k}
                rows += named({"excess": found.log / width - limit}, error, **labels)
        rival = math.log(order - 1) / 2 - limit
        rows += named({"rival_excess": rival}, 1e-12, order=order)
    return rows


def rises() -> list[Row]:
    r"""Rises of $\log E\,Crt_k$ from one $x = v''/v'$ to the next, by dimension."""
    rows: list[Row] = []
    for width in RISING:
        for k in range(min(2, (width + 1) // 2)):
            logs = [_of_ratio(width, x, k) for x in _RATIOS]
            for low, high in pairwise(logs):
                error = low.error + high.error
                rows += named({"rise": high.log - low.log}, error, width=width, index=k)
    return rows


def _of_ratio(width: int, ratio: float, index: int) -> MeanCount:
    """Return the mean count at a ratio, by two orders that have it between them."""
    low = math.floor(ratio) + 1  # the order whose own ratio is just below
    share = ratio - (low - 1)
    # x is the mean of r − 1 under weights ε²r.
    weights = {low: (1 - share) / low, low + 1: share / (low + 1)}
    total = sum(weights.values())
    mixture = {r: w / total for r, w in weights.items()}
    plan = SpinGlassBlueprint(width=width, mixture=mixture)
    return mean_critical_points(plan, index=index)


def kept(config: Config) -> list[Row]:
    """Eq 31 and its ratio where paths of length 1 are kept."""
    rows: list[Row] = []
    for depth in config.depths:
        for beta in config.betas:
            squares = path_weights(depth, beta) ** 2
            mixture = dict(enumerate((squares / squares.sum()).tolist(), start=1))
            first = sum(w * r for r, w in mixture.items())
            second = sum(w * r * (r - 1) for r, w in mixture.items())
            x = second / first
            found = {
                "kept_ratio": x,
                "kept_exponent": math.log(x) / 2 - (x - 1) / (x + 1),
            }
            rows += named(found, 1e-12, depth=depth, beta=beta)
    return rows
