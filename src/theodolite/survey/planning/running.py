"""Run measures one after the other, and report every outcome."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from theodolite.core import (
    Cost,
    Rows,
    Stopwatch,
    TheodoliteError,
    norm_counts,
    safe_point,
)

from ..measures.contract import Measure, OutOfTimeError
from ..measures.site import FOREIGN, Site, error_text
from ..records.outcomes import Measured, MeasureStatus
from .telling import Progress

_ABORTED = {
    "interrupted": "a person interrupted the survey: run it again",
    "out of time": "the time limit was reached: raise it, or lower the effort",
}


def run_measures(
    site: Site, measures: Sequence[Measure], progress: Progress
) -> Iterator[Measured]:
    """Yield the outcome of each measure; errors become outcomes.

    Each measure may compute its own share of the effort, whatever the others do.
    Ctrl-C and the time limit abort the measure that runs, and all after it.
    """
    if progress.shown:
        _announce(site, measures, progress)
    aborted: MeasureStatus | None = None
    for place, measure in enumerate(measures):
        if aborted is not None:
            yield not_reached(measure, aborted)
            continue
        progress.tell(measure.name, [each.name for each in measures[place + 1 :]])
        outcome = _run(site, measure)
        aborted = outcome.status if outcome.status in _ABORTED else None
        yield outcome


def _announce(site: Site, measures: Sequence[Measure], progress: Progress) -> None:
    """Say about how long it will take, if the model runs at all."""
    with suppress(*FOREIGN):
        share = sum(measure.share for measure in measures)
        progress.announce(1 + share * site.effort, site.sounding.seconds)


def _run(site: Site, measure: Measure) -> Measured:
    watch, before = Stopwatch(), site.passes
    rows: list[dict[str, Any]] = []

    def ended(status: MeasureStatus, reason: str = "") -> Measured:
        # A part of a measure would depend on the clock.
        kept = [] if status in _ABORTED else rows
        return Measured(
            measure=measure.name,
            status=status,
            reason=reason or _ABORTED.get(status, ""),
            rows=Rows(_labelled(site, measure, row) for row in kept),
            cost=watch.read(passes=site.passes - before),
        )

    try:
        if said := measure.refusal(site):
            return ended("refused", said)
        least, allowed = measure.least(site), measure.share * site.effort
        if least > allowed:
            return ended("skipped", _would_take(measure, least))
        for row in measure.rows(site, allowed):
            rows.append(row)
            safe_point()
        return ended("done")
    except KeyboardInterrupt:
        return ended("interrupted")
    except OutOfTimeError:
        return ended("out of time")
    except TheodoliteError as refused:
        return ended("partial" if rows else "refused", str(refused))
    except FOREIGN as failed:
        return ended("failed", error_text(failed))


def _would_take(measure: Measure, least: float) -> str:
    effort = math.ceil(least / measure.share)
    return f"it takes {math.ceil(least)} gradients or more: give effort={effort}"


def _labelled(site: Site, measure: Measure, row: dict[str, Any]) -> dict[str, Any]:
    counts = norm_counts(site.norm_layers)
    given = {"of_samples": site.samples} if "n_samples" in row else {}
    return {
        "measure": measure.name,
        "norm_mode": str(site.norm_mode),
        **({"norm_layers": counts} if counts else {}),
        "seed": site.seed,
        **given,
        **row,
    }


def not_reached(measure: Measure, status: MeasureStatus) -> Measured:
    """Return the outcome of a measure that had not started when all was aborted."""
    return Measured(
        measure=measure.name, status=status, reason=_ABORTED[status], cost=Cost()
    )
