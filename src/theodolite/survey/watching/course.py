"""What was measured during a training."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from theodolite.core import Cost, Rows, norm_words, printable, record_values

from ..records.outcomes import on_fewest
from ..records.text import wrapped
from ..records.whole_survey import write_json
from .alerts import Alert

# Quantities that a terminal shows; the rows have all.
_SHOWN = (
    "training_loss",
    "loss",
    "gradient_norm",
    "largest_eigenvalue",
    "rate_in_use",
    "rate_over_stable",
    "branch_gain",
    "dead_share",
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

    def to_dict(self) -> dict[str, Any]:
        """Return the course as strict JSON values."""
        return record_values(self)

    def to_json(self, path: str | Path) -> None:
        """Write the course to a file."""
        write_json(path, self.to_dict())

    def __str__(self) -> str:
        lines = [part for line in _lines(self) for part in wrapped(line, 4)]
        return printable("\n".join(lines))

    def __repr__(self) -> str:
        return printable(
            f"<Course of {self.title}: {self.steps} steps, {len(self.alerts)} alerts; "
            "print it>"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _lines(course: Course) -> Iterator[str]:
    yield (
        f"{course.title}: {course.steps} steps watched, a look every {course.every}, "
        f"{norm_words(course.norm_mode, course.norm_layers)}"
    )
    for alert in course.alerts:
        yield f"  ALERT {alert}"
    measured = set(course.measured.levels("quantity"))
    for quantity in (name for name in _SHOWN if name in measured):
        rows = course.measured.where(quantity=quantity)
        steps = rows.levels("step")
        ends = [list(rows.where(step=step)) for step in (steps[0], steps[-1])]
        n = len(ends[0])
        among = f" (largest of {n})" if n > 1 else ""
        values = [[row["value"] for row in end] for end in ends]
        most = (f"{max(v):.4g}" if None not in v else "not finite" for v in values)
        told = " → ".join(most)
        yield f"  {quantity}{among}  {told}{on_fewest(rows)}"
    if more := measured - set(_SHOWN):
        yield f"  {len(more)} more quantities: see .rows()"
    for name, reason in course.failures.items():
        yield f"  NOT MEASURED {name}: {reason}"
