"""Real networks, differentiated and trained by gradient descent; no theory."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows
from theodolite.studies.poggio2020square.norm_flow.config import Config
from theodolite.studies.poggio2020square.norm_flow.measure_footnotes import footnotes
from theodolite.studies.poggio2020square.norm_flow.measure_identities import identities
from theodolite.studies.poggio2020square.norm_flow.measure_layers import layered
from theodolite.studies.poggio2020square.norm_flow.measure_networks import networks
from theodolite.studies.poggio2020square.norm_flow.measure_norms import held, units

PARTS = {
    "identities": identities,
    "held": held,
    "footnotes": footnotes,
    "layered": layered,
    "units": units,
    "networks": networks,
}


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one group of numbers."""
    return Rows(PARTS[cell["part"]](config))
