"""What the page says of one block when it is chosen."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from theodolite.core import Row, Rows
from theodolite.survey.page.chart import Chart, Series, draw, finite_points
from theodolite.survey.page.columns import Column, Side, error_of, value_of
from theodolite.survey.page.numbers import count, number
from theodolite.survey.page.words import word

# Shown as a curve, not in the table.
_DRAWN = {"singular_value"}
# Of more blocks than these, over all sides, spectra are in cross-section and downloads
# alone, and so are numbers of modules of yet more: a page stays below 3 MB.
_MOST_DRAWN, _MOST_TOLD = 450, 600
_LABELS = ("module", "rank", "share", "node", "sample", "optimiser", "length")


def described(
    column: Column, sides: Sequence[Side], n_columns: int = 1
) -> dict[str, Any]:
    """Return all that the page shows of a column.

    Args:
        column: The column.
        sides: The surveys.
        n_columns: How many the page has.
    """
    n_blocks = n_columns * len(sides)
    return {
        "index": column.index,
        "name": column.name,
        "facts": [
            {"word": side.word, "items": _facts(column, side)}
            for side in sides
            if side.key in column.blocks
        ],
        "lines": _lines(column, sides, modules=n_blocks <= _MOST_TOLD),
        "spectrum": _spectrum(column, sides) if n_blocks <= _MOST_DRAWN else None,
    }


def _facts(column: Column, side: Side) -> list[tuple[str, str]]:
    block = column.blocks[side.key]
    return [
        ("Kind", block.kind),
        ("Skip", block.skip or "none"),
        ("Norms", _told(block.norms)),
        ("Activations", ", ".join(dict.fromkeys(block.activations)) or "none"),
        ("Parameters", count(block.n_parameters)),
    ]


def _told(norms: Sequence[str]) -> str:
    """Return norms in words.

    Example:
        >>> _told(["batch:pre", "batch:pre", "layer:post"])
        'batch (pre) × 2, layer (post)'
    """
    counted: dict[str, int] = {}
    for norm in norms:
        kind, _, place = norm.partition(":")
        name = f"{kind} ({place})" if place else kind
        counted[name] = counted.get(name, 0) + 1
    told = [name if n == 1 else f"{name} × {n}" for name, n in counted.items()]
    return ", ".join(told) or "none"


def _lines(
    column: Column, sides: Sequence[Side], *, modules: bool
) -> list[dict[str, Any]]:
    """Return a line a number, with one value a side."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for place, side in enumerate(sides):
        for row in _rows(column, side):
            if row["quantity"] in _DRAWN or ("module" in row and not modules):
                continue
            key = (row["quantity"], _which(row, column, side))
            empty = {"word": word(key[0]), "quantity": key[0], "which": key[1]}
            entry = found.setdefault(key, {**empty, "values": ["—"] * len(sides)})
            entry["values"][place] = told_value(row)
    return list(found.values())


def told_value(row: Row) -> str:
    """Write a row's number with its error."""
    value = value_of(row)
    if value is None:
        return str(row.get("nonfinite", "—"))
    return number(value, error_of(row))


def _rows(column: Column, side: Side) -> Rows:
    block = column.blocks.get(side.key)
    return side.by_block.get(block.name, Rows()) if block else Rows()


def _which(row: Row, column: Column, side: Side) -> str:
    parts = []
    for label in _LABELS:
        if (told := row.get(label)) is None:
            continue
        if label == "module":
            parts.append(str(told).removeprefix(f"{column.blocks[side.key].name}."))
        else:
            parts.append(f"{label} {told}")
    return ", ".join(parts)


def _spectrum(column: Column, sides: Sequence[Side]) -> Markup | None:
    series = []
    for side in sides:
        rows = _rows(column, side).where(quantity="singular_value")
        points = finite_points(
            [(r.get("share"), value_of(r), error_of(r)) for r in rows]
        )
        if points:
            name = f"{side.word} {column.name}".strip()
            series.append(Series(name=name, points=points, side=side.key))
    if not series:
        return None
    positive = all(p[1] > 0 for one in series for p in one.points)
    return draw(
        Chart(
            label=f"Singular values of {column.name} by share",
            x="share of directions stretched by less",
            y="singular value",
            series=tuple(series),
            log_y=positive,
            levels=((1.0, ""),),
        )
    )
