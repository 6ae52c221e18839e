"""What figure 9 shows, and counted parameters beside the formula."""

from theodolite.core import Roads, Row, Rows, points
from theodolite.studies.li2016demystifying.shared.cifar_judging import ERROR
from theodolite.studies.li2016demystifying.shared.cifar_tables import beside


def table(roads: Roads) -> Rows:
    """Return final errors in percent by shortcut depth and depth, side by side."""
    found = points(ERROR(roads), ("shortcut", "depth"))
    names = found.levels("shortcut")
    middle = (len(names) - 1) / 2
    return Rows(
        {
            **row,
            # Side by side, so that bars of one depth do not hide one another.
            "place": row["depth"] * 1.02 ** (names.index(row["shortcut"]) - middle),
            "value": 100 * row["value"],
            "spread": 100 * row["spread"],
        }
        for row in found
    )


def compare(roads: Roads) -> list[Row]:
    """Parameters by formula beside those counted."""
    return beside(roads, "parameters", "parameters")
