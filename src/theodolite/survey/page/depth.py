"""Numbers of a survey at each depth: blocks as columns, quantities as tracks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from theodolite.core import Row, Rows

from ..records.block import Block
from ..records.outcomes import on_fewest
from .tables import error_of, value_of

if TYPE_CHECKING:
    from ..records.whole_survey import Survey

# Value, lower and upper end.
Mark = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Column:
    """One place along the depth.

    Attributes:
        index: Its number, from 0.
        name: Its name.
        blocks: The block on each side, if there is one.
    """

    index: int
    name: str
    blocks: Mapping[str, Block]


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """One survey of a page.

    Attributes:
        key: ``"a"``, or ``"b"`` for the second of two.
        word: Its name on the page; empty if it is the only side.
        survey: The survey.
        rows: All its rows.
        by_block: Rows by the name of their block; a module's rows are its block's.
    """

    key: str
    word: str
    survey: "Survey"
    rows: Rows
    by_block: Mapping[str, Rows]

    def rows_of(self, column: Column) -> Rows:
        """Return the rows of the block in a column."""
        block = column.blocks.get(self.key)
        return self.by_block.get(block.name, Rows()) if block else Rows()

    def shares_of(self, column: Column) -> list[tuple[float, float]]:
        """Return the quantiles of a column's singular values, by share."""
        return sorted(
            (float(row["share"]), float(row["value"]))
            for row in self.rows_of(column).where(quantity="singular_value")
            if row.get("share") is not None and value_of(row) is not None
        )

    def samples(self, quantity: str) -> str:
        """Return words for the samples behind a quantity, if they are not all."""
        return on_fewest(self.rows.where(quantity=quantity))


@dataclass(frozen=True, kw_only=True)
class Track:
    """Numbers along the depth.

    Attributes:
        quantity: Name of the quantity.
        title: Its title in the drawing.
        measure: Name of the measure.
        kind: Dots with errors, joined by a line, bars, or a strip of colours.
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

    def marks(self, side: Side, columns: Sequence[Column]) -> list[Mark | None]:
        """Return the number of each column on one side, None if it has none."""
        return [
            self._mark(side.rows_of(column).where(quantity=self.quantity))
            for column in columns
        ]

    def why_missing(self, side: Side) -> str:
        """Return why there is nothing to draw."""
        for one in side.survey.measured:
            if one.measure == self.measure:
                return one.reason or "this network has none."
        return f"the measure “{self.measure}” was not asked for"

    def _mark(self, rows: Rows) -> Mark | None:
        shown = [row for row in rows if _is_finite(row)]
        if not shown:
            return None
        if self.spread:
            values = [float(row["value"]) for row in shown]
            middle = math.sqrt(sum(v * v for v in values) / len(values))
            return middle, min(values), max(values)
        # A block has one number, unless it adds several times: then its largest.
        row = max(shown, key=lambda one: one["value"])
        value, error = float(row["value"]), error_of(row) or 0.0
        return value, value - error, value + error


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


def side_of(survey: "Survey", key: str = "a", word: str = "") -> Side:
    """Return a survey as a side of a page."""
    rows = survey.rows()
    names = {block.name for block in survey.blocks}
    by_block: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    owners: dict[str, str | None] = {}
    for row in rows:
        owner = row.get("block")
        if owner is None and isinstance(module := row.get("module"), str):
            if module not in owners:
                owners[module] = owner_of(module, names)
            owner = owners[module]
        if owner in by_block:
            by_block[owner].append(dict(row))
    return Side(
        key=key,
        word=word,
        survey=survey,
        rows=rows,
        by_block={name: Rows.of_plain(mine) for name, mine in by_block.items()},
    )


def columns_of(survey: "Survey") -> tuple[Column, ...]:
    """Return the blocks of one survey as columns."""
    return tuple(
        Column(index=place, name=block.name, blocks={"a": block})
        for place, block in enumerate(survey.blocks)
    )


def owner_of(module: str, names: set[str]) -> str | None:
    """Return the innermost block that a module belongs to.

    A module that lies in no block belongs to the only block under the same parent, if
    there is just one: an activation to the layer before it.

    Example:
        >>> owner_of("layer1.0.conv1", {"layer1", "layer1.0"}), owner_of("fc", {"x"})
        ('layer1.0', None)
        >>> owner_of("5.1", {"4.0", "5.0"}), owner_of("5.1", {"5.0", "5.2"})
        ('5.0', None)
    """
    parts = module.partition("#")[0].split(".")
    for n in range(len(parts), 0, -1):
        if (name := ".".join(parts[:n])) in names:
            return name
    for n in range(len(parts) - 1, 0, -1):
        front = f"{'.'.join(parts[:n])}."
        beside = [name for name in names if name.startswith(front)]
        if beside:
            return beside[0] if len(beside) == 1 else None
    return None


def _is_finite(row: Row) -> bool:
    value = value_of(row)
    return value is not None and math.isfinite(value)
