"""Predictions from interpolation and from the time constant of decay."""

from theodolite.core import Row, Rows

from .config import Config


def predict(config: Config) -> Rows:
    r"""Return predictions that need no training.

    At interpolation $\rho f_n = y_n$, so that norm times margin is 1. Norms that
    nothing but decay moves fall as $e^{-\eta\lambda t/(1-\mu)}$ in $t$ steps, so that
    the decay that forgets a start goes as the inverse of the length.
    """
    rows: list[Row] = [
        {"quantity": "norm_times_margin", "value": 1.0, "error": 0.0},
        {"quantity": "threshold_exponent", "value": -1.0, "error": 0.0},
    ]
    return Rows(rows)
