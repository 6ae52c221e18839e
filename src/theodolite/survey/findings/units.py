"""Numbers that are not finite, and dead and saturated units."""

from dataclasses import replace
from math import isfinite

from ..records.whole_survey import Survey
from .evidence import Evidence, Figure, by_block, by_module, figure_of, largest, single
from .rule import rule

# Shares of dead units in a layer: half is ``sick``, a quarter a ``note``: our choice.
DEAD = 0.25
MOSTLY_DEAD = 0.5
# Smaller layers lose units by chance, and are often bottlenecks: our choice.
FEW_UNITS = 16
# Share of saturated units in a layer: our choice.
SATURATED = 0.5


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


@rule(
    "not-finite",
    "sick",
    "Numbers are NaN or infinite",
    quantity="losses, signals of blocks and weights of modules that are not finite",
    source="arithmetic of floating point, IEEE 754: NaN passes on",
    confidence="proved",
)
def not_finite(survey: Survey) -> Evidence | None:
    """NaN stays NaN through every layer and every step, so that nothing can be learned
    or measured from here. If weights are NaN, go back to a checkpoint or re-initialise
    them; if only signals are, look for divisions by zero, logarithms and overflow in
    the data and in the block named.
    """
    if (loss := single(survey, "loss")) is None:
        return None
    weights = [n for n, f in by_module(survey, "weight_rms") if not isfinite(f.value)]
    signals = by_block(survey, "forward_rms")
    blocks = [b.name for b, f in signals if not isfinite(f.value)]
    count = len(weights) + len(blocks) + (not isfinite(loss.value))
    return Evidence(
        figure=Figure(float(count)),
        threshold=0.5,
        above=True,
        where=tuple(weights or blocks[:1]),
        detail=f"The loss is {loss.value:.3g}.",
    )


@rule(
    "dead-units",
    "sick",
    "Many ReLU units are dead",
    quantity="dead_share",
    source="a rectifier that is shut has derivative 0; the levels of 0.25 for a note "
    "and 0.5 are ours; a note in gates and in layers of fewer than 16 units",
    confidence="proved",
)
def dead_units(survey: Survey) -> Evidence | None:
    """These units give zero for every sample, so that the weights before them get no
    gradient, and the units stay dead.
    """
    wide = _worst(survey, "dead_share", DEAD, wide=True)
    if wide is not None and replace(wide, threshold=MOSTLY_DEAD).beyond:
        return replace(wide, severity="sick")
    worst = _worst(survey, "dead_share", DEAD)
    return worst and replace(worst, severity="note")


@rule(
    "saturated-units",
    "sick",
    "Many tanh or sigmoid units are saturated",
    quantity="saturated_share",
    source="Glorot & Bengio (2010), figures 2 and 3; the level of 0.5 is ours",
    confidence="rule of thumb",
)
def saturated_units(survey: Survey) -> Evidence | None:
    """For most samples these units are near an end of their range, where the slope is
    nearly zero: hardly any gradient passes them.
    """
    return _worst(survey, "saturated_share", SATURATED)
