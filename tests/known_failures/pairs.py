"""All pairs, by what is at fault."""

from tests.known_failures import (
    by_depth,
    by_norm,
    by_optimizer,
    by_sample,
    by_skip,
    by_unit,
)
from tests.known_failures.cases import Pair

PAIRS: tuple[Pair, ...] = (
    *by_depth.PAIRS,
    *by_skip.PAIRS,
    *by_unit.PAIRS,
    *by_norm.PAIRS,
    *by_optimizer.PAIRS,
    *by_sample.PAIRS,
)
