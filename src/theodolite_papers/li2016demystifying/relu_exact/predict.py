"""Closed forms at zero for smooth activations, and a bound on ReLU spectra."""

import numpy as np

from theodolite.core import Row, Rows
from theodolite.theory import activation, conditioning_at_zero

from ..shared.problems import closed
from ..shared.whitened import whitened
from .config import ONE, TWO, Config, plan_of


def predict(config: Config) -> Rows:
    """Return condition numbers of activations without a kink, and eigenvalue bounds."""
    x, y = whitened(config.dataset, config.width)
    rows: list[Row] = []
    for kind in ONE:
        if activation(plan_of(config, kind, 2).post).curvature_at_zero is None:
            continue  # a kink at zero: there is no Hessian
        few = x[: config.one_samples], y[: config.one_samples]
        for depth in config.predicted_depths:
            condition = conditioning_at_zero(plan_of(config, kind, depth), *few)
            labels = {"kind": kind, "depth": depth}
            rows += closed(
                {"ratio": condition.ratio, "largest": condition.largest}, **labels
            )
    ceiling = np.mean(np.linalg.norm(x - y, axis=1) * np.linalg.norm(x, axis=1))
    return Rows([*rows, *closed({"ceiling": ceiling}, kind=TWO)])
