"""All measures; run them one after the other, and report every outcome."""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from theodolite.core import (
    FOREIGN,
    Cost,
    Rows,
    Stopwatch,
    TheodoliteError,
    error_text,
    norm_counts,
    safe_point,
    unknown_name,
)
from theodolite.pages import format_seconds

from ..checks.first_aid import GRADIENTS, check_rows
from ..measures.context import PRODUCT, SurveyContext
from ..measures.contract import Measure, OutOfTimeError
from ..measures.curvature import CURVATURE_SHARE, FEWEST, curvature_rows
from ..measures.layer_statistics import (
    map_rows,
    no_norms,
    no_units,
    norm_rows,
    unit_rows,
)
from ..measures.rates import no_rates, rate_rows
from ..measures.signals import signal_rows
from ..records.outcomes import Measured, MeasureStatus

# Most useful per second first.
MEASURES: tuple[Measure, ...] = (
    Measure(name="checks", rows=check_rows, fixed=GRADIENTS),
    Measure(name="map", rows=map_rows),
    Measure(name="signal", rows=signal_rows),
    Measure(name="units", rows=unit_rows, refusal=no_units),
    Measure(name="norms", rows=norm_rows, refusal=no_norms),
    Measure(
        name="curvature",
        rows=curvature_rows,
        share=CURVATURE_SHARE,
        least=PRODUCT * FEWEST,
    ),
    Measure(
        name="rates",
        rows=rate_rows,
        share=0.18,
        least=PRODUCT * (FEWEST + 2),
        refusal=no_rates,
    ),
)

_ABORTED = {
    "interrupted": "a person interrupted the survey: run it again",
    "out of time": "the time limit was reached: raise it, or lower the effort",
}


def chosen(names: Sequence[str] | None) -> list[Measure]:
    """Return the measures of these names, in the order of the catalogue; all if None.

    Raises:
        UnknownNameError: No measure has one of the names.
    """
    known = {measure.name: measure for measure in MEASURES}
    for name in names or ():
        if name not in known:
            raise unknown_name("measure", name, known)
    wanted = known if names is None else set(names)
    return [measure for measure in MEASURES if measure.name in wanted]


def run_measures(
    context: SurveyContext,
    measures: Sequence[Measure],
    progress: "Progress | None" = None,
) -> Iterator[Measured]:
    """Yield the outcome of each measure; errors become outcomes.

    Each measure may compute its own share of the effort, whatever the others do.
    Ctrl-C and the time limit abort the measure that runs, and all after it.
    """
    progress = progress or Progress(wanted=False)
    if progress.shown:
        with suppress(*FOREIGN):  # if the model runs at all
            total = sum(each.fixed + each.share * context.effort for each in measures)
            progress.announce(1 + total, context.net.first_pass.seconds)
    aborted: MeasureStatus | None = None
    for place, measure in enumerate(measures):
        if aborted is not None:
            yield not_reached(measure.name, aborted)
            continue
        progress.tell(measure.name, [each.name for each in measures[place + 1 :]])
        outcome = _run(context, measure)
        aborted = outcome.status if outcome.status in _ABORTED else None
        yield outcome


def _run(context: SurveyContext, measure: Measure) -> Measured:
    watch, before = Stopwatch(), context.net.passes
    rows: list[dict[str, Any]] = []

    def ended(status: MeasureStatus, reason: str = "") -> Measured:
        # A part of a measure would depend on the clock.
        kept = [] if status in _ABORTED else rows
        return Measured(
            measure=measure.name,
            status=status,
            reason=reason or _ABORTED.get(status, ""),
            rows=Rows(_labelled(context, measure, row) for row in kept),
            cost=watch.read(passes=context.net.passes - before),
        )

    try:
        if said := measure.refusal(context):
            return ended("refused", said)
        allowed = measure.share * context.effort
        if measure.least > allowed:
            wanted = math.ceil(measure.least / measure.share)
            said = f"it takes {math.ceil(measure.least)} gradients or more"
            return ended("skipped", f"{said}: give effort={wanted}")
        for row in measure.rows(context, allowed):
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


def _labelled(
    context: SurveyContext, measure: Measure, row: dict[str, Any]
) -> dict[str, Any]:
    counts = norm_counts(context.net.norm_layers)
    given = {"of_samples": context.net.samples} if "n_samples" in row else {}
    return {
        "measure": measure.name,
        "norm_mode": str(context.net.problem.mode),
        **({"norm_layers": counts} if counts else {}),
        "seed": context.net.problem.seed,
        **given,
        **row,
    }


def not_reached(measure: str, status: MeasureStatus) -> Measured:
    """Return the outcome of a measure that had not started when all was aborted."""
    return Measured(
        measure=measure, status=status, reason=_ABORTED[status], cost=Cost()
    )


class Progress:
    """One progress line that is overwritten; silent unless the output is a terminal.

    Args:
        wanted: Whether the caller wants progress.
        trials: Gradients that repairs may take if something is wrong.
        stream: Stream to write to.
    """

    def __init__(
        self, *, wanted: bool, trials: float = 0.0, stream: TextIO | None = None
    ) -> None:
        self._trials = trials
        self._stream = stream or sys.stderr
        self.shown = wanted and self._stream.isatty()
        self._line: Any = None

    @contextmanager
    def open(self) -> Iterator["Progress"]:
        """Show a line inside the context, and clear it after."""
        if not self.shown:
            yield self
            return
        from rich.console import Console
        from rich.status import Status

        with Status(
            "survey", console=Console(file=self._stream, highlight=False)
        ) as self._line:
            yield self

    def announce(self, gradients: float, gradient_s: float) -> None:
        """Write about how long the survey will take, from the time of one gradient."""
        trials = f", and up to {format_seconds(self._trials * gradient_s)} for repairs"
        more = trials if self._trials else ""
        if self._line is not None:
            self._line.console.print(
                f"about {format_seconds(gradients * gradient_s)}: {gradients:.0f} "
                f"gradients of {format_seconds(gradient_s)} each{more}"
            )

    def tell(self, name: str, rest: Sequence[str]) -> None:
        """Show what runs now, and what comes next."""
        if self._line is not None:
            following = f", next {rest[0]}" if rest else ""
            more = f" and {len(rest) - 1} more" if len(rest) > 1 else ""
            self._line.update(f"{name}{following}{more}")
