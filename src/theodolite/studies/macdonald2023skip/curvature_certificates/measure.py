"""What needs no theory of systems: functions, matrices and autodiff."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows
from theodolite.studies.macdonald2023skip.curvature_certificates.config import Config
from theodolite.studies.macdonald2023skip.curvature_certificates.measure_blocks import (
    products,
)
from theodolite.studies.macdonald2023skip.curvature_certificates.measure_convex import (
    quadratics,
)
from theodolite.studies.macdonald2023skip.curvature_certificates.measure_rough import (
    roughness,
)

_PARTS = {"quadratics": quadratics, "roughness": roughness, "products": products}


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one part; parts that need theory have their rows in ``meet``."""
    part = _PARTS.get(cell["part"])
    return Rows([] if part is None else part(config))
