"""Blocks of one survey, or of two that were matched, as columns of a drawing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from theodolite.core import Row, Rows
from theodolite.survey.records.block import Block

if TYPE_CHECKING:
    from theodolite.survey.records.whole_survey import Survey


@dataclass(frozen=True, kw_only=True)
class Column:
    """One place along the depth.

    Attributes:
        index: Its number, from 0.
        name: What it is called.
        blocks: The block on each side, where there is one.
    """

    index: int
    name: str
    blocks: Mapping[str, Block]


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """One survey of a page.

    Attributes:
        key: ``"a"``, or ``"b"`` for the second of two.
        word: What the page calls it; empty where there is one only.
        survey: The survey.
        rows: All its rows.
        by_block: Rows by the name of their block; a module's are its block's.
    """

    key: str
    word: str
    survey: "Survey"
    rows: Rows
    by_block: Mapping[str, Rows]


def side_of(survey: "Survey", key: str = "a", word: str = "") -> Side:
    """Return a survey as a side of a page."""
    rows = survey.rows()
    return Side(
        key=key,
        word=word,
        survey=survey,
        rows=rows,
        by_block=_by_block(rows, survey.blocks),
    )


def columns_of(survey: "Survey") -> tuple[Column, ...]:
    """Return the blocks of one survey as columns."""
    return tuple(
        Column(index=place, name=block.name, blocks={"a": block})
        for place, block in enumerate(survey.blocks)
    )


def _by_block(rows: Rows, blocks: Sequence[Block]) -> dict[str, Rows]:
    names = {block.name for block in blocks}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    owners: dict[str, str | None] = {}
    for row in rows:
        owner = row.get("block")
        if owner is None and isinstance(module := row.get("module"), str):
            if module not in owners:
                owners[module] = owner_of(module, names)
            owner = owners[module]
        if owner in found:
            found[owner].append(dict(row))
    return {name: Rows.of_plain(mine) for name, mine in found.items()}


def owner_of(module: str, names: set[str]) -> str | None:
    """Return the innermost block that a module belongs to.

    One that lies in no block belongs to the only block beside it, if there is just one
    under the same parent: an activation to the layer before it.

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


def value_of(row: Row) -> float | None:
    """Return a row's number, None where it has none."""
    value = row.get("value")
    return float(value) if isinstance(value, int | float) else None


def error_of(row: Row) -> float | None:
    """Return a row's error, None where it has none."""
    error = row.get("error")
    return float(error) if isinstance(error, int | float) else None
