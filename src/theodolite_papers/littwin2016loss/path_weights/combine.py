"""Closed forms beside exact integers and built networks."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from theodolite import theory
from theodolite.core import Row, Rows, named_rows

from ..shared.enumeration import built
from ..shared.exact_weights import ExactWeights
from ..shared.rows import EPS
from .config import BETAS, CHANCE, SETTINGS, WIDTHS, Config, wide


def combine(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Compare closed forms with exact integers, and read β off built networks."""
    depth = cell["depth"]
    if cell["part"] == "network":
        return Rows(_scales(cell["trial"]))
    make = _small if cell["part"] == "small" else _exact
    rows: list[Row] = [row for beta in BETAS for row in make(depth, beta)]
    return Rows(rows + _every_length(depth) if cell["part"] == "small" else rows)


def _exact(depth: int, beta: float) -> list[Row]:
    exact = BETAS[beta]
    weights = ExactWeights(depth=depth, beta=exact)
    moments = theory.path_length_moments(depth, exact)
    mean, variance = (float(m) for m in weights.moments())
    z = _log(weights.square_sum) / 2
    whole = {"peaks_apart": list(theory.path_peak(depth, exact)) != weights.maximisers}
    gaps = {
        "moment_gap": abs(moments.mean / mean - 1)
        + abs(moments.variance / variance - 1),
        "direct_z_gap": abs(theory.log_path_normaliser(depth, exact) - z)
        / max(1, abs(z)),
        "legendre_z_gap": abs(theory.log_legendre_normaliser(depth, exact) - z)
        / max(1, abs(z)),
    }
    rows = named_rows(whole, 0.0, beta=beta) + named_rows(gaps, 4 * EPS, beta=beta)
    rows += _sum_asymptotic(depth, beta)
    return rows + (_asymptotic(depth, beta) if beta < 1 else [])


def _sum_asymptotic(depth: int, beta: float) -> list[Row]:
    r"""Compare $\sum_{r=0}^p \binom{p}{r}^2\beta^{2r}$ with its asymptotic form."""
    weights = ExactWeights(depth=depth, beta=BETAS[beta], shift=0)
    # The term of length 0 is 1, which is not among the weights.
    gap = _log(weights.square_sum + 1) - (2 * depth + 1) * math.log1p(beta)
    root = math.log(4 * math.pi * depth * beta) / 2
    numbers = {
        "sum_asymptotic_scaled": abs(gap + root) * depth,
        "sum_without_root_scaled": abs(gap) * depth,
    }
    return named_rows(numbers, 4 * EPS * depth**2, beta=beta)


def _asymptotic(depth: int, beta: float) -> list[Row]:
    r"""Compare $P_p(x)$ with its asymptotic form in the proof of theorem 2."""
    x = (1 + beta**2) / (1 - beta**2)
    root = math.sqrt(x**2 - 1)
    tends = (depth + 0.5) * math.log(x + root) - math.log(root) / 2
    tends -= math.log(2 * math.pi * depth) / 2
    legendre = theory.log_legendre_sum(depth, beta) - depth * math.log(1 - beta**2)
    numbers = {"asymptotic_scaled": abs(legendre - tends) * depth}
    return named_rows(numbers, 4 * EPS * depth**2, beta=beta)


def _small(depth: int, beta: float) -> list[Row]:
    """Compare Eq 37 with sums from 1, as printed, and from 0."""
    printed = ExactWeights(depth=depth, beta=BETAS[beta], shift=0).square_sum
    legendre = math.exp(theory.log_legendre_sum(depth, BETAS[beta]))
    error = 16 * EPS * depth * legendre
    gaps = {
        "legendre_less_sum": legendre - float(printed),
        "legendre_less_whole_sum": legendre - float(printed + 1),
    }
    return named_rows(gaps, error, beta=beta)


def _every_length(depth: int) -> list[Row]:
    """Count wrong peaks at, inside and outside the ends of each interval of lemma 4."""
    missed = {"inside_missed": 0, "ends_missed": 0, "outside_missed": 0}
    step = Fraction(1, 10**9)

    def peaks(beta: Fraction) -> list[int]:
        return ExactWeights(depth=depth, beta=beta).maximisers

    for k in range(1, depth + 1):
        interval = theory.scale_for_path_length(depth, k)
        missed["inside_missed"] += peaks(interval.middle) != [k]
        if k > 1:
            missed["ends_missed"] += peaks(interval.low) != [k - 1, k]
            missed["outside_missed"] += k in peaks(interval.low * (1 - step))
        if isinstance(interval.high, Fraction):
            missed["ends_missed"] += peaks(interval.high) != [k, k + 1]
            missed["outside_missed"] += k in peaks(interval.high * (1 + step))
    return named_rows(missed, 0.0)


def _scales(trial: int) -> list[Row]:
    r"""Return $\beta$ of built networks of several widths."""
    rows: list[Row] = []
    for setting in SETTINGS:
        for width in WIDTHS:
            plan = wide(setting, width)
            weights = built(plan, seed=trial).weights.detach().numpy()
            beta = theory.PathModel(blueprint=plan, weights=weights, gate=CHANCE).beta
            numbers = {"beta": beta, "beta_less_chance": beta - CHANCE}
            rows += named_rows(numbers, 64 * EPS, setting=setting, width=width)
    return rows


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)
