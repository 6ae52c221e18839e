"""What the paper prints of one table, and parameters by formula."""

from collections.abc import Callable

from theodolite.core import Rows

from .image_config import ORIGINAL, ImageConfig
from .printed_tables import printed_rows


def predict_table(*tables: int) -> Callable[[ImageConfig], Rows]:
    """Return a function from settings to printed cells and a count of parameters."""

    def predict(config: ImageConfig) -> Rows:
        count = config.plan(ORIGINAL).parameters
        counted = {"quantity": "parameters", "value": count, "error": 0.0}
        return Rows([*printed_rows(*tables), counted])

    return predict
