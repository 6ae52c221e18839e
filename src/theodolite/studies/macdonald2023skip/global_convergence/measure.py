"""Autodiff of what needs no certified step; no theory."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows
from theodolite.studies.macdonald2023skip.global_convergence.config import Config
from theodolite.studies.macdonald2023skip.global_convergence.measure_arithmetic import (
    arithmetic,
)
from theodolite.studies.macdonald2023skip.global_convergence.measure_kernels import (
    kernels,
)
from theodolite.studies.macdonald2023skip.global_convergence.measure_quartic import (
    quartic,
)

PARTS = {"arithmetic": arithmetic, "kernels": kernels, "bounded": quartic}


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one group of numbers; descents at certified steps are of both roads."""
    part = PARTS.get(cell["part"])
    return Rows([] if part is None else part(config))
