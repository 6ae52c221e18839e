"""Rates, cycles and constants in closed form."""

from theodolite.core import Row, Rows, named_rows
from theodolite.theory import nonlinearity_bounds

from .config import GATES, RATES, Config, quadratic

TINY = 1e-14


def predict(config: Config) -> Rows:
    """Return rates on quadratics, cycles, and constants of nonlinearities."""
    rows: list[Row] = []
    for trial in config.seeds:
        curvatures, step, _ = quadratic(config, trial)
        mu, beta = 2 * curvatures.min(), curvatures.max()
        bound = 1 - mu * step * (1 - beta * step / 2)
        rows += named_rows({"rate_bound": bound}, TINY, trial=trial)
    for rate in RATES:
        # z becomes -z: 2z = 3/2 rate √z.
        rows += named_rows({"cycle": (0.75 * rate) ** 2}, TINY, rate=rate)
    for gate in GATES:
        numbers = {"slope_constant": nonlinearity_bounds(gate).curvature}
        rows += named_rows(numbers, TINY, activation=gate)
    return Rows(rows)
