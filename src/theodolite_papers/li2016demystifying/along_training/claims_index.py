"""What figure 6 and the prose around it claim."""

from theodolite.core import (
    Choice,
    Claim,
    Select,
    Test,
    above,
    below,
    between,
    beyond,
    each,
    every,
    inside,
    largest,
    mean,
    measured,
    near,
    ordered,
    our_margin,
    predicted,
    smallest,
)

from ..shared.reads import narrowed
from .figure import BEGINNING, at_levels, drops, peaks

AT_HALF = near(0.5, 1e-9, source="rounding", why="closed forms in double precision")
DROPPING = between(0.1, 0.9, source="ours", why="the ends of the drop are flat")
CLOSE = our_margin(0.01, "weights are small and not zero", centre=0.5)


def _fewer_than(kind: str) -> Test:
    """Judge whether 2-shortcut networks have the smaller index at every level."""
    theirs, mine = (measured("index", kind=k) for k in (kind, "two_shortcut"))

    def at(fraction: float) -> Test:
        pair = (rows.at(fraction=fraction) for rows in (mine, theirs))
        return ordered(*pair, paired=False)

    return each("fraction", theirs, at)


def _first(kind: str) -> Select:
    return measured("first_index", kind=kind).keeping(
        lambda rows: rows.where(depth=min(rows.levels("depth"), default=None))
    )


CLAIMS = (
    Claim(
        name="index-always-smaller",
        place="Figure 6 left, section 5.2",
        statement="At equal loss 2-shortcut networks have a smaller fraction of "
        "negative eigenvalues than plain ones.",
        test=narrowed(
            at_levels(0), every(_fewer_than("orthogonal"), _fewer_than("xavier"))
        ),
        rival="curves that cross",
        choices=(
            Choice(
                what="levels that at least half of a kind's runs pass",
                why="networks start at different losses, and some end early",
            ),
        ),
    ),
    Claim(
        name="index-drops-first",
        place="Figure 6 left, section 5.2",
        statement="The index of 2-shortcut networks drops at the beginning: more than "
        "it does later.",
        test=narrowed(
            drops,
            every(
                inside(mean(measured("early_drop")), above(0)),
                ordered(measured("later_drop"), measured("early_drop")),
            ),
        ),
        rival="a drop spread over the whole of training",
        choices=(
            Choice(
                what=f"the beginning ends with {BEGINNING:g} of the excess loss left",
                why="the figure's axis is the loss",
            ),
        ),
    ),
    Claim(
        name="gradient-peaks-as-index-drops",
        place="Figure 6 right",
        statement="The gradient reaches its maximum while the index drops.",
        test=narrowed(
            peaks,
            inside(
                mean(
                    measured("drop_at_peak"),
                    name="share of the drop made when the gradient peaks",
                ),
                DROPPING,
            ),
        ),
        rival="a peak before the drop, or after it",
    ),
    Claim(
        name="towards-negative-curvature",
        place="Figure 6 right, section 5.2",
        statement="Near the saddle at which training starts, until the gradient "
        "peaks, it goes along negative curvature.",
        test=narrowed(peaks, inside(mean(measured("curvature_before")), below(0))),
        rival="positive curvature along the gradient from the start",
    ),
    beyond(
        name="index-starts-at-half",
        place="Figure 6 left, at the start and at other depths",
        statement="At the start the index of 2-shortcut networks is $1/2$ at every "
        "depth, and that of shallow plain networks is smaller.",
        test=every(
            inside(largest(predicted("index")), AT_HALF),
            inside(smallest(predicted("index")), AT_HALF),
            inside(
                mean(measured("index", task="levels", kind="two_shortcut", step=0)),
                CLOSE,
            ),
            *(inside(mean(_first(k)), below(0.5)) for k in ("orthogonal", "xavier")),
        ),
        rival="plain networks that start at one half or above",
    ),
)
