"""Regions that several claims share."""

from theodolite.core import Region, Select, Test, above, below, highest, inside, lowest

ROUNDED = "sums and products of small matrices in double precision"
AT_MOST_ONE = below(1 + 1e-7, source="rounding", why=ROUNDED)
AT_LEAST_ONE = above(1 - 1e-7, source="rounding", why=ROUNDED)
NOT_NEGATIVE = above(-1e-11, source="rounding", why=ROUNDED)
SAME = below(1e-11, source="rounding", why=ROUNDED)
WITHIN_ROUNDING = below(1, source="rounding", why="in units of the kernel's rounding")


def never_above(rows: Select, region: Region = AT_MOST_ONE) -> Test:
    """Judge whether no row passes an upper end."""
    return inside(highest(rows), region)


def never_below(rows: Select, region: Region) -> Test:
    """Judge whether no row falls below a lower end."""
    return inside(lowest(rows), region)
