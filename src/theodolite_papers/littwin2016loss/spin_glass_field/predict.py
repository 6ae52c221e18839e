"""Variance, covariance and the numbers of definition 3."""

from theodolite.core import Row, Rows, SpinGlassBlueprint, named_rows
from theodolite.theory import energy_covariance, mixture_moments

from ..shared.rows import EPS
from .config import MIXTURES, OFF, OVERLAP, Config


def predict(config: Config) -> Rows:
    """Return the closed forms of every mixture and dimension."""
    rows: list[Row] = []
    for name, mixture in MIXTURES.items():
        moments = mixture_moments(mixture)
        for width in config.widths:
            glass = SpinGlassBlueprint(width=width, mixture=mixture)
            at = energy_covariance(glass, [1.0, OVERLAP, OFF**2]) / width
            numbers = {
                "variance": at[0],
                "covariance": at[1],
                "variance_off": at[2],
                "slope_square": moments.first,
                "bend_square": moments.second,
                "radial_square": moments.first + moments.second,
                "spread": moments.spread,
            }
            rows += named_rows(numbers, 8 * EPS, width=width, mixture=name)
    return Rows(rows)
