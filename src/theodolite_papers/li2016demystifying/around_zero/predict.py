r"""Eqs 9 and 26 with slope ½, and the best quadratic through ReLU."""

import numpy as np

from theodolite.core import Row, Rows, ShortcutBlueprint
from theodolite.theory import conditioning_at_zero

from ..shared.problems import EPS, named
from .config import Config, dataset


def predict(config: Config) -> Rows:
    """Return the smooth formula for ReLU networks, and ReLU's local quadratics."""
    rows: list[Row] = []
    for trial in config.seeds:
        plan = ShortcutBlueprint(width=config.width, depth=2, mid="relu")
        at_zero = conditioning_at_zero(plan, *dataset(config, trial), quantile=0.0)
        values = {"condition": at_zero.ratio, "largest": at_zero.largest}
        rows += named(values, EPS * config.width * at_zero.ratio**2, trial=trial)
    for delta in (1.0, 0.1, 0.01):
        slope, curvature = _quadratic(delta)
        values = {"slope": slope, "curvature": curvature, "scaled": curvature * delta}
        errors = {name: 16 * EPS * abs(value) for name, value in values.items()}
        rows += named(values, errors, delta=delta)
    return Rows(rows)


def _quadratic(delta: float) -> tuple[float, float]:
    r"""Return slope and curvature at 0 of the best quadratic on $[-\delta, \delta]$.

    By projection onto Legendre polynomials of $z = x/\delta$; four nodes on the half
    where ReLU is not 0 integrate it exactly.
    """
    nodes, weights = np.polynomial.legendre.leggauss(4)
    z, weight = (nodes + 1) / 2, weights / 2
    first = 3 / 2 * float(weight @ (z * z))
    second = 5 / 2 * float(weight @ (z * (3 * z**2 - 1) / 2))
    return first, 3 * second / delta
