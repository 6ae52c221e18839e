"""Eq 31 over scales, over mixtures and over depths."""

import math

import numpy as np

from theodolite.core import Row, stream
from theodolite.studies.littwin2016loss.critical_points.config import Config
from theodolite.studies.littwin2016loss.shared.rows import named
from theodolite.theory import (
    critical_exponent,
    exponent_gap_limit,
    exponent_of_ratio,
    exponent_slope,
    mixture_moments,
    network_mixture,
    path_weights,
)

# Far enough that the limits of figure 1(f) are reached.
_ENDS = (1e-9, 1e9)
_GAP_BETAS = (0.1, 0.5, 2.0)


def curves(config: Config) -> list[Row]:
    """Figure 1(f): the exponent against the scale, and its limits."""
    rows: list[Row] = []
    for depth in config.depths:
        found = [_network(depth, beta) for beta in config.betas]
        for beta, value in zip(config.betas, found, strict=True):
            rows += named({"exponent": value}, 1e-11 * value, depth=depth, beta=beta)
        for beta, low, high in zip(config.betas[1:], found, found[1:], strict=False):
            error = 1e-11 * (low + high)
            rows += named({"exponent_rise": high - low}, error, depth=depth, beta=beta)
        plain = critical_exponent({depth: 1.0})
        ends = {
            "shallow_end": _network(depth, _ENDS[0]),
            "deep_end": _network(depth, _ENDS[1]) - plain,
            "plain_exponent": plain,
            "residual_shortfall": plain - max(found),
        }
        rows += named(ends, 1e-12, depth=depth)
    return rows


def _network(depth: int, beta: float) -> float:
    return critical_exponent(network_mixture(path_weights(depth, beta)))


def theorem(config: Config) -> list[Row]:
    """Theorem 5 over random mixtures, its printed chain and the right proof."""
    rows: list[Row] = []
    for depth in config.depths:
        plain = critical_exponent({depth: 1.0})
        moments = [mixture_moments(m) for m in _mixtures(config, depth)]
        ratios = np.array([found.ratio for found in moments])
        shortfall = plain - exponent_of_ratio(ratios)
        # Eq 48: the largest first term less the smallest second one, over r = 2 … p.
        r = np.arange(2, depth + 1)
        chain = np.log(r - 1).max() / 2 - ((r - 2) / r).min()
        points = np.linspace(1.0, depth - 1.0, 201)[1:-1]
        step = 1e-4 * points
        low, high = exponent_of_ratio(points), exponent_of_ratio(points + 2 * step)
        found = {
            "shortfall": shortfall.min(),
            "pair_shortfall": plain - _pairs(depth).max(),
            "chain_gap": chain - plain,
            "ratio_room": (depth - 1 - ratios).min(),
            "least_slope": exponent_slope(points).min(),
            "slope_gap": np.abs(
                (high - low) / (2 * step) - exponent_slope(points + step)
            ).max(),
        }
        rows += named(found, 1e-12, depth=depth)
    return rows


def _mixtures(config: Config, depth: int) -> list[dict[int, float]]:
    """Return random mixtures of orders 2 to p, sparse and dense, and all but one."""
    rng = stream(config.seed, "mixtures", depth)
    drawn = [
        rng.dirichlet(np.full(depth - 1, concentration))
        for concentration in (0.1, 1.0)
        for _ in range(config.n_mixtures)
    ]
    # What is all but one order is no mixture to speak of.
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
    return exponent_of_ratio(second / first)


def gaps(config: Config) -> list[Row]:
    """Plain less residual exponents, over their limit in depth."""
    rows: list[Row] = []
    for beta in _GAP_BETAS:
        limit = exponent_gap_limit(beta)
        for depth in config.far_depths:
            gap = critical_exponent({depth: 1.0}) - _network(depth, beta)
            found = {"gap_excess": abs(gap - limit), "gap": gap}
            # Ratios of sums of 10⁵ terms, and a difference of logarithms.
            rows += named(found, 1e-10 * math.log(depth), depth=depth, beta=beta)
    return rows
