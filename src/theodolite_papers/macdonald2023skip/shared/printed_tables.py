"""The numbers of tables 1 to 3, as printed."""

import math
from collections.abc import Callable

from theodolite.core import Row, Rows, named_rows

from .image_config import MODIFIED, ORIGINAL, ImageConfig

# Rate; accuracy (percent) and final loss of the original, then of the modified
# network, each mean and standard deviation.
_PRINTED: dict[int, tuple[tuple[float | None, ...], ...]] = {
    1: (
        (0.2, 48.14, 19.95, 1.3883, 0.5503, 62.71, 6.14, 0.9495, 0.2150),
        (0.1, 91.64, 0.24, 0.0032, 0.0002, 91.42, 0.61, 0.0022, 0.0002),
        (0.05, 91.22, 0.25, 0.0043, 0.0003, 91.14, 0.25, 0.0041, 0.0001),
        (0.02, 89.50, 0.32, 0.0112, 0.0004, 88.94, 0.35, 0.0125, 0.0004),
    ),
    2: (
        (0.2, 69.67, 0.58, 0.0150, 0.0005, 70.07, 0.53, 0.0115, 0.0005),
        (0.1, 70.05, 0.43, 0.0147, 0.0004, 70.87, 0.42, 0.0116, 0.0003),
        (0.05, 70.04, 0.48, 0.0145, 0.0003, 70.34, 0.56, 0.0116, 0.0003),
        (0.02, 69.75, 0.56, 0.0145, 0.0003, 70.13, 0.55, 0.0116, 0.0004),
    ),
    3: (
        (0.2, 49.24, 34.75, 1.0285, 0.0066, None, None, None, None),
        (0.1, 74.69, 0.12, 0.9201, 0.0014, 74.99, 0.09, 0.8949, 0.0019),
        (0.05, 74.62, 0.12, 0.8563, 0.0041, 74.84, 0.03, 0.8420, 0.0030),
        (0.02, 73.87, 0.09, 0.8690, 0.0025, 74.00, 0.11, 0.8441, 0.0026),
    ),
}
_TRIALS = {1: 10, 2: 10, 3: 3}
# Appendix C: of ten original networks at this rate, six diverged and were left out.
KEPT = 4
_ROUNDING = {"printed_accuracy": 0.005, "printed_loss": 0.00005}


def printed_rows(*tables: int) -> Rows:
    """Return the cells of tables; ``spread`` is the printed standard deviation.

    ``error`` is the standard error of the mean plus what rounding leaves open. The
    published scripts divide by the number of trials, not by one less.
    """
    return Rows(row for table in tables for row in _cells(table))


def _cells(table: int) -> list[Row]:
    rows: list[Row] = []
    for rate, *numbers in _PRINTED[table]:
        for place, scale in enumerate((ORIGINAL, MODIFIED)):
            for offset, name in enumerate(_ROUNDING):
                mean, spread = numbers[4 * place + 2 * offset :][:2]
                if mean is None or spread is None:
                    continue
                n = KEPT if (table, rate) == (1, 0.2) else _TRIALS[table]
                rounding = _ROUNDING[name]
                labels = {"table": table, "rate": rate, "added_identity": scale}
                labels |= {"spread": spread, "n": n, "rounding": rounding}
                error = spread / math.sqrt(n - 1) + rounding
                rows += named_rows({name: mean}, error, **labels)
    return rows


def predict_table(*tables: int) -> Callable[[ImageConfig], Rows]:
    """Return a function from settings to printed cells and a count of parameters."""

    def predict(config: ImageConfig) -> Rows:
        count = config.plan(ORIGINAL).parameters
        counted = {"quantity": "parameters", "value": count, "error": 0.0}
        return Rows([*printed_rows(*tables), counted])

    return predict
