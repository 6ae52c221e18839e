"""Eq 16 and independent paths at the measured mean length of each network."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows, named_rows
from theodolite.theory import path_weights

from .config import RHO, SCALES, Config
from .measure import ensemble
from .predict import moments


def combine(config: Config, cell: Mapping[str, Any]) -> Rows:
    r"""Compare mean and variance of path lengths with Eq 16, network by network.

    The variance is compared with that of two laws with the measured mean.

    Independent paths have binomial energies, $\binom{p-1}{r-1} g^{2r}$ with gain $g$
    per layer; coherent ones the square of a binomial, which is half as wide.
    """
    if cell["told"] == "paths":
        return Rows()
    _, _, reading = ensemble(config, tuple(cell.items()))
    held, blocks = reading.of("output"), cell["depth"] - 1
    variance = held["spread"] ** 2
    error = 2 * held["spread"] * held["spread_error"]
    squared = moments(path_weights(cell["depth"], held["beta"]) ** 2)["variance"]
    taken = held["effective_depth"] / blocks
    binomial = blocks * taken * (1 - taken)
    rows = named_rows({"over_squared": variance / squared}, error / squared)
    rows += named_rows({"over_binomial": variance / binomial}, error / binomial)
    beta = RHO * SCALES[cell["scale"]] ** 0.5
    law = moments(path_weights(cell["depth"], beta) ** 2)["length"]
    gap = (held["effective_depth"] + 1 - law) / cell["depth"]
    error = held["effective_depth_error"] / cell["depth"]
    return Rows(rows + named_rows({"deeper": gap}, error))
