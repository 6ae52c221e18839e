"""Eqs 12 to 16 in closed form."""

import numpy as np

from theodolite.core import Row, Rows, named_rows
from theodolite.theory import batch_norm_jacobian, weight_norm_speeds

from .config import BATCH, EPS, GAIN, KERNELS, LENGTHS, Config, regression


def predict(config: Config) -> Rows:
    """Return speeds, Jacobians and bounds."""
    rows: list[Row] = []
    for trial in config.seeds:
        x, y, v, probe = regression(config, trial)
        speed = -2 * x.T @ (GAIN * x @ v - y)
        for length in LENGTHS:
            g, moved = weight_norm_speeds(GAIN, length * v, speed)
            numbers = {"gain_speed": g, "vector_speed": moved @ probe}
            rows += named_rows(numbers, 1e-11, trial=trial, length=length)
        tangent = GAIN * float(probe @ (speed - v * (v @ speed)))
        rows += named_rows({"tangent_speed": tangent}, 1e-11, trial=trial)
    for name, centred in (("jacobian", True), ("printed_jacobian", False)):
        for (i, j), value in np.ndenumerate(
            batch_norm_jacobian(BATCH, EPS, centred=centred)
        ):
            rows += named_rows({name: value}, 1e-13, row=i, column=j)
    for k in KERNELS:  # what a unit kernel can stretch an image by, at most
        rows += named_rows({"bound": k}, 0.0, kernel=k)
    return Rows(rows)
