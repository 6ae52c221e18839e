"""Closed forms and certified bounds at the weights of real networks."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows
from theodolite.studies.macdonald2023skip.curvature_certificates.config import Config
from theodolite.studies.macdonald2023skip.curvature_certificates.meet_kernels import (
    kernels,
)
from theodolite.studies.macdonald2023skip.curvature_certificates.meet_lemmas import (
    lemmas,
)
from theodolite.studies.macdonald2023skip.curvature_certificates.meet_systems import (
    looseness,
    systems,
)

_PARTS = {
    "lemmas": lemmas,
    "systems": systems,
    "kernels": kernels,
    "looseness": looseness,
}


def meet(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one part against theory."""
    part = _PARTS.get(cell["part"])
    return Rows([] if part is None else part(config))
