"""Long runs whose rows are part of the package.

A paper's folder ``committed`` holds one JSON file per run: its config, versions and
device, and a table of columns and lines. Rows of theory, where the run had other data,
are among them under ``side="predicted"``. Below the paper scale the runner judges and
draws them beside a run's own; the paper scale measures the same cells again.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from theodolite.core import PredictedAndMeasured, Row, Rows, RunError, to_json_values

PREDICTED = "predicted"


@dataclass(frozen=True)
class CommittedRun:
    """A run at the paper scale, kept with the package.

    Attributes:
        package: Package of the paper, whose folder ``committed`` has the file.
        name: Name of the file, without its ending; one may serve several studies.
        free: Settings that do not change the rows of a single cell, such as the list
            of other cells.

    Example:
        >>> run = CommittedRun("theodolite", "no-such-run")
        >>> run.rows(), run.config(), run.predicted_and_measured(Rows())
        (Rows(0 rows), {}, None)
    """

    package: str
    name: str
    free: tuple[str, ...] = ()

    @classmethod
    def of_study(cls, module: str, *, free: tuple[str, ...] = ()) -> "CommittedRun":
        """Return the run that has the name of a study, whose ``__name__`` is given."""
        package, _, name = module.rpartition(".")
        return cls(package, name, free)

    def rows(self) -> Rows:
        """Return all its measured rows; none where there is no such file."""
        return self._all().where(lambda row: row.get("side") != PREDICTED)

    def predicted_and_measured(self, predicted: Rows) -> PredictedAndMeasured | None:
        """Return both sides of the run; None where there is no such file.

        Args:
            predicted: Predicted rows to use if the run has none.
        """
        rows = self.rows()
        theory = self._all().where(side=PREDICTED)
        return (
            PredictedAndMeasured(theory if len(theory) else predicted, rows)
            if len(rows)
            else None
        )

    def _all(self) -> Rows:
        return unpack(_saved(self.package, self.name))

    def config(self) -> dict[str, Any]:
        """Return the config that made it; empty where there is no such file."""
        return dict(_saved(self.package, self.name).get("config", {}))

    def of_cell(self, config: Any, cell: Mapping[str, Any]) -> Rows:
        """Return the rows of one cell, if the same config made them.

        The device does not matter.
        """
        ours, theirs = to_json_values(config), self.config()
        free = {"device", "committed", *self.free}
        if not theirs:
            return Rows()
        if any(ours.get(k) != v for k, v in theirs.items() if k not in free):
            return Rows()
        return self.rows().where(**cell)


def pack(
    rows: Iterable[Row],
    *,
    config: Mapping[str, Any],
    made: Mapping[str, Any],
    digits: int = 7,
) -> str:
    """Return the content of a committed file.

    Args:
        rows: Rows to keep; values are rounded to ``digits`` significant digits, and
            their errors are at least that rounding.
        config: The config that made them.
        made: Where it was computed: device, versions, seconds and similar facts.
        digits: Significant digits kept.

    Example:
        >>> text = pack([{"quantity": "loss", "value": 1 / 3}], config={}, made={})
        >>> json.loads(text)["lines"]
        [['loss', 0.3333333]]
    """
    table = [_honest(to_json_values(dict(row)), digits) for row in rows]
    columns = list(dict.fromkeys(key for row in table for key in row))
    lines = [
        json.dumps([_short(row.get(c), digits) for c in columns], ensure_ascii=False)
        for row in table
    ]
    head = json.dumps(
        {
            "config": to_json_values(config),
            "made": to_json_values(made),
            "columns": columns,
        },
        indent=1,
        ensure_ascii=False,
    )
    body = ",\n  ".join(lines)
    return f'{head[:-2]},\n "lines": [\n  {body}\n ]\n}}\n'


def unpack(saved: Mapping[str, Any]) -> Rows:
    """Return the rows of a committed file's content.

    Empty cells are left out, except ``value`` and ``error``, of which a run that
    diverged or a bound has none.
    """
    columns = saved.get("columns", [])
    return Rows(
        {
            key: value
            for key, value in zip(columns, line, strict=True)
            if value is not None or key in ("value", "error")
        }
        for line in saved.get("lines", [])
    )


def _honest(row: Row, digits: int) -> Row:
    """Return the row with an error no smaller than the rounding of its value."""
    value, error = row.get("value"), row.get("error")
    if not isinstance(value, float) or not isinstance(error, float) or not value:
        return row
    if not math.isfinite(value) or not math.isfinite(error):
        return row
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    lost = unit / 2 if float(f"{value:.{digits}g}") != value else 0.0
    return {**row, "error": float(f"{max(error, lost):.3g}")}


def _short(value: Any, digits: int) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value


@cache
def _text(package: str, name: str) -> str:
    file = resources.files(package) / "committed" / f"{name}.json"
    return file.read_text(encoding="utf-8") if file.is_file() else ""


@cache
def _saved(package: str, name: str) -> dict[str, Any]:
    text = _text(package, name)
    try:
        return json.loads(text) if text else {}
    except ValueError as error:
        raise RunError(
            f"committed/{name}.json cannot be read ({error}): it comes with the "
            "package; install theodolite again"
        ) from error
