"""Networks brought to rest, and networks written down, by autodiff alone."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows

from .config import CONSTRUCTED, Config


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure the networks of a cell."""
    if cell["kind"] == CONSTRUCTED:
        from . import measure_written as part

        return part.written(config)
    from . import measure_trained as trained

    return trained.trained(config, cell["kind"], cell["decay"])
