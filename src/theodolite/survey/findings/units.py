"""Dead units, and heads and inputs of the wrong size."""

from dataclasses import replace
from math import isfinite

from ..records.whole_survey import Survey
from .evidence import (
    Evidence,
    Figure,
    by_block,
    by_module,
    figure_of,
    largest,
    single,
)
from .rule import Rule

# Shares of dead units in a layer: half is ``sick``, a quarter a ``note``: our choice.
DEAD = 0.25
MOSTLY_DEAD = 0.5
SATURATED = 0.5
TWINS = 0.5
# Smaller layers lose units by chance, and are often bottlenecks: our choice.
FEW_UNITS = 16


def _worst(
    survey: Survey, quantity: str, threshold: float, *, wide: bool = False
) -> Evidence | None:
    """Return the largest share over the layers, or over those on the main path.

    Args:
        survey: What was measured.
        quantity: The share.
        threshold: What it is held against.
        wide: Whether to leave out gates and layers of few units.
    """
    shares = [
        (str(row.get("layer") or row["module"]), figure_of(row))
        for row in survey.find(quantity)
        if not wide
        or not (row.get("gate") or row.get("n_units", FEW_UNITS) < FEW_UNITS)
    ]
    worst = largest(shares)
    if worst is None:
        return None
    names = dict.fromkeys(name for name, f in shares if f.value > threshold)
    return Evidence(
        figure=worst[1],
        threshold=threshold,
        above=True,
        where=tuple(names),
        detail=f"The worst share is {worst[1]}, behind {worst[0]}.",
    )


def _worst_of_units(
    survey: Survey, quantity: str, threshold: float, *, sick: float
) -> Evidence | None:
    """Return the largest share, as ``sick`` for a bad wide layer, else as a note.

    Args:
        survey: What was measured.
        quantity: The share.
        threshold: What it is held against.
        sick: The share of a wide layer above which the severity is ``sick``.
    """
    wide = _worst(survey, quantity, threshold, wide=True)
    if wide is not None and replace(wide, threshold=sick).beyond:
        return replace(wide, severity="sick")
    worst = _worst(survey, quantity, threshold)
    return worst and replace(worst, severity="note")


def _not_finite(survey: Survey) -> Evidence | None:
    """Count NaN and infinite numbers; name the weights if they hold any."""
    loss = single(survey, "loss")
    if loss is None:
        return None
    weights = [n for n, f in by_module(survey, "weight_rms") if not isfinite(f.value)]
    blocks = [
        b.name for b, f in by_block(survey, "forward_rms") if not isfinite(f.value)
    ]
    count = len(weights) + len(blocks) + (not isfinite(loss.value))
    return Evidence(
        figure=Figure(float(count)),
        threshold=0.5,
        above=True,
        where=tuple(weights or blocks[:1]),
        detail=f"The loss is {loss.value:.3g}.",
    )


RULES = (
    Rule(
        name="not-finite",
        severity="sick",
        title="Numbers are NaN or infinite",
        says=(
            "What is NaN stays NaN through every layer and every step, so that nothing "
            "can be learned or measured from here. If weights are, go back to a "
            "checkpoint or draw them anew; if only signals are, look for divisions by "
            "zero, logarithms and overflow in the data and in the block named."
        ),
        quantity="losses, signals of blocks and weights of modules that are not finite",
        measures=("map", "signal"),
        source="arithmetic of floating point, IEEE 754: NaN passes on",
        confidence="proved",
        read=_not_finite,
    ),
    Rule(
        name="dead-units",
        severity="sick",
        title="Many rectifiers never open",
        says=(
            "These units give zero for every sample, so that no gradient reaches the "
            "weights before them. They cannot come back to life by themselves."
        ),
        quantity="dead_share",
        measures=("units",),
        source=(
            "a rectifier that is shut has derivative 0; the levels of 0.25 for a note "
            "and 0.5 are ours; a note in gates and in layers of fewer than 16 units"
        ),
        confidence="proved",
        read=lambda survey: _worst_of_units(
            survey, "dead_share", DEAD, sick=MOSTLY_DEAD
        ),
    ),
    Rule(
        name="saturated-units",
        severity="sick",
        title="Many units are stuck at their ends",
        says=(
            "These tanh or sigmoid units sit at one of their ends for most samples, "
            "where their slope is nearly zero: hardly any gradient passes them."
        ),
        quantity="saturated_share",
        measures=("units",),
        source="Glorot & Bengio (2010), figures 2 and 3; the level of 0.5 is ours",
        confidence="rule of thumb",
        read=lambda survey: _worst(survey, "saturated_share", SATURATED),
    ),
    Rule(
        name="twin-units",
        severity="sick",
        title="Units of a layer are copies of each other",
        says=(
            "Several units of one layer give equal answers to every sample. If they "
            "are read alike, they get equal gradients and stay copies for ever, so "
            "that the layer is as narrow as the number of different ones."
        ),
        quantity="twin_share",
        measures=("units",),
        source=(
            "gradient descent is equivariant under exchanging equal units, which "
            "therefore stay equal; the level of 0.5 is ours; a note in gates and in "
            "layers of fewer than 16 units"
        ),
        confidence="proved",
        read=lambda survey: _worst_of_units(survey, "twin_share", TWINS, sick=TWINS),
    ),
)
