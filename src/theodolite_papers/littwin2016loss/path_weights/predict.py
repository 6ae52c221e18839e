"""Closed forms of the weights: peaks, bands, moments and slopes."""

import math

import numpy as np

from theodolite import theory
from theodolite.core import Row, Rows, named_rows

from ..shared.rows import EPS, by_length
from .config import (
    BANDS,
    BETAS,
    CHANCE,
    CHANCES,
    FIGURE_BETAS,
    FIGURE_DEPTH,
    Config,
    network,
)


def predict(config: Config) -> Rows:
    """Return weights of figure 1, and theorems 1 and 2 for deep networks."""
    rows: list[Row] = []
    for beta in FIGURE_BETAS:
        weights = theory.path_weights(FIGURE_DEPTH, BETAS[beta])
        labels = {"depth": FIGURE_DEPTH, "beta": beta}
        rows += by_length("weight", weights, 1e-13, **labels)
    for depth in config.deep:
        for beta in BETAS:
            rows += _deep(depth, beta)
    for chance in (*CHANCES, 1.0):
        depth = config.deep[-1]
        peaks = theory.path_peak(depth, chance)
        share = sum(peaks) / len(peaks) / depth
        rows += named_rows({"peak_share": share}, EPS, chance=chance, depth=depth)
    for depth in config.small_depths:
        rows += _slopes(depth)
    return Rows(rows + _lines())


def _deep(depth: int, beta: float) -> list[Row]:
    """Peak, band and moments at one depth, exact or to a part in $10^{12}$."""
    exact, (low, high) = BETAS[beta], BANDS[beta]
    peaks = theory.path_peak(depth, exact)
    share = exact / (1 + exact)
    moments = theory.path_length_moments(depth, exact)
    half = float(depth * exact / (2 * (1 + exact) ** 2))
    whole = {
        "depth_less_peak": depth - peaks[-1],
        "peak_off_by": max(abs(r - share * depth) for r in peaks),
    }
    band = (float(low), float(high))
    missing = theory.missing_mass(depth, exact, *band)
    bound = theory.log_missing_mass_bound(depth, exact, *band)
    numbers = {
        "variance_over_half": moments.variance / half,
        "log_spread": math.log10(moments.variance) / 2,
        "mean_off_by": moments.mean - float(share * depth),
    }
    outside = {
        "deep_missing": missing,
        "missing_over_bound": math.exp(math.log(missing) - bound) if missing else 0.0,
    }
    labels = {"depth": depth, "beta": beta}
    rows = named_rows(whole, 0.0, **labels) + named_rows(numbers, 1e-9, **labels)
    for name, value in outside.items():
        rows += named_rows({name: value}, 1e-9 * value, **labels)
    return rows


def _slopes(depth: int) -> list[Row]:
    r"""$C\,\partial\epsilon_r/\partial C$, and what is printed in its place."""
    lengths = np.arange(1, depth + 1)
    printed = lengths * theory.path_weights(depth, 0.5)
    labels = {"depth": depth, "beta": 0.5}
    rows = by_length("slope", theory.path_weight_slopes(depth, 0.5), 1e-14, **labels)
    return rows + by_length("printed_slope", printed, 1e-14, **labels)


def _lines() -> list[Row]:
    """Return the second line of Eq 14 for the network that is split into terms."""
    plan = network()
    weights = np.full(plan.parameters, plan.rms)
    model = theory.PathModel(blueprint=plan, weights=weights, gate=CHANCE)
    rows = by_length("line_two", model.second_line, 1e-13, depth=plan.depth)
    lengths = np.arange(1, plan.depth + 1)
    other = [math.comb(plan.depth, r) for r in lengths] * model.beta**lengths
    other /= np.linalg.norm(other)
    rows += by_length("other_epsilon", other, 1e-14, depth=plan.depth)
    return rows + by_length("epsilon", model.epsilons, 1e-14, depth=plan.depth)
