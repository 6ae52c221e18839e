"""Run measures within a budget, one after the other, and report every outcome."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from theodolite.core import (
    Cost,
    Rows,
    Stopwatch,
    TheodoliteError,
    norm_counts,
    safe_point,
)

from ..measures.contract import Allowance, Measure, OutOfTimeError, deadline
from ..measures.site import FOREIGN, Site, error_text
from ..records.outcomes import Measured, MeasureStatus
from ..records.telling import format_seconds
from .telling import Progress

# A measure is stopped when it exceeds its time limit by the first share; no measure may
# exceed the whole budget by more than the second.
_GRACE, _LATE = 0.2, 0.05
# Largest share of the remaining time that one measure may use.
_MOST = 0.75
# Least time limit in seconds of a measure that forecasts 0.
_AT_LEAST = 5.0


def run_measures(
    site: Site, measures: Sequence[Measure], progress: Progress
) -> Iterator[Measured]:
    """Yield the outcome of each measure; errors become outcomes, Ctrl-C ends them all.

    A measure gets its share of the remaining time, by weight among the measures left.
    One that forecasts more gets more if that leaves a quarter for the others; otherwise
    it is skipped. Time counts from the call of the survey.
    """
    interrupted = False
    for place, measure in enumerate(measures):
        rest = [each.name for each in measures[place + 1 :]]
        if interrupted:
            yield not_reached(measure)
            continue
        progress.tell(measure.name, rest, left_s=site.left_s)
        outcome = _run(site, measure, measures[place:])
        interrupted = outcome.status == "interrupted"
        yield outcome


class _Share:
    """Share of the remaining time that a measure may use.

    Args:
        left: Seconds left.
        coming: The measure and all after it.
    """

    def __init__(self, left: float, coming: Sequence[Measure]) -> None:
        self.left = left
        total = sum(each.weight for each in coming)
        self._fair = left * coming[0].weight / total
        self._last = len(coming) == 1

    def allowed(self, measure: Measure, forecast: float) -> float:
        """Return the time limit of a measure in seconds, 0 if it does not fit."""
        if measure.essential:
            return math.inf
        if not forecast:
            return max(self._fair, _AT_LEAST)
        if forecast <= self._fair:
            return self._fair
        most = self.left if self._last else _MOST * self.left
        return min(1.5 * forecast, most) if forecast <= most else 0.0


def _run(site: Site, measure: Measure, coming: Sequence[Measure]) -> Measured:
    watch, before, forecast = Stopwatch(), site.passes, 0.0
    rows: list[dict[str, Any]] = []

    def ended(status: MeasureStatus, reason: str = "") -> Measured:
        labelled = Rows(_labelled(site, measure, row) for row in rows)
        return Measured(
            measure=measure.name,
            status=status,
            reason=reason,
            rows=labelled,
            cost=watch.read(passes=site.passes - before),
            forecast_s=forecast,
        )

    try:
        if said := measure.refusal(site):
            return ended("refused", said)
        forecast = measure.forecast(site)
        allowed = _Share(site.left_s, coming).allowed(measure, forecast)
        if allowed <= 0:
            return ended("skipped", _would_take(site, forecast))
        return _taken(measure, site, Allowance(allowed), rows, ended)
    except KeyboardInterrupt:
        return ended("interrupted", "a person interrupted it: run the survey again")
    except TheodoliteError as refused:
        return ended("partial" if rows else "refused", str(refused))
    except FOREIGN as failed:
        return ended("failed", error_text(failed))


def _taken(
    measure: Measure,
    site: Site,
    allowance: Allowance,
    rows: list[dict[str, Any]],
    ended: Callable[..., Measured],
) -> Measured:
    try:
        with deadline(allowance, grace=grace_of(site, allowance)):
            for row in measure.rows(site, allowance):
                rows.append(row)
                safe_point()
    except OutOfTimeError:
        given = format_seconds(allowance.seconds)
        return ended(
            "partial", f"its {given} were spent: raise the budget for the rest"
        )
    return ended("done")


def grace_of(site: Site, allowance: Allowance) -> float:
    """Return by how many seconds a measure may exceed its time limit."""
    spare = site.left_s + _LATE * site.budget_s - allowance.seconds
    return min(_GRACE * allowance.seconds, max(spare, 0.0))


def _would_take(site: Site, forecast: float) -> str:
    budget = format_seconds(site.budget_s + 2 * forecast)
    return (
        f"it would take about {format_seconds(forecast)} more than is left: give a "
        f"budget of {budget}, or name fewer measures"
    )


def _labelled(site: Site, measure: Measure, row: dict[str, Any]) -> dict[str, Any]:
    counts = norm_counts(site.norm_layers)
    return {
        "measure": measure.name,
        "norm_mode": str(site.norm_mode),
        **({"norm_layers": counts} if counts else {}),
        "seed": site.seed,
        **row,
    }


def not_reached(measure: Measure) -> Measured:
    """Return the outcome of a measure that did not start before an interrupt."""
    return Measured(
        measure=measure.name,
        status="interrupted",
        reason="a person interrupted the survey before it: run it again",
        cost=Cost(),
    )
