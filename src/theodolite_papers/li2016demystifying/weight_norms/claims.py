"""Claims of figure 3 and the text around it."""

from collections.abc import Callable

from theodolite.core import (
    Choice,
    Claim,
    Judgement,
    PredictedAndMeasured,
    Quantity,
    Read,
    Rows,
    Select,
    Test,
    above,
    against,
    at_each,
    below,
    beyond,
    each,
    erratum,
    every,
    inside,
    known,
    largest,
    mean,
    measured,
    our_margin,
    sampled,
    slope_by_network,
    smallest,
    trend,
)

from ..shared.reads import falling, narrowed
from .config import NETWORKS
from .figure import at_best, early, ends, underway

TENTH = our_margin(0.1, "small beside the growth by then", centre=1.0)
GROWN = above(1.2, source="ours", why="a law of growth wants growth to be seen")
KEEPS_ON = below(
    0.1, source="ours", why="a power has 0; norms that level off lose all of it"
)
INVERTIBLE = below(0.5, source="rounding", why="a count")
UNIT = above(1 - 1e-6, source="rounding", why="two inverses at the optimum")
AT_BEST = Choice(
    what="each depth at the rate with the least mean final loss",
    why="the paper gives no rate; section 5.3 compares optimal ones",
)
COMMON = Choice(
    what="all depths at the highest rate at which none diverges",
    why="the paper gives no rate; what is compared should differ in depth alone",
)


def norm(network: str) -> Select:
    """Select the mean norms of a network from the given rows."""
    return measured("norm", network=network)


def in_both_panels(make: Callable[[Select], Test]) -> Test:
    """Judge both panels of figure 3, left and right."""
    return every(make(norm(network)) for network in NETWORKS)


def _slackening(rows: Select) -> Read:
    """Read the exponent over the last two depths minus that over the first two."""

    def read(both: PredictedAndMeasured) -> Quantity:
        table = rows(both)
        depths = table.levels("depth")
        name = f"exponent of {rows} over the last two depths less the first two"
        if len(depths) < 3:
            return sampled(name, [], note=f"{len(depths)} depths show no bend")
        late, soon = depths[-2:], depths[:2]
        last = slope_by_network(table.where(lambda row: row["depth"] in late), "depth")
        first = slope_by_network(table.where(lambda row: row["depth"] in soon), "depth")
        return last.minus(first).mean(name)

    return read


def _vanishing(rows: Select) -> Test:
    """Judge whether norms fall as a power of depth, also among the deepest networks."""
    return every(
        trend(rows, over="depth", slope_in=below(0)),
        inside(_slackening(rows), KEEPS_ON),
    )


def _early(depth: int) -> Test:
    rows = measured("early_ratio", depth=depth)
    return against(
        inside(mean(rows.called("norm over its law near zero")), TENTH),
        inside(mean(rows.reading("growth")), GROWN),
    )


def _near_zero(both: PredictedAndMeasured) -> Judgement:
    judged = PredictedAndMeasured(both.predicted, early(both))
    return each("depth", measured("early_ratio"), _early)(judged)


def _gently(rows: Rows) -> Rows:
    """Keep the lowest rate, whose maps are the best conditioned for the inverse."""
    return rows.where(lr=min(rows.levels("lr"), default=None))


def _lost_dimensions(both: PredictedAndMeasured) -> Quantity:
    rank, width = (both.predicted.only(quantity=name) for name in ("rank", "width"))
    bound = rank["error"] + width["error"]
    name = "dimensions that the optimal map loses"
    return known(name, width["value"] - rank["value"], bound)


CLAIMS = (
    Claim(
        name="norms-fall-with-depth",
        place="Figure 3, section 4.1",
        statement="The deeper a 2-shortcut network, the smaller the mean Frobenius "
        "norm of its matrices when training ends, without and with ReLU at mid.",
        test=narrowed(ends, in_both_panels(lambda rows: falling(rows, "depth"))),
        rival="norms that do not depend on depth",
        choices=(COMMON,),
    ),
    Claim(
        name="norms-fall-during-training",
        place="Figure 3, section 4.1",
        statement="The deeper a 2-shortcut network, the smaller its mean norm during "
        "training, too.",
        test=narrowed(
            underway,
            in_both_panels(
                lambda rows: at_each("step", rows, lambda at: falling(at, "depth"))
            ),
        ),
        rival="a deeper network with larger norms at some step",
        choices=(
            Choice(
                what="from the step on at which every loss has halved",
                why="near zero all depths grow by one law; see the claim on it",
            ),
            COMMON,
        ),
    ),
    Claim(
        name="training-ends-around-zero",
        place="Section 4.1, after figure 3; section 2, theorem 1",
        statement="As networks become deeper training ends nearer and nearer to zero: "
        "norms vanish as a power of depth; theorem 1 allows $R^{-1/2}$ for $R$ units.",
        test=narrowed(ends, in_both_panels(_vanishing)),
        rival="norms that level off above zero, with a power that goes to 0",
        choices=(COMMON,),
    ),
    beyond(
        name="norms-fall-at-best-rates",
        place="Figure 3, at rates as in section 5.3",
        statement="The deeper a 2-shortcut network, the smaller its norm at the end, "
        "also where each depth trains at its own best rate.",
        test=narrowed(at_best, in_both_panels(lambda rows: falling(rows, "depth"))),
        rival="norms that do not depend on depth",
        choices=(AT_BEST,),
    ),
    beyond(
        name="early-growth-is-depth-free",
        place="Theorem 2.2 applied to figure 3, left",
        statement="Near zero all depths leave alike: along the singular vectors of "
        "$M$ the matrices grow by $1 \\pm \\eta s_k$ a step.",
        test=_near_zero,
        rival="growth that depends on depth",
    ),
    erratum(
        name="linear-optimum-is-singular",
        place="Section 2, figure 3 left",
        statement="Very deep linear networks have a global minimum of vanishing "
        "norms, too: the optimal map is a product of units near the identity, and "
        "invertible.",
        printed="for very deep (general) ResNet there exists a global minimum whose "
        "weights have vanishing norm",
        corrected="true of theorem 1's ReLU units; targets that sum to 1 and centred "
        "inputs make the optimal linear map $\\Sigma^{YX}$ singular, so that at an "
        "optimum of any depth some unit $I + W_2 W_1$ is singular and $\\|W_2 W_1\\| "
        "\\geq 1$: only the infimum is approached by vanishing norms",
        test=inside(_lost_dimensions, INVERTIBLE),
        corrected_test=every(
            inside(_lost_dimensions, above(0.5, source="rounding", why="a count")),
            inside(
                smallest(
                    measured("optimum_unit").keeping(_gently),
                    name="least norm of the optimal last unit",
                ),
                UNIT,
            ),
            inside(
                largest(
                    measured("optimum_excess").keeping(_gently),
                    name="largest excess loss there",
                ),
                below(1e-6, source="rounding", why=UNIT.why),
            ),
        ),
        rival="an invertible optimal map, as random targets have",
    ),
)
