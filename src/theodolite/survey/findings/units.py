"""Dead units, and heads and inputs of the wrong size."""

from dataclasses import replace
from math import isfinite

from ..records.whole_survey import Survey
from .evidence import (
    Evidence,
    Figure,
    by_block,
    by_module,
    divided,
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
# Number of parameters that a sentence names.
_NAMED = 8
# Multiples of the loss of a guess, and of the size of unit-variance inputs: our choice.
SURE = 2.0
LARGE_INPUTS = 10.0


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


def _without_gradient(survey: Survey) -> Evidence | None:
    """Count the trained parameters whose gradient is all zero."""
    rows = survey.find("n_zero_gradients")
    if len(rows) != 1:
        return None
    names = tuple(row["parameter"] for row in survey.find("zero_gradient"))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return Evidence(
        figure=figure_of(rows[0]),
        threshold=0.0,
        above=True,
        where=names,
        detail=(
            f"Here it is {len(names)} of {rows[0].get('n_parameters')} parameters: "
            f"{', '.join(names[:_NAMED])}{more}."
        ),
    )


def _sure(survey: Survey) -> Evidence | None:
    """Compare the loss with that of equal scores; for classifiers only."""
    if survey.find("loss_at_chance", guess="the mean"):
        return None
    loss, chance = single(survey, "loss"), single(survey, "loss_at_chance")
    if loss is None or chance is None:
        return None
    return Evidence(
        figure=divided(loss, chance),
        threshold=SURE,
        above=True,
        where=tuple(b.name for b in survey.blocks if b.kind == "head"),
        detail=f"The loss is {loss}; a guess would have {chance}.",
    )


def _probabilities(survey: Survey) -> Evidence | None:
    """Return how far outputs are from probabilities, if the loss expects scores."""
    away = single(survey, "simplex_distance")
    chance = single(survey, "loss_at_chance")
    if away is None or chance is None:
        return None
    return Evidence(
        figure=away,
        threshold=1e-4,
        above=False,
        where=tuple(b.name for b in survey.blocks if b.kind == "head"),
    )


def _unscaled(survey: Survey) -> Evidence | None:
    size = single(survey, "input_rms")
    if size is None:
        return None
    return Evidence(figure=size, threshold=LARGE_INPUTS, above=True)


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
    Rule(
        name="zero-gradient",
        severity="note",
        title="Some parameters get no gradient",
        says=(
            "Their gradient is zero in every entry, so that this batch does not move "
            "them. Behind a factor that starts at zero that ends with the first "
            "steps; a layer that is never called, or whose units are all dead, stays "
            "as it is."
        ),
        quantity="n_zero_gradients",
        measures=("signal",),
        source="counted",
        confidence="proved",
        read=_without_gradient,
    ),
    Rule(
        name="sure-and-wrong",
        severity="warning",
        title="The network does worse than guessing",
        says=(
            "Its loss is twice that of a guess or more: the scores are large and say "
            "the wrong thing, and the softmax is saturated. The first steps go into "
            "shrinking them. A small or zero head starts at the loss of a guess."
        ),
        quantity="loss over loss_at_chance",
        measures=("map", "signal"),
        source="equal scores of C classes have loss log C; the factor 2 is ours",
        confidence="proved",
        about="labels",
        read=_sure,
    ),
    Rule(
        name="probabilities-as-logits",
        severity="sick",
        title="The loss takes a softmax of probabilities",
        says=(
            "The outputs are probabilities already (none is negative, and they sum to "
            "one), and the cross-entropy applies a softmax to them once more. The "
            "loss then cannot fall below log(1 + (C − 1)/e), and gradients are small."
        ),
        quantity="simplex_distance",
        measures=("map", "signal"),
        source="the least cross-entropy of scores within [0, 1]: log(1 + (C − 1)/e)",
        confidence="proved",
        read=_probabilities,
    ),
    Rule(
        name="inputs-unscaled",
        severity="warning",
        title="The inputs are not scaled",
        says=(
            "Inputs are much larger than 1, for which initialisations are made. The "
            "first layer's gradient grows in proportion and its curvature with the "
            "square, so that it needs a rate of its own."
        ),
        quantity="input_rms",
        measures=("signal",),
        source=(
            "LeCun et al. (1998), Efficient backprop, section 4.3; the level of 10 "
            "is ours"
        ),
        confidence="rule of thumb",
        about="inputs",
        read=_unscaled,
    ),
)
