"""Networks brought to rest, and networks written down, by autodiff alone."""

from collections.abc import Mapping
from typing import Any

from theodolite.core import Rows
from theodolite.studies.poggio2020square.stationary_layers.config import (
    CONSTRUCTED,
    Config,
)


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure the networks of a cell."""
    if cell["kind"] == CONSTRUCTED:
        from theodolite.studies.poggio2020square.stationary_layers import (
            measure_written as part,
        )

        return part.written(config)
    from theodolite.studies.poggio2020square.stationary_layers import (
        measure_trained as trained,
    )

    return trained.trained(config, cell["kind"], cell["decay"])
