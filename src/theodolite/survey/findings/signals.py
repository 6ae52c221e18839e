"""Signals that grow, shrink or merge with depth."""

import math

from ..records.whole_survey import Block, Survey
from .evidence import Evidence, Figure, body, decades, largest, smallest
from .rule import Rule

# Decades by which the signal of a healthy network may change: our choice.
FORWARD_LOSS = -2.0
BACKWARD_CHANGE = 3.0


def _grown(survey: Survey) -> Evidence | None:
    """Compare the growth with that of independent normalised branches."""
    signal = body(survey, "forward_rms")
    top = largest(signal[1:])
    if top is None:
        return None
    fair = 0.5 * math.log10(1 + len(signal))
    return Evidence(
        figure=decades(top[1], signal[0][1]),
        threshold=1 + fair,
        above=True,
        where=_between(signal, top[0]),
        detail=f"Here it goes from {signal[0][1]} to {top[1]}.",
    )


def _shrunk(survey: Survey) -> Evidence | None:
    signal = body(survey, "forward_rms")
    low = smallest(signal[1:])
    if low is None:
        return None
    return Evidence(
        figure=decades(low[1], signal[0][1]),
        threshold=FORWARD_LOSS,
        above=False,
        where=_between(signal, low[0]),
        detail=f"Here it goes from {signal[0][1]} to {low[1]}.",
    )


def _gradient(survey: Survey, *, above: bool) -> Evidence | None:
    signal = body(survey, "backward_rms")
    early = (largest if above else smallest)(signal[:-1])
    if early is None:
        return None
    sign = 1 if above else -1
    return Evidence(
        figure=decades(early[1], signal[-1][1]),
        threshold=sign * BACKWARD_CHANGE,
        above=above,
        where=(early[0].name, signal[-1][0].name),
        detail=(
            f"Here it is {early[1]} at {early[0].name} and {signal[-1][1]} at "
            f"{signal[-1][0].name}."
        ),
    )


def _between(signal: list[tuple[Block, Figure]], last: Block) -> tuple[str, ...]:
    return signal[0][0].name, last.name


RULES = (
    Rule(
        name="signal-explodes",
        severity="sick",
        title="The signal grows too large with depth",
        says=(
            "Each block adds more than the last. Branches that are normalised grow no "
            "faster than the root of the depth; this is ten times that or more, so "
            "that late blocks drown early ones and scores start out huge."
        ),
        quantity="decades of growth of forward_rms",
        measures=("map", "signal"),
        source=(
            "Li et al. (2016), section 4.1: output variances of residual networks "
            "with He's weights double at every block; the factor ten is ours"
        ),
        study="li2016demystifying/signal_sizes",
        confidence="measured",
        read=_grown,
    ),
    Rule(
        name="signal-vanishes",
        severity="sick",
        title="The signal dies out with depth",
        says=(
            "Each layer hands on less than it gets, so that what reaches the end hangs "
            "on biases and rounding rather than on the input."
        ),
        quantity="decades of growth of forward_rms",
        measures=("map", "signal"),
        source=(
            "He et al. (2015): a rectified layer keeps its size only if its weights "
            "have variance 2/n; the factor of a hundred is ours"
        ),
        study="li2016demystifying/signal_sizes",
        confidence="measured",
        read=_shrunk,
    ),
    Rule(
        name="gradient-vanishes",
        severity="sick",
        title="The gradient dies out on its way back",
        says=(
            "The first layers get a gradient a thousand times smaller than the last "
            "ones. With one learning rate for all they stand still while the others "
            "learn."
        ),
        quantity="decades of change of backward_rms",
        measures=("map", "signal"),
        source=(
            "He et al. (2015) for the size a layer; the factor of a thousand is ours"
        ),
        confidence="rule of thumb",
        read=lambda survey: _gradient(survey, above=False),
    ),
    Rule(
        name="gradient-explodes",
        severity="sick",
        title="The gradient grows too large on its way back",
        says=(
            "The first layers get a gradient a thousand times larger than the last "
            "ones. A rate that the first bear is too small for the last. Batch norms "
            "in plain networks do this by themselves: with rectifiers the square of "
            "the gradient grows by π/(π − 1) = 1.47 a layer."
        ),
        quantity="decades of change of backward_rms",
        measures=("map", "signal"),
        source=(
            "Yang et al. (2019), A mean field theory of batch normalization; the "
            "factor of a thousand is ours"
        ),
        confidence="rule of thumb",
        read=lambda survey: _gradient(survey, above=True),
    ),
)
