"""Train networks and read their path ensembles along the way."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows

from .config import IMAGES, Config
from .measure_images import measure_images
from .measure_layerwise import measure_layerwise


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train the network of a cell."""
    if cell["family"] == IMAGES:
        (rows,) = measure_images(config, [cell])
        return rows
    return measure_layerwise(config, cell)
