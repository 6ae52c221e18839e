"""Measured ensembles as the paper's explorer shows them.

Lengths of rows count layers of weights, of which the first has no skip; the explorer
counts branches.
"""

from collections.abc import Iterator

from theodolite.core import Roads, Row, Rows, points

GROUP = ("scale", "width", "depth", "part")
WEIGHTS = {"unit": "weights 1/√n", "he": "weights √(2/n)"}


def exhibit(roads: Roads) -> Rows:
    """Return shares of the output's energy, and means of output and gradient."""
    return Rows([*_shares(roads.measured), *_means(roads.measured)])


def _shares(rows: Rows) -> Iterator[Row]:
    for point in points(rows.where(quantity="share"), (*GROUP, "length")):
        found = {"quantity": "share", "length": point["length"] - 1}
        yield _row(point, found, point["value"])


def _means(rows: Rows) -> Iterator[Row]:
    chosen = rows.where(lambda row: row.get("part") == "gradient")
    for point in points(chosen.where(quantity="length"), GROUP):
        yield _row(point, {"quantity": "effective_depth"}, point["value"] - 1)
    for point in points(rows.where(quantity="beta"), GROUP):
        yield _row(point, {"quantity": "beta"}, point["value"])


def _row(point: Row, found: Row, value: float) -> Row:
    weights = WEIGHTS.get(point["scale"], point["scale"])
    name = f"random, width {point['width']}, depth {point['depth']}, {weights}"
    return {
        **found,
        "network": name,
        "part": point["part"],
        "blocks": point["depth"] - 1,
        "value": value,
        "error": point["error"],
    }
