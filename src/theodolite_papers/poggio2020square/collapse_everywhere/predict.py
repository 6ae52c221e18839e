"""The limit of complete collapse: class means on a simplex, heads along them."""

import math

from theodolite.core import Row, Rows

from .config import Config


def predict(config: Config) -> Rows:
    r"""Return the limits of NC1 to NC4, and of NC3 with uncentred class means.

    All four vanish in complete collapse. A head without bias that fits one-hot labels
    from orthogonal class means is parallel to the uncentred means, not to the centred
    ones: $\|W/\|W\| - A/\|A\|\|^2$ is then $2 - 2\sqrt{1 - 1/C}$.
    """
    rows: list[Row] = [
        {"quantity": name, "value": 0.0, "error": 0.0}
        for name in ("nc1", "nc2", "nc3", "nc4")
    ]
    for task in config.tasks:
        value = 2 - 2 * math.sqrt(1 - 1 / len(task))
        rows.append(
            {"quantity": "raw_duality", "classes": len(task), "value": value,
             "error": 1e-15}
        )  # fmt: skip
    return Rows(rows)
