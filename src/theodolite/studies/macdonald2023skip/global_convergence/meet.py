"""Descents at certified steps, which theory gives and networks take."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows
from theodolite.studies.macdonald2023skip.global_convergence.config import Config
from theodolite.studies.macdonald2023skip.global_convergence.meet_bounded import bounded
from theodolite.studies.macdonald2023skip.global_convergence.meet_generic import generic
from theodolite.studies.macdonald2023skip.global_convergence.meet_one_layer import (
    one_layer,
)
from theodolite.studies.macdonald2023skip.global_convergence.meet_stalls import stalls

PARTS = {
    "one_layer": one_layer,
    "stalls": stalls,
    "bounded": bounded,
    "generic": generic,
}


def meet(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Return one group of descents."""
    part = PARTS.get(cell["part"])
    return Rows([] if part is None else part(config))
