"""The derivatives that lemma 3 allows to be non-zero."""

from theodolite.core import Row, Rows

from ..shared.problems import named
from .config import LENGTHS, Config, complete, patterns


def predict(config: Config) -> Rows:
    """Return the share of derivatives that lemma 3 allows to be non-zero, by order."""
    rows: list[Row] = []
    for n in LENGTHS:
        for order in range(1, config.order + 1):
            table = [complete(p, n) > 0 for p in patterns(config.units * n, order)]
            rows += named({"allowed": sum(table) / len(table)}, 0.0, n=n, order=order)
    return Rows(rows)
