"""Signals that grow, shrink or merge with depth."""

import math

from ..records.whole_survey import Survey
from .evidence import Evidence, Figure, body, decades, largest, smallest
from .rule import rule

# Decades by which signals of a healthy network may change, forward and backward, and
# by which they do where they are praised: our choice.
FORWARD_LOSS, BACKWARD_CHANGE, STEADY = -2.0, 3.0, 1.0


@rule(
    "signal-explodes",
    "sick",
    "The signal explodes with depth",
    quantity="growth of forward_rms in powers of ten",
    source="Li et al. (2016), section 4.1: output variances of residual networks with "
    "He's weights double at every block; the factor ten is ours",
    study="li2016demystifying/signal_sizes",
    confidence="measured",
)
def signal_explodes(survey: Survey) -> Evidence | None:
    """Each block adds more than the block before. With normalised branches the signal
    grows at most like the square root of the depth; here it grows ten times as much or
    more. Late blocks hide early ones, and the scores are huge at the start.
    """
    signal = body(survey, "forward_rms")
    if (top := largest(signal[1:])) is None:
        return None
    fair = 0.5 * math.log10(1 + len(signal))
    return Evidence(
        figure=decades(top[1], signal[0][1]),
        threshold=1 + fair,
        above=True,
        where=(signal[0][0].name, top[0].name),
        detail=f"Here it goes from {signal[0][1]} to {top[1]}.",
    )


@rule(
    "signal-vanishes",
    "sick",
    "The signal vanishes with depth",
    quantity="growth of forward_rms in powers of ten",
    source="He et al. (2015): a rectified layer keeps its size only if its weights "
    "have variance 2/n; the factor of a hundred is ours",
    study="li2016demystifying/signal_sizes",
    confidence="measured",
)
def signal_vanishes(survey: Survey) -> Evidence | None:
    """Each layer passes on less than it gets. What reaches the end depends on biases
    and rounding rather than on the input.
    """
    signal = body(survey, "forward_rms")
    if (low := smallest(signal[1:])) is None:
        return None
    return Evidence(
        figure=decades(low[1], signal[0][1]),
        threshold=FORWARD_LOSS,
        above=False,
        where=(signal[0][0].name, low[0].name),
        detail=f"Here it goes from {signal[0][1]} to {low[1]}.",
    )


def _gradient(survey: Survey, *, above: bool) -> Evidence | None:
    signal = body(survey, "backward_rms")
    early = (largest if above else smallest)(signal[:-1])
    if early is None:
        return None
    sign = 1 if above else -1
    first, last = early[0].name, signal[-1][0].name
    return Evidence(
        figure=decades(early[1], signal[-1][1]),
        threshold=sign * BACKWARD_CHANGE,
        above=above,
        where=(first, last),
        detail=f"Here it is {early[1]} at {first} and {signal[-1][1]} at {last}.",
    )


@rule(
    "gradient-vanishes",
    "sick",
    "The gradient vanishes towards the first layers",
    quantity="change of backward_rms in powers of ten",
    source="He et al. (2015) for the size per layer; the factor of a thousand is ours",
    confidence="rule of thumb",
)
def gradient_vanishes(survey: Survey) -> Evidence | None:
    """The first layers get a gradient a thousand times smaller than the last ones. With
    one learning rate for all layers, the first hardly move while the last ones learn.
    """
    return _gradient(survey, above=False)


@rule(
    "gradient-explodes",
    "sick",
    "The gradient explodes towards the first layers",
    quantity="change of backward_rms in powers of ten",
    source="Yang et al. (2019), A mean field theory of batch normalization; the factor "
    "of a thousand is ours",
    confidence="rule of thumb",
)
def gradient_explodes(survey: Survey) -> Evidence | None:
    """The first layers get a gradient a thousand times larger than the last ones. A
    learning rate that is stable for the first is too small for the last. Batch norms in
    plain networks do this by themselves: with ReLU the square of the gradient grows by
    π/(π − 1) = 1.47 per layer.
    """
    return _gradient(survey, above=True)


@rule(
    "signal-steady",
    "good",
    "Signal and gradient keep their size through the depth",
    quantity="range of signals in powers of ten",
    source="the factor of ten is ours",
    study="li2016demystifying/signal_sizes",
    confidence="rule of thumb",
)
def signal_steady(survey: Survey) -> Evidence | None:
    """From the first block to the last neither changes by more than a factor of ten, so
    that one learning rate suits all layers.
    """
    spreads: list[Figure] = []
    for quantity in ("forward_rms", "backward_rms"):
        sizes = sorted((f for _, f in body(survey, quantity)), key=lambda f: f.value)
        if len(sizes) < 3:
            return None
        spreads.append(decades(sizes[-1], sizes[0]))
    worst = max(spreads, key=lambda f: f.value)
    return Evidence(figure=worst, threshold=STEADY, above=False)
