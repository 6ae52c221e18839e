"""When training separates the data: zero training error, and the terminal phase."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from theodolite.core import (
    ConfigError,
    Dims,
    MeasurementError,
    NormMode,
    Numbers,
    Reading,
    Scalar,
    Status,
    Stopwatch,
    as_numbers,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class TerminalPhase(Reading):
    r"""Separability during training, and the step at which the error became zero.

    Nothing is known between two measured steps. So a time may be too late by the
    distance to the previous step, which is its error. A time is infinite if its event
    did not happen by the last step. If only error rates are known, all numbers that
    need margins are NaN, and all such flags false.

    Attributes:
        steps: Steps at which margins were measured.
        error_rate: Share of samples with a margin of 0 or less.
        least_margin: Smallest margin.
        mean_margin: Mean of the margins.
        separable: Whether all margins were positive.
        average_separable: Whether the sum of margins was positive.
        average_from: First step with average separability.
        zero_error_from: First step with an error rate of ``tolerance`` or less; the
            terminal phase begins there.
        settled_from: First step after which the error rate stayed so low.
        relapses: How often the error rate rose again in between.
        terminal_share: Share of the measured steps, from ``zero_error_from`` on, with
            such an error rate; NaN if there is none.
        tolerance: Error rate that counts as zero.
    """

    steps: np.ndarray
    error_rate: Annotated[np.ndarray, Dims("step")]
    least_margin: Annotated[np.ndarray, Dims("step")]
    mean_margin: Annotated[np.ndarray, Dims("step")]
    separable: Annotated[np.ndarray, Dims("step")]
    average_separable: Annotated[np.ndarray, Dims("step")]
    average_from: Scalar
    average_from_error: Scalar
    zero_error_from: Scalar
    zero_error_from_error: Scalar
    settled_from: Scalar
    settled_from_error: Scalar
    relapses: Annotated[int, Dims()]
    terminal_share: Scalar
    tolerance: float

    def coordinates(self) -> dict[str, list[Any]]:
        """Label steps by their numbers."""
        return {"step": self.steps.tolist()}


@dataclass(frozen=True)
class _Look:
    """Margins at one step: their number, how many are ≤ 0, their minimum and sum."""

    count: float
    wrong: float
    least: float
    total: float

    def __add__(self, other: "_Look") -> "_Look":
        return _Look(
            self.count + other.count,
            self.wrong + other.wrong,
            float(np.minimum(self.least, other.least)),
            self.total + other.total,
        )


class InterpolationMeter:
    """Follows margins during training; it keeps four numbers per step.

    Batches of one step add up in any order; so do the meters of several processes.

    Args:
        tolerance: Error rate that counts as zero.
        norm_mode: Statistics that normalisation layers used.

    Example:
        >>> meter = InterpolationMeter()
        >>> for step, margin in enumerate([-0.1, 0.2, 0.3]):
        ...     meter.update(step, [margin, 0.5])
        >>> meter.compute().zero_error_from
        1.0
    """

    def __init__(
        self, *, tolerance: float = 0.0, norm_mode: NormMode | str = NormMode.EVAL
    ) -> None:
        if not 0 <= tolerance < 1:
            raise ConfigError(
                f"tolerance {tolerance} is no share of samples: pass 0 or a bit more"
            )
        self._tolerance, self._mode = float(tolerance), NormMode(norm_mode)
        self.reset()

    def reset(self) -> None:
        """Discard all steps."""
        self._looks: dict[float, _Look] = {}
        self._watch = Stopwatch()

    def update(self, step: float, margins: Numbers) -> None:
        """Add margins of samples at a step, such as those of ``classifier_norms``."""
        values = _margins(margins)
        errors = int((values <= 0).sum())
        look = _Look(values.size, errors, float(values.min()), float(values.sum()))
        self._add(_step(step), look)

    def update_errors(self, step: float, rate: float, samples: float = 1) -> None:
        """Add the error rate of samples at a step, if margins are unknown."""
        wrong = float(as_numbers("rate", rate, error=MeasurementError))
        count = float(as_numbers("samples", samples, error=MeasurementError))
        if not (0 <= wrong <= 1 and count > 0):
            raise MeasurementError(
                f"an error rate of {wrong:g} over {count:g} samples came: pass a share "
                "from 0 to 1, of some samples"
            )
        self._add(_step(step), _Look(count, wrong * count, math.nan, math.nan))

    def merge(self, other: Self) -> None:
        """Add all that another meter has seen."""
        for step, look in other._looks.items():
            self._add(step, look)

    def compute(self) -> TerminalPhase:
        """Return the phases of the training so far."""
        if not self._looks:
            raise MeasurementError("no margins came: call update with some first")
        steps = sorted(self._looks)
        looks = [self._looks[step] for step in steps]
        rates = np.array([look.wrong / look.count for look in looks])
        sums = np.array([look.total for look in looks])
        at = np.array(steps)
        zero = rates <= self._tolerance
        average, first = _first(at, sums > 0), _first(at, zero)
        if np.isnan(sums).any():
            average = math.nan, math.nan
        settled = _first(at, np.logical_and.accumulate(zero[::-1])[::-1])
        after = zero[int(np.argmax(zero)) :] if zero.any() else zero[:0]
        return TerminalPhase(
            steps=at,
            error_rate=rates,
            least_margin=np.array([look.least for look in looks]),
            mean_margin=sums / np.array([look.count for look in looks]),
            separable=rates == 0,
            average_separable=sums > 0,
            average_from=average[0],
            average_from_error=average[1],
            zero_error_from=first[0],
            zero_error_from_error=first[1],
            settled_from=settled[0],
            settled_from_error=settled[1],
            relapses=int((after[:-1] & ~after[1:]).sum()),
            terminal_share=float(after.mean()) if after.size else math.nan,
            tolerance=self._tolerance,
            status=Status.EXACT,
            norm_mode=self._mode,
            cost=self._watch.read(),
            method="margins",
        )

    def _add(self, step: float, look: _Look) -> None:
        known = self._looks.get(step)
        self._looks[step] = look if known is None else known + look


def interpolation(
    margins: Mapping[float, Numbers] | None = None,
    *,
    errors: Mapping[float, float] | None = None,
    tolerance: float = 0.0,
    norm_mode: NormMode | str = NormMode.EVAL,
) -> TerminalPhase:
    """Return separability, the time of zero training error and the terminal phase.

    Args:
        margins: Margins of all samples, by step.
        errors: Training error rates by step, if margins are unknown.
        tolerance: Error rate that counts as zero.
        norm_mode: Statistics that normalisation layers used.

    Example:
        >>> phase = interpolation({0: [-1, 1], 10: [1, 2], 20: [-1, 2], 30: [1, 1]})
        >>> phase.zero_error_from, phase.zero_error_from_error, phase.settled_from
        (10.0, 10.0, 30.0)
        >>> phase.relapses
        1
    """
    meter = InterpolationMeter(tolerance=tolerance, norm_mode=norm_mode)
    for step, values in (margins or {}).items():
        meter.update(step, values)
    for step, rate in (errors or {}).items():
        meter.update_errors(step, rate)
    return meter.compute()


def _first(steps: np.ndarray, met: np.ndarray) -> tuple[float, float]:
    """Return the first step at which a condition holds, and how late it may be."""
    if not met.any():
        return math.inf, math.inf
    place = int(np.argmax(met))
    late = float(steps[place] - steps[place - 1]) if place else 0.0
    return float(steps[place]), late


def _margins(margins: Numbers) -> np.ndarray:
    given: Any = margins
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    values = as_numbers("margins", given, ..., error=MeasurementError).reshape(-1)
    if not values.size:
        raise MeasurementError("margins of no sample came: pass one a sample")
    return values


def _step(step: float) -> float:
    return float(as_numbers("step", step, error=MeasurementError))
