"""Good findings: what is as it should be."""

from ..records.whole_survey import Survey
from .evidence import Evidence, Figure, body, decades
from .rule import Rule

# Decades between the largest and the smallest: ours.
STEADY = 1.0


def _steady(survey: Survey) -> Evidence | None:
    """Return the larger of the forward and the backward spread."""
    spreads: list[Figure] = []
    for quantity in ("forward_rms", "backward_rms"):
        sizes = sorted((f for _, f in body(survey, quantity)), key=lambda f: f.value)
        if len(sizes) < 3:
            return None
        spreads.append(decades(sizes[-1], sizes[0]))
    worst = max(spreads, key=lambda f: f.value)
    return Evidence(figure=worst, threshold=STEADY, above=False)


RULES = (
    Rule(
        name="signal-steady",
        severity="good",
        title="Signal and gradient keep their size through the depth",
        says=(
            "From the first block to the last neither changes by more than a factor "
            "of ten, so that one learning rate suits all layers."
        ),
        quantity="decades between the largest and the smallest",
        measures=("map", "signal"),
        source="the factor of ten is ours",
        study="li2016demystifying/signal_sizes",
        confidence="rule of thumb",
        read=_steady,
    ),
)
