"""What a cross-section shows at each depth, track by track."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from theodolite.core import Row, Rows
from theodolite.survey.page.columns import Column, Side, error_of, value_of

# Value, lower and upper end; None where nothing was measured.
Mark = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Track:
    """Numbers along the depth.

    Attributes:
        quantity: What they are.
        title: What the drawing calls them.
        measure: Which measure they come from.
        kind: Dots with errors, joined by a line, or a strip of colours.
        reference: Value of a dashed line.
        log: Whether the scale is logarithmic.
        spread: Whether a bar spans the modules of a block instead of an error.
    """

    quantity: str
    title: str
    measure: str
    kind: Literal["dots", "line", "heat", "bars"] = "dots"
    reference: float | None = None
    log: bool = True
    spread: bool = False


TRACKS = (
    Track(
        quantity="singular_value",
        title="Singular values of each block's Jacobian",
        measure="jacobian",
        kind="heat",
    ),
    Track(
        quantity="branch_gain",
        title="Branch gain: size of the branch over the skip's",
        measure="map",
        reference=1.0,
    ),
    Track(
        quantity="forward_rms",
        title="Forward signal: root mean square of the output",
        measure="signal",
        kind="line",
    ),
    Track(
        quantity="backward_rms",
        title="Backward signal: root mean square of the loss's gradient",
        measure="signal",
        kind="line",
    ),
    Track(
        quantity="block_largest_eigenvalue",
        title="Curvature: largest Hessian eigenvalue within the block",
        measure="block_curvature",
    ),
    Track(
        quantity="weight_rms",
        title="Weight norm: root mean square, over the block's modules",
        measure="signal",
        spread=True,
    ),
    Track(
        quantity="dead_share",
        title="Dead units: worst share among the block's activations",
        measure="units",
        kind="bars",
        log=False,
    ),
)


def marks_of(track: Track, side: Side, columns: Sequence[Column]) -> list[Mark | None]:
    """Return the number of each column on one side."""
    choose = _spread if track.spread else _one
    found: list[Mark | None] = []
    for column in columns:
        block = column.blocks.get(side.key)
        rows = side.by_block.get(block.name, Rows()) if block else Rows()
        mine = [r for r in rows.where(quantity=track.quantity) if _shown(r)]
        found.append(choose(mine) if mine else None)
    return found


def shares_of(side: Side, column: Column) -> list[tuple[float, float]]:
    """Return the quantiles of a column's singular values, by share."""
    block = column.blocks.get(side.key)
    rows = side.by_block.get(block.name, Rows()) if block else Rows()
    found = [
        (float(row["share"]), float(row["value"]))
        for row in rows.where(quantity="singular_value")
        if row.get("share") is not None and value_of(row) is not None
    ]
    return sorted(found)


def why_missing(track: Track, side: Side) -> str:
    """Say why a track is empty."""
    for one in side.survey.measured:
        if one.measure == track.measure:
            return one.reason or "this network has none."
    return f"the measure “{track.measure}” was not asked for"


def _shown(row: Row) -> bool:
    value = value_of(row)
    return value is not None and math.isfinite(value)


def _one(rows: Sequence[Row]) -> Mark:
    """Return the largest of a block, which holds one unless it adds several times."""
    row = max(rows, key=lambda one: one["value"])
    value, error = float(row["value"]), error_of(row) or 0.0
    return value, value - error, value + error


def _spread(rows: Sequence[Row]) -> Mark:
    values = [float(row["value"]) for row in rows]
    middle = math.sqrt(sum(v * v for v in values) / len(values))
    return middle, min(values), max(values)
