"""Run measures within a budget, one after the other; whatever happens, report."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from theodolite.core import Cost, Rows, Stopwatch, TheodoliteError
from theodolite.survey.measures.contract import (
    Allowance,
    Deadline,
    Measure,
    OutOfTimeError,
)
from theodolite.survey.measures.site import FOREIGN, Site, told
from theodolite.survey.planning.telling import Progress
from theodolite.survey.records.outcomes import Measured, MeasureStatus
from theodolite.survey.records.telling import told_seconds

# Share of its allowance by which a measure may be late before it is stopped.
_GRACE = 0.2
# Seconds that a measure gets that takes next to nothing.
_AT_LEAST = 5.0


def run_measures(
    site: Site, measures: Sequence[Measure], progress: Progress
) -> Iterator[Measured]:
    """Yield the outcome of each measure; none raises, Ctrl-C ends them all.

    A measure may claim its share of what is left, by weight among those to come; one
    that forecasts more is given it while that leaves half for the others, and is
    skipped otherwise.
    """
    end = time.perf_counter() + site.budget_s
    interrupted = False
    for place, measure in enumerate(measures):
        rest = [each.name for each in measures[place + 1 :]]
        if interrupted:
            yield _not_reached(measure)
            continue
        left = end - time.perf_counter()
        progress.tell(measure.name, rest, left_s=left)
        outcome = _run(site, measure, _Share(left, measures[place:]))
        interrupted = outcome.status == "interrupted"
        yield outcome


class _Share:
    """What a measure may claim of the time that is left.

    Args:
        left: Seconds left.
        coming: The measure and all that come after it.
    """

    def __init__(self, left: float, coming: Sequence[Measure]) -> None:
        self.left = left
        total = sum(each.weight for each in coming)
        self._fair = left * coming[0].weight / total
        self._last = len(coming) == 1

    def allowed(self, measure: Measure, forecast: float) -> float:
        """Return the seconds that a measure gets, 0 where it does not fit."""
        if measure.essential:
            return math.inf
        if not forecast:
            return max(self._fair, _AT_LEAST)
        if forecast <= self._fair:
            return self._fair
        most = self.left if self._last else self.left / 2
        return min(1.5 * forecast, most) if forecast <= most else 0.0


def _run(site: Site, measure: Measure, share: _Share) -> Measured:
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
        allowed = share.allowed(measure, forecast)
        if allowed <= 0:
            return ended("skipped", _would_take(site, forecast))
        return _taken(measure, site, Allowance(allowed), rows, ended)
    except KeyboardInterrupt:
        return ended("interrupted", "a person interrupted it: run the survey again")
    except TheodoliteError as refused:
        return ended("partial" if rows else "refused", str(refused))
    except FOREIGN as failed:
        return ended("failed", told(failed))


def _taken(
    measure: Measure,
    site: Site,
    allowance: Allowance,
    rows: list[dict[str, Any]],
    ended: Callable[..., Measured],
) -> Measured:
    try:
        with Deadline(allowance, grace=_GRACE * allowance.seconds):
            for row in measure.rows(site, allowance):
                rows.append(row)
    except OutOfTimeError:
        given = told_seconds(allowance.seconds)
        return ended(
            "partial", f"its {given} were spent: raise the budget for the rest"
        )
    return ended("done")


def _would_take(site: Site, forecast: float) -> str:
    budget = told_seconds(site.budget_s + 2 * forecast)
    return (
        f"it would take about {told_seconds(forecast)} more than is left: give a "
        f"budget of {budget}, or name fewer measures"
    )


def _labelled(site: Site, measure: Measure, row: dict[str, Any]) -> dict[str, Any]:
    return {
        "measure": measure.name,
        "norm_mode": str(site.norm_mode),
        "seed": site.seed,
        **row,
    }


def _not_reached(measure: Measure) -> Measured:
    return Measured(
        measure=measure.name,
        status="interrupted",
        reason="a person interrupted the survey before it: run it again",
        cost=Cost(),
    )
