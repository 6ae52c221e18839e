"""All that theory says of critical points, asymptotic and exact."""

from theodolite.core import Rows
from theodolite.studies.littwin2016loss.critical_points.config import Config
from theodolite.studies.littwin2016loss.critical_points.predict_counts import (
    approach,
    counts,
    kept,
    rises,
)
from theodolite.studies.littwin2016loss.critical_points.predict_exponents import (
    curves,
    gaps,
    theorem,
)


def predict(config: Config) -> Rows:
    """Return exponents, their proof, and mean numbers at finite dimension."""
    return Rows(
        [
            *curves(config),
            *theorem(config),
            *gaps(config),
            *counts(config),
            *approach(config),
            *rises(),
            *kept(config),
        ]
    )
