"""What names a run and its cells: canonical JSON and its hash; and a cell's file.

A run is named by its spec: equal configs have equal hashes. A cell is the unit of work,
named by flat labels and kept in one file of JSON lines: a head with labels, cost and
row count, the rows, and a tail with the checksum of all lines before it. A file without
a correct tail (cut off by a copy, a full disk or an editor) counts as absent.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from theodolite.core import ConfigError, Cost, Row, Rows, to_json_values, to_lines

Cell = Mapping[str, Any]
_FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """One run of one study.

    Attributes:
        paper: Package of the study, such as ``li2016demystifying``.
        study: Module of the study.
        scale: Label of the preset (smoke, quick, paper); not part of the hash.
        config: Every setting that can change a value.
        revision: Raised by the study when its code changes the values.
        device: Device of the networks.
        seeds: Root seeds, for the record.

    Example:
        >>> spec = RunSpec(paper="p", study="s", scale="quick", config={"width": 8})
        >>> spec.digest
        'd2a7672602ae'
    """

    paper: str
    study: str
    scale: str
    config: Mapping[str, Any] = field(hash=False)
    revision: int = 1
    device: str = "cpu"
    seeds: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for what in ("paper", "study"):
            name = getattr(self, what)
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"{what} {name!r} cannot name a folder: use letters, digits, "
                    "dots, dashes and underscores"
                )
        # Plain values, so that a spec equals the one read back from its folder.
        object.__setattr__(self, "config", json.loads(canonical(self.config)))
        object.__setattr__(self, "seeds", tuple(to_json_values(list(self.seeds))))

    @property
    def digest(self) -> str:
        """Twelve hexadecimal characters that name the run's folder."""
        return short_hash(canonical(self.identity))

    @property
    def identity(self) -> dict[str, Any]:
        """Input of the digest: all that can change a value."""
        return {
            "paper": self.paper,
            "study": self.study,
            "config": self.config,
            "revision": self.revision,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as plain JSON values."""
        return {
            **self.identity,
            "scale": self.scale,
            "device": self.device,
            "seeds": list(self.seeds),
        }

    @property
    def record(self) -> dict[str, Any]:
        """The spec as plain JSON values, with its digest."""
        return {"digest": self.digest, **self.to_dict()}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote; further keys are ignored.

        Raises:
            KeyError: One is missing.
            TypeError: One is of another type.
        """
        kinds = {"scale": str, "device": str, "revision": int, "config": Mapping}
        for name, kind in kinds.items():
            if not isinstance(saved[name], kind):
                raise TypeError(f"{name} is {type(saved[name]).__name__}")
        return cls(
            paper=saved["paper"],
            study=saved["study"],
            scale=saved["scale"],
            config=saved["config"],
            revision=saved["revision"],
            device=saved["device"],
            seeds=tuple(saved["seeds"]),
        )


def canonical(value: Any, what: str = "config") -> str:
    """Return a value as canonical JSON.

    Key order, tuples or lists, sets, NumPy scalars or Python numbers make no
    difference; 1 and 1.0 do, because a study may treat them differently.

    Args:
        value: Mappings, sequences, sets, arrays, strings, finite numbers, None.
        what: Name of the value in the error.

    Example:
        >>> canonical({"b": (1, 2), "a": np.float64(0.5)})
        '{"a":0.5,"b":[1,2]}'
    """
    try:
        return _dump(_settled(value))
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the {what} cannot be saved ({error}): use text, finite numbers, "
            "booleans, None, and lists or mappings of them"
        ) from error


def short_hash(text: str, length: int = 12) -> str:
    """Return the first hexadecimal characters of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))


def _settled(value: Any) -> Any:
    if isinstance(value, Mapping):
        settled = {str(key): _settled(item) for key, item in value.items()}
        if len(settled) != len(value):
            raise ValueError(f"two keys of {list(value)} read the same as text")
        return settled
    if isinstance(value, set | frozenset):
        return sorted((_settled(item) for item in value), key=_dump)
    if isinstance(value, np.ndarray):
        return _settled(value.tolist())
    if isinstance(value, list | tuple):
        return [_settled(item) for item in value]
    return to_json_values(value)


@dataclass(frozen=True)
class SavedCell:
    """A finished cell as read from its file; rows carry the cell's labels."""

    cell: dict[str, Any]
    cost: Cost
    rows: Rows


def labels(cell: Cell) -> dict[str, Any]:
    """Return the cell's labels as plain values; raise if they are nested."""
    flat = json.loads(canonical(cell, "cell"))
    for name, value in flat.items():
        if isinstance(value, list | dict):
            raise ConfigError(
                f"label {name!r} of a cell is {value!r}: a label is one number or text"
            )
    return flat


def cell_key(cell: Cell) -> str:
    """Return the text that identifies a cell."""
    return canonical(labels(cell), "cell")


def cell_name(cell: Cell) -> str:
    """Return a file name for a cell: readable labels, then a hash.

    Example:
        >>> cell_name({"kind": "xavier", "depth": 16})
        'depth=16,kind=xavier-6067a3b43c62'
    """
    text = ",".join(f"{k}={v}" for k, v in sorted(labels(cell).items()))
    slug = re.sub(r"[^A-Za-z0-9=,._+-]", "_", text)[:80].lstrip(".")
    return f"{slug}-{short_hash(cell_key(cell))}"


def describe(cell: Cell) -> str:
    """Return a cell as readable text.

    Example:
        >>> describe({"kind": "xavier", "depth": 16})
        'kind=xavier, depth=16'
    """
    return ", ".join(f"{k}={v}" for k, v in cell.items()) or "the only cell"


def cell_order(cell: Cell) -> tuple[Any, ...]:
    """Return a sort key: by label name, numbers as numbers, text as text."""
    return tuple(
        (name, 0, value, "")
        if isinstance(value, int | float)
        else (name, 1, 0, canonical(value))
        for name, value in sorted(labels(cell).items())
    )


def unique(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells in order, each once."""
    return list({cell_key(cell): cell for cell in cells}.values())


def encode(cell: Cell, rows: Iterable[Row], cost: Cost) -> bytes:
    """Return the content of a cell's file."""
    mine = labels(cell)
    rows = [_checked(mine, row) for row in rows]
    head = {
        "format": _FORMAT,
        "cell": mine,
        "cost": cost.to_dict(),
        "n_rows": len(rows),
    }
    body = to_lines([head, *rows]).encode()
    tail = {"end": len(rows), "sha256": hashlib.sha256(body).hexdigest()}
    return body + to_lines([tail]).encode()


def decode(content: bytes) -> SavedCell | None:
    """Return the cell of a file; None if it is damaged or of another kind."""
    body, _, tail = content.removesuffix(b"\n").rpartition(b"\n")
    body += b"\n"
    try:
        end = json.loads(tail)
        if end["sha256"] != hashlib.sha256(body).hexdigest():
            return None
        # JSON writes line feeds in text as escapes, so each one here ends a line.
        head, *rows = json.loads(b"[%s]" % body[:-1].replace(b"\n", b","))
        if head["format"] != _FORMAT or not len(rows) == end["end"] == head["n_rows"]:
            return None
        mine = head["cell"]
        merged = Rows.of_plain([{**mine, **row} for row in rows])
        return SavedCell(mine, Cost(**head["cost"]), merged)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _checked(mine: Mapping[str, Any], row: Row) -> Row:
    for name in mine.keys() & row.keys():
        if to_json_values(row[name]) != mine[name]:
            raise ConfigError(
                f"a row says {name}={row[name]!r} but its cell says "
                f"{name}={mine[name]!r}: give the row's label another name"
            )
    return row
