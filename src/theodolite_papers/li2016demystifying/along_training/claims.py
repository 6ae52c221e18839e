"""What figures 5 and 6 and the prose around them claim."""

from theodolite.core import (
    Choice,
    Claim,
    PredictedAndMeasured,
    Quantity,
    Region,
    Select,
    Test,
    above,
    against,
    below,
    between,
    beyond,
    each,
    equivalent,
    erratum,
    every,
    inside,
    known,
    largest,
    mean,
    measured,
    near,
    ordered,
    our_margin,
    predicted,
    slope_difference,
    smallest,
    somewhere,
    trend,
)

from ..shared.reads import narrowed
from .config import PAIR
from .figure import BEGINNING, NEAR, at_levels, drops, late, peaks

HALF = Choice(
    what="levels that at least half of a kind's runs pass",
    why="networks start at different losses, and some end early",
)
AT_HALF = near(0.5, 1e-9, source="rounding", why="closed forms in double precision")
DROPPING = between(0.1, 0.9, source="ours", why="the ends of the drop are flat")
CLOSE = our_margin(0.01, "weights are small and not zero", centre=0.5)
EARLY_DROP = measured("early_drop").called("fall of the index at the beginning")
LATER_DROP = measured("later_drop").called("its further fall")
CURVATURE_BEFORE = measured("curvature_before").called(
    "mean curvature along the gradient until it peaks"
)


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


INDEX_CLAIMS = (
    Claim(
        name="index-always-smaller",
        place="Figure 6 left, section 5.2",
        statement="At equal loss 2-shortcut networks have a smaller fraction of "
        "negative eigenvalues than plain ones.",
        test=narrowed(
            at_levels(0), every(_fewer_than("orthogonal"), _fewer_than("xavier"))
        ),
        rival="curves that cross",
        choices=(HALF,),
    ),
    Claim(
        name="index-drops-first",
        place="Figure 6 left, section 5.2",
        statement="The index of 2-shortcut networks drops at the beginning: more than "
        "it does later.",
        test=narrowed(
            drops,
            every(inside(mean(EARLY_DROP), above(0)), ordered(LATER_DROP, EARLY_DROP)),
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
        test=narrowed(peaks, inside(mean(CURVATURE_BEFORE), below(0))),
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


FACTOR_THREE = our_margin(0.5, "a factor of three; they start a factor of 30 apart")
APART = above(0.5, source="ours", why="the margin of what counts as similar")
LEVEL = our_margin(0.1, "a quarter for each factor of ten in the excess loss")
GROWING = below(-0.1, source="ours", why="the margin of what counts as similar")
ZERO = below(1e-9, source="rounding", why="two inverses at the optimum")
LATE = Choice(
    what=f"excess losses from {NEAR:g} of that at zero weights down",
    why="the prose speaks of what the curves evolve to, and of points near minimisers",
)


def ratio(kind: str) -> Select:
    """Select the condition numbers of a kind from the given rows."""
    return measured("ratio", kind=kind)


def better_than(kind: str) -> Test:
    """Judge whether 2-shortcut networks are better conditioned at every level."""

    def at(fraction: float) -> Test:
        mine, theirs = (ratio(k).at(fraction=fraction) for k in ("two_shortcut", kind))
        return ordered(mine, theirs, log=True, paired=False)

    return each("fraction", ratio(kind), at)


def _more_at_large(kind: str) -> Test:
    name = f"log10 ratio of {kind} less 2-shortcut, rise with log10 of the excess loss"
    gap = slope_difference(ratio(kind), ratio("two_shortcut"), "fraction", name=name)
    return inside(gap, above(0))


def _towards(kind: str, region: Region) -> Test:
    """Judge the slope of the ratio over the excess loss, near a minimiser."""
    near = measured("ratio", lambda row: row["fraction"] <= NEAR, kind=kind)
    return trend(near, over="fraction", slope_in=region, points=2)


def _rank_room(both: PredictedAndMeasured) -> Quantity:
    bound = both.predicted.value(quantity="rank_at_optimum")
    rank = max(both.measured.where(quantity="optimum_rank").values(), default=bound)
    name = "largest rank at an optimum less the square of the width"
    return known(name, float(rank) - bound)


def _like_orthogonal(fraction: float) -> Test:
    pair = (ratio(k).at(fraction=fraction) for k in ("one_shortcut", "orthogonal"))
    return equivalent(*pair, margin=FACTOR_THREE, log=True, paired=False)


def _below_orthogonal(fraction: float) -> Test:
    pair = (ratio(k).at(fraction=fraction) for k in PAIR)
    return ordered(*pair, by=APART, log=True, paired=False)


WORDS = {
    "ratio": "condition number",
    "index": "share of negative eigenvalues",
    "first_index": "share of negative eigenvalues at the start",
    "optimum_small": (
        "tenth percentile of eigenvalue sizes at an optimum, over the largest"
    ),
}
CLAIMS = (
    Claim(
        name="better-at-every-loss",
        place="Figure 5, section 5.2",
        statement="At depth 16 the condition number of 2-shortcut networks is smaller "
        "than that of plain ones at every loss.",
        test=narrowed(
            at_levels(0), every(better_than("orthogonal"), better_than("xavier"))
        ),
        rival="curves that cross",
        choices=(HALF,),
    ),
    Claim(
        name="better-most-at-large-loss",
        place="Figure 5, section 5.2",
        statement="The advantage is larger when the loss is large.",
        test=narrowed(
            at_levels(0), every(_more_at_large("orthogonal"), _more_at_large("xavier"))
        ),
        rival="an advantage that is larger near the optimum",
        choices=(HALF,),
    ),
    Claim(
        name="condition-numbers-meet",
        place="Figure 5, section 5.2",
        statement="Condition numbers of orthogonal and 2-shortcut networks roughly "
        "evolve to the same value.",
        test=narrowed(
            late,
            equivalent(
                *(measured("late_ratio", kind=kind) for kind in PAIR),
                margin=FACTOR_THREE,
                paired=False,
                name="mean log10 ratio near the minimum, 2-shortcut less orthogonal",
            ),
        ),
        rival="condition numbers that stay apart as they start",
        choices=(LATE,),
    ),
    erratum(
        name="ratio-diverges",
        place="Figure 5, section 5.2",
        statement="They meet because minimisers, and all points near them, have "
        "similar condition numbers.",
        printed="minimisers, and any point near them, have similar condition numbers",
        corrected="at a minimiser of a linear network the Hessian is $J^T J$ with at "
        "most $d^2$ non-zero eigenvalues among $L\\,d^2$: the 10th percentile is 0, "
        "and $|\\lambda|_{\\max}/|\\lambda|_{(0.1)} \\to \\infty$ for $L \\geq 2$",
        test=narrowed(at_levels(0), every(_towards(kind, LEVEL) for kind in PAIR)),
        corrected_test=every(
            narrowed(at_levels(0), every(_towards(kind, GROWING) for kind in PAIR)),
            inside(_rank_room, below(0.5, source="rounding", why="a count")),
            inside(largest(measured("optimum_small")), ZERO),
        ),
        rival="a ratio that levels off",
        choices=(LATE,),
    ),
    Claim(
        name="one-shortcut-like-orthogonal",
        place="Section 5",
        statement="The training dynamics of 1-shortcut networks are similar to those "
        "of linear networks with orthogonal initialisation.",
        test=narrowed(
            at_levels(0),
            against(
                each("fraction", ratio("one_shortcut"), _like_orthogonal),
                somewhere("fraction", ratio("two_shortcut"), _below_orthogonal),
            ),
        ),
        rival="condition numbers as far apart as those of 2-shortcut networks",
        choices=(
            Choice(
                what="dynamics are compared by condition numbers at equal loss",
                why="the paper shows none for 1-shortcut networks",
            ),
        ),
    ),
    *INDEX_CLAIMS,
    beyond(
        name="better-at-another-depth",
        place="Figure 5, section 5.2, at another depth",
        statement="The same holds at a depth that the paper does not show: 2-shortcut "
        "networks are better conditioned than orthogonal ones at every loss.",
        test=narrowed(at_levels(1), better_than("orthogonal")),
        rival="curves that cross at low loss",
        choices=(HALF,),
    ),
)
