"""What was measured during a training."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from theodolite.core import Cost, Row, Rows, norm_words, printable, to_strict_json

from ..records.files import write_json
from ..records.outcomes import on_fewest
from .alerts import Alert

_COLUMNS = 100
# Quantities that a terminal shows; the page and the rows have all.
SHOWN = (
    "training_loss",
    "loss",
    "gradient_norm",
    "largest_eigenvalue",
    "rate_in_use",
    "rate_over_stable",
    "branch_gain",
    "dead_share",
)
# Labels that distinguish the numbers of one quantity and step.
_WHICH = (
    "block",
    "module",
    "parameter",
    "optimizer",
    "rank",
    "share",
    "node",
    "length",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Course:
    """Quantities measured during a training.

    Attributes:
        title: Name of the trained model.
        every: Steps between two measurements.
        steps: Number of updates watched.
        measured: Flat rows, each with its ``step``.
        alerts: What went wrong, at which step.
        failures: What could not be measured, with the reason.
        cost: Cost of the measurements.
        norm_mode: Statistics that normalisation layers used while measuring.
        norm_layers: Under ``as_is``, the names of norm layers that were in ``train``
            mode at the last measurement and of those in ``eval`` mode.
        settings: Settings of the optimiser and the loss.
    """

    title: str
    every: int
    steps: int
    measured: Rows = field(default_factory=Rows)
    alerts: tuple[Alert, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost)
    norm_mode: str = "batch"
    norm_layers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def rows(self) -> Rows:
        """Return all that was measured."""
        return self.measured

    def series(self) -> "dict[str, list[Series]]":
        """Return the numbers of each quantity, one series per label."""
        series: dict[str, dict[str, list[Row]]] = {}
        for row in self.measured:
            mine = series.setdefault(str(row["quantity"]), {})
            mine.setdefault(which(row), []).append(row)
        return {
            quantity: [Series(of=of, rows=Rows(rows)) for of, rows in mine.items()]
            for quantity, mine in series.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the course as strict JSON values."""
        return to_strict_json(
            {
                "title": self.title,
                "every": self.every,
                "steps": self.steps,
                "alerts": [
                    {"step": each.step, **asdict(each.finding)} for each in self.alerts
                ],
                "failures": dict(self.failures),
                "cost": self.cost.to_dict(),
                "norm_mode": self.norm_mode,
                "norm_layers": dict(self.norm_layers),
                "settings": dict(self.settings),
                "rows": list(self.measured),
            }
        )

    def to_json(self, path: str | Path) -> None:
        """Write the course to a file."""
        write_json(path, self.to_dict())

    def to_html(self, path: str | Path) -> None:
        """Write the course as one self-contained page."""
        from ..page.writing import write_page

        write_page(self, path)

    def __str__(self) -> str:
        return printable(
            "\n".join(
                line if len(line) <= _COLUMNS else f"{line[: _COLUMNS - 1]}…"
                for line in _lines(self)
            )
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """One number along the steps.

    Attributes:
        of: Which number of its quantity, such as the block; empty if there is one.
        rows: One row per step.
    """

    of: str
    rows: Rows


def which(row: Row) -> str:
    """Return the labels that tell a row from others of its quantity and step.

    Example:
        >>> which({"quantity": "branch_gain", "step": 3, "block": "b1", "value": 1.0})
        'b1'
    """
    return ", ".join(str(row[k]) for k in _WHICH if row.get(k) is not None)


def _lines(course: Course) -> Iterator[str]:
    yield (
        f"{course.title}: {course.steps} steps watched, a look every {course.every}, "
        f"{norm_words(course.norm_mode, course.norm_layers)}"
    )
    for alert in course.alerts:
        yield f"  ALERT {alert}"
    everything = course.series()
    for quantity in (name for name in SHOWN if name in everything):
        series = everything[quantity]
        ends = (_largest(one.rows[place] for one in series) for place in (0, -1))
        among = f" (largest of {len(series)})" if len(series) > 1 else ""
        on = on_fewest(row for one in series for row in one.rows)
        yield f"  {quantity}{among}  {' → '.join(ends)}{on}"
    if more := [name for name in everything if name not in SHOWN]:
        yield f"  {len(more)} more quantities: see .rows() and .to_html()"
    for name, reason in course.failures.items():
        yield f"  NOT MEASURED {name}: {reason}"


def _largest(rows: Iterable[Row]) -> str:
    """Return the largest value of rows in words."""
    values = [row["value"] for row in rows]
    known = [value for value in values if value is not None]
    return f"{max(known):.4g}" if len(known) == len(values) else "not finite"
