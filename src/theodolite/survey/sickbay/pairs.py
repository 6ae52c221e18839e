"""All pairs, by what is at fault."""

from theodolite.survey.sickbay import (
    by_depth,
    by_norm,
    by_optimiser,
    by_sample,
    by_skip,
    by_unit,
)
from theodolite.survey.sickbay.patients import Pair

PAIRS: tuple[Pair, ...] = (
    *by_depth.PAIRS,
    *by_skip.PAIRS,
    *by_unit.PAIRS,
    *by_norm.PAIRS,
    *by_optimiser.PAIRS,
    *by_sample.PAIRS,
)
