"""Numbers that several studies read off rows: signed extremes, and constants."""

from theodolite.core import (
    Region,
    Select,
    Test,
    every,
    highest,
    inside,
    lowest,
)


def always(rows: Select, region: Region) -> Test:
    """Every row lies in a region, its error included."""
    return every(inside(highest(rows), region), inside(lowest(rows), region))
