"""Predicted numbers of critical points, asymptotic and exact."""

import math
from itertools import pairwise

import numpy as np

from theodolite import theory
from theodolite.core import Row, Rows, SpinGlassBlueprint, named_rows, stream

from .config import LADDER, LEVEL, MIXTURES, Config

# Standard errors of a sampled mean that its error covers.
_COVER = 4.0
# Orders whose approach to Eq 31 is followed, and dimensions in which counts rise.
APPROACHED = (3, 5)
RISING = (2, 3, 5, 8, 12, 20)
_RATIOS = tuple(1 + 0.5 * i for i in range(9))


def counts(config: Config) -> list[Row]:
    """Return mean counts of the glasses by index, and Eq 31 read as a count."""
    rows: list[Row] = []
    # The whole ladder is predicted, even if not all of it is counted.
    glasses = {3: (), **dict(config.glasses)}
    glasses[3] = tuple(dict.fromkeys((*glasses[3], *LADDER)))
    for width, names in glasses.items():
        for name in names:
            plan = SpinGlassBlueprint(width=width, mixture=MIXTURES[name])
            labels = {"width": width, "mixture": name}
            rows += _row("total", theory.mean_critical_points(plan), **labels)
            for k in range(width):
                count = theory.mean_critical_points(plan, index=k)
                rows += _row("count", count, index=k, **labels)
            growth = math.exp(width * theory.critical_exponent(MIXTURES[name]))
            rows += named_rows({"asymptotic": growth}, 1e-12 * growth, **labels)
            if name == "two-three" and width == 3:
                counts = [
                    theory.mean_critical_points(plan, index=k, below=LEVEL, seed=k)
                    for k in range(width)
                ]
                error = sum(_COVER * part.error * part.value for part in counts)
                below = sum(part.value for part in counts)
                rows += named_rows({"below": below}, error, **labels)
    return rows


def _row(name: str, count: theory.MeanCount, **labels: object) -> list[Row]:
    cover = _COVER if count.method == "sampling" else 1.0
    return named_rows({name: count.value}, cover * count.error * count.value, **labels)


def approach(config: Config) -> list[Row]:
    r"""$\frac1\Lambda \log E\,Crt_k$ less Eq 31, dimension by dimension."""
    rows: list[Row] = []
    for order in APPROACHED:
        limit = theory.critical_exponent({order: 1.0})
        for width in config.limits:
            for k in range(3):
                plan = SpinGlassBlueprint(width=width, mixture={order: 1.0})
                count = theory.mean_critical_points(plan, index=k)
                error = count.error / width
                labels = {"order": order, "width": width, "index": k}
                rows += named_rows(
                    {"excess": count.log / width - limit}, error, **labels
                )
        rival = math.log(order - 1) / 2 - limit
        rows += named_rows({"rival_excess": rival}, 1e-12, order=order)
    return rows


def rises() -> list[Row]:
    r"""Rises of $\log E\,Crt_k$ from one $x = v''/v'$ to the next, by dimension."""
    rows: list[Row] = []
    for width in RISING:
        for k in range(min(2, (width + 1) // 2)):
            logs = [_of_ratio(width, x, k) for x in _RATIOS]
            for low, high in pairwise(logs):
                error = low.error + high.error
                rows += named_rows(
                    {"rise": high.log - low.log}, error, width=width, index=k
                )
    return rows


def _of_ratio(width: int, ratio: float, index: int) -> theory.MeanCount:
    """Return the mean count at a ratio, from a mixture of its two nearest orders."""
    low = math.floor(ratio) + 1  # the order whose own ratio is just below
    share = ratio - (low - 1)
    # x is the mean of r − 1 under weights ε²r.
    weights = {low: (1 - share) / low, low + 1: share / (low + 1)}
    total = sum(weights.values())
    mixture = {r: w / total for r, w in weights.items()}
    plan = SpinGlassBlueprint(width=width, mixture=mixture)
    return theory.mean_critical_points(plan, index=index)


def kept(config: Config) -> list[Row]:
    """Return Eq 31 and its ratio when paths of length 1 are kept."""
    rows: list[Row] = []
    for depth in config.depths:
        for beta in config.betas:
            squares = theory.path_weights(depth, beta) ** 2
            mixture = dict(enumerate((squares / squares.sum()).tolist(), start=1))
            first = sum(w * r for r, w in mixture.items())
            second = sum(w * r * (r - 1) for r, w in mixture.items())
            x = second / first
            numbers = {
                "kept_ratio": x,
                "kept_exponent": math.log(x) / 2 - (x - 1) / (x + 1),
            }
            rows += named_rows(numbers, 1e-12, depth=depth, beta=beta)
    return rows


# Far enough that the limits of figure 1(f) are reached.
_ENDS = (1e-9, 1e9)
_GAP_BETAS = (0.1, 0.5, 2.0)


def curves(config: Config) -> list[Row]:
    """Return figure 1(f): the exponent against the scale, and its limits."""
    rows: list[Row] = []
    for depth in config.depths:
        exponents = [_network(depth, beta) for beta in config.betas]
        for beta, value in zip(config.betas, exponents, strict=True):
            rows += named_rows(
                {"exponent": value}, 1e-11 * value, depth=depth, beta=beta
            )
        for beta, low, high in zip(
            config.betas[1:], exponents, exponents[1:], strict=False
        ):
            error = 1e-11 * (low + high)
            rows += named_rows(
                {"exponent_rise": high - low}, error, depth=depth, beta=beta
            )
        plain = theory.critical_exponent({depth: 1.0})
        ends = {
            "shallow_end": _network(depth, _ENDS[0]),
            "deep_end": _network(depth, _ENDS[1]) - plain,
            "plain_exponent": plain,
            "residual_shortfall": plain - max(exponents),
        }
        rows += named_rows(ends, 1e-12, depth=depth)
    return rows


def _network(depth: int, beta: float) -> float:
    return theory.critical_exponent(
        theory.network_mixture(theory.path_weights(depth, beta))
    )


def theorem(config: Config) -> list[Row]:
    """Return theorem 5 on random mixtures, by its printed chain and a correct proof."""
    rows: list[Row] = []
    for depth in config.depths:
        plain = theory.critical_exponent({depth: 1.0})
        moments = [theory.mixture_moments(m) for m in _mixtures(config, depth)]
        ratios = np.array([one.ratio for one in moments])
        shortfall = plain - theory.exponent_of_ratio(ratios)
        # Eq 48: the largest first term less the smallest second one, over r = 2 … p.
        r = np.arange(2, depth + 1)
        chain = np.log(r - 1).max() / 2 - ((r - 2) / r).min()
        points = np.linspace(1.0, depth - 1.0, 201)[1:-1]
        step = 1e-4 * points
        low, high = (
            theory.exponent_of_ratio(points),
            theory.exponent_of_ratio(points + 2 * step),
        )
        numbers = {
            "shortfall": shortfall.min(),
            "pair_shortfall": plain - _pairs(depth).max(),
            "chain_gap": chain - plain,
            "ratio_room": (depth - 1 - ratios).min(),
            "least_slope": theory.exponent_slope(points).min(),
            "slope_gap": np.abs(
                (high - low) / (2 * step) - theory.exponent_slope(points + step)
            ).max(),
        }
        rows += named_rows(numbers, 1e-12, depth=depth)
    return rows


def _mixtures(config: Config, depth: int) -> list[dict[int, float]]:
    """Return random mixtures of orders 2 to p, sparse, dense, and nearly one order."""
    rng = stream(config.seed, "mixtures", depth)
    drawn = [
        rng.dirichlet(np.full(depth - 1, concentration))
        for concentration in (0.1, 1.0)
        for _ in range(config.n_mixtures)
    ]
    # Leave out mixtures that are almost a single order.
    drawn = [w for w in drawn if w[-1] < 1 - 1e-3]
    nearly = np.zeros(depth - 1)
    nearly[[-2, -1]] = 0.01, 0.99
    return [dict(enumerate((w / w.sum()).tolist(), start=2)) for w in (*drawn, nearly)]


def _pairs(depth: int) -> np.ndarray:
    """Return exponents of order p with each lower one, at shares of 1 to 99 %."""
    lower = np.arange(2.0, depth)[:, None]
    share = np.linspace(0.01, 0.99, 99)
    first = share * lower + (1 - share) * depth
    second = share * lower * (lower - 1) + (1 - share) * depth * (depth - 1)
    return theory.exponent_of_ratio(second / first)


def gaps(config: Config) -> list[Row]:
    """Return plain minus residual exponents, divided by their limit in depth."""
    rows: list[Row] = []
    for beta in _GAP_BETAS:
        limit = theory.exponent_gap_limit(beta)
        for depth in config.far_depths:
            gap = theory.critical_exponent({depth: 1.0}) - _network(depth, beta)
            numbers = {"gap_excess": abs(gap - limit), "gap": gap}
            # Ratios of sums of 10⁵ terms, and a difference of logarithms.
            rows += named_rows(numbers, 1e-10 * math.log(depth), depth=depth, beta=beta)
    return rows


def predict(config: Config) -> Rows:
    """Return exponents, their proof, and mean numbers at finite dimension."""
    return Rows(
        [
            *curves(config),
            *theorem(config),
            *gaps(config),
            *counts(config),
            *approach(config),
            *rises(),
            *kept(config),
        ]
    )
