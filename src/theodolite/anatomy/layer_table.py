"""A table of blocks or layers, as text, HTML and pandas."""

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from theodolite.core import Row, Rows, html_table, printable

if TYPE_CHECKING:
    import pandas

_COLUMNS, _SHORTEST = 80, 12
_HEADER = ("name", "output", "params", "MACs", "signal", "gradient", "dead", "norm in")


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerTable:
    """One row per block or layer of a network; prints as a table.

    Each row has ``name``, ``kind``, ``shape`` of the output without the batch axis,
    ``parameters`` (in the row that uses them first), ``macs`` per sample, ``signal``
    and ``gradient`` (root mean square of the output and of the loss's derivative by
    it), ``units`` and ``dead_units`` of its activations, and of its norm with the
    smallest input ``norm_spread`` (standard deviation of that input; of RMS norms root
    mean square) and ``norm_numbers`` (numbers behind one statistic). Numbers that are
    estimated from the samples have a standard error, such as ``signal_error``.
    ``dead_error`` is how many of the dead units other samples may activate, at most,
    with 95 % confidence.

    Attributes:
        title: Class of the model.
        table: The rows.
        n_parameters: Number of parameters of the model.
        n_trained: Number of those that require a gradient.
        samples: Samples in the batch.
        norms: Modes of the norm layers that have several, in words.
        notes: What to know before reading, one sentence each.
    """

    title: str
    table: Rows
    n_parameters: int
    n_trained: int
    samples: int
    norms: str
    notes: tuple[str, ...] = ()

    @property
    def macs(self) -> float:
        """Multiply-accumulate operations of a forward pass, per sample."""
        return float(self.table.values("macs").sum())

    def rows(self) -> Rows:
        """Return the rows."""
        return self.table

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the rows as a data frame (extra ``theodolite[tables]``)."""
        return self.table.to_pandas()

    def __str__(self) -> str:
        columns = self._columns()
        widths = [max(map(len, column)) for column in columns]
        # Columns on the right are left out where they do not fit; HTML has them all.
        while sum(widths[1:]) + len(widths) - 1 + _SHORTEST > _COLUMNS:
            columns, widths = columns[:-1], widths[:-1]
        left = _COLUMNS - sum(widths[1:]) - len(widths) + 1
        widths[0] = min(widths[0], left)
        lines = [self._headline()]
        for name, *cells in zip(*columns, strict=True):
            name = name if len(name) <= left else f"…{name[1 - left :]}"
            text = [c.rjust(w) for c, w in zip(cells, widths[1:], strict=True)]
            lines.append(" ".join([name.ljust(widths[0]), *text]).rstrip())
        wrapped = textwrap.wrap(self._note(), _COLUMNS, break_on_hyphens=False)
        return printable("\n".join([*lines, *wrapped]))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        header, *body = zip(*self._columns(), strict=True)
        return html_table(self._headline(), header, body, self._note())

    def _headline(self) -> str:
        trained = "all" if self.n_trained == self.n_parameters else _big(self.n_trained)
        return (
            f"{self.title}: {_big(self.n_parameters)} parameters ({trained} trained), "
            f"{_big(self.macs)} MACs per sample"
        )

    def _columns(self) -> list[list[str]]:
        """Return columns of text with their headers; empty ones are left out."""
        cells = [list(_cells(row)) for row in self.table]
        columns = [list(column) for column in zip(_HEADER, *cells, strict=True)]
        return [column for column in columns if any(column[1:])] or [["name"]]

    def _note(self) -> str:
        told = [
            f"{self.samples} sample{'s' if self.samples > 1 else ''}"
            + (f", {self.norms}" if self.norms else ""),
            "signal and gradient: root mean square of the output and of the loss's "
            "derivative by it",
            "±: standard error over samples, rounded up",
        ]
        if any("units" in row for row in self.table):
            told.append(
                "dead: units that are zero for all samples; another sample activates "
                f"such a unit with a probability below {min(3 / self.samples, 1):.2g} "
                "(95 % confidence)"
            )
        if any("norm_spread" in row for row in self.table):
            told.append("norm in: smallest standard deviation of a norm's input")
        in_rows = sum(self.table.column("parameters"))
        if in_rows != self.n_parameters:
            told.append(f"{self.n_parameters - in_rows:,} parameters are in no row")
        return "; ".join([*told, *self.notes])


def _cells(row: Row) -> Iterator[str]:
    yield row["name"]
    yield "×".join(map(str, row["shape"])) or "1"
    yield _big(row["parameters"])
    yield _big(row["macs"])
    yield _with_error(row["signal"], row["signal_error"])
    yield (
        _with_error(row["gradient"], row["gradient_error"]) if "gradient" in row else ""
    )
    yield f"{row['dead_units']}/{row['units']}" if "units" in row else ""
    spread = row.get("norm_spread")
    yield "" if spread is None else _with_error(spread, row["norm_error"])


def _big(count: float) -> str:
    """Write a count in three digits and a unit.

    Example:
        >>> [_big(n) for n in (0, 999, 1000, 11_689_512, 999_999, float("nan"))]
        ['0', '999', '1.00k', '11.7M', '1.00M', '?']
    """
    if math.isnan(count):
        return "?"
    size, units = float(count), ["", "k", "M", "G", "T", "P"]
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1000, units[1:]
    digits = 0 if float(count) < 999.5 else 2 - int(math.log10(size) + 1e-9)
    return f"{size:.{max(digits, 0)}f}{units[0]}"


def _with_error(value: float, error: float) -> str:
    """Write a number in two digits with its relative error, rounded up.

    Example:
        >>> _with_error(1.234e-5, 3e-7), _with_error(2.0, float("nan"))
        ('1.2e-5 ±3%', '2 ±?')
    """
    if math.isnan(value):
        return "?"
    text = f"{value:.2g}".replace("e-0", "e-").replace("e+0", "e+")
    if value == 0 or error == 0:
        return text
    known = math.isfinite(error)
    return f"{text} ±{f'{min(math.ceil(100 * error / value), 100)}%' if known else '?'}"
