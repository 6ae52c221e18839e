"""Claims of figure 7 and the text about it."""

import math
from functools import partial

import numpy as np

from theodolite.core import (
    Choice,
    Claim,
    PredictedAndMeasured,
    Quantity,
    Read,
    ReadAs,
    Row,
    Rows,
    Select,
    Test,
    above,
    against,
    below,
    beyond,
    by_network,
    each,
    every,
    inside,
    known,
    measured,
    ordered,
    our_margin,
    readings,
    somewhere,
    trend,
)

from ..shared.final_losses.reading import (
    ALL_DEPTHS,
    FROM_EIGHT,
    NAMES,
    NO_DIVERGENCE,
    RATES_MATTER,
    any_rate,
    faster,
    gap,
    lowest,
    on_losses,
    rate_matters,
    reference,
    slower_to_leave,
)

# The abstract says that 2-shortcut networks do better than these.
RIVALS = ("xavier", "orthogonal", "three_shortcut")
OTHERS = (*RIVALS, "one_shortcut")
CLOSE = below(0.01, source="ours", why="a hundredth of the loss is no longer seen")
FAR = above(0.01, source="ours", why=CLOSE.why)
HALF_A_DECADE = our_margin(0.5, "networks of one kind spread by as much")
STAYS = above(-0.5, source="ours", why="halfway to inverse proportion to depth")
FALLS = below(-0.5, source="ours", why=STAYS.why)


SCALED = ("value", "error")


def loss(network: str) -> Select:
    """Select the losses above the optimum of a network."""
    return measured("loss", network=network).called("excess")


def rate(network: str) -> Select:
    """Select the best rates of deep networks that have one best rate."""
    rows = measured("rate", rate_matters, network=network)
    return rows.called("log10 best rate")


def share_of(rows: Select, quantity: str, *, log: bool = False) -> Read:
    """Read losses above the optimum as a share of a predicted number."""

    def read(both: PredictedAndMeasured) -> Quantity:
        whole = reference(both, quantity)
        shares = Rows(
            {**row, **{k: None if row[k] is None else row[k] / whole for k in SCALED}}
            for row in rows(both)
        )
        title = f"{'log10 ' if log else ''}{rows} over {quantity.replace('_', ' ')}"
        return by_network(shares, log=log).mean(title)

    return read


def near_optimum(network: str, depth: int) -> Read:
    """Read the mean excess at a depth, as a share of the optimal loss."""
    return share_of(loss(network).at(depth=depth), "optimal_loss")


def _all_have(row: Row) -> bool:
    """Return whether networks of all kinds have a depth: units of 1, 2 and 3 fit."""
    return row["depth"] % 6 == 0


def safe_rates(both: PredictedAndMeasured, network: str) -> dict[int, float]:
    """Return by depth the highest rate up to which no run diverged, as a logarithm.

    Rates at which all runs diverged have no mean.
    """
    rows = both.measured.where(_all_have, quantity="mean_excess", network=network)
    safe = {}
    for depth in rows.levels("depth"):
        tried = rows.where(depth=depth)
        lost = [row["rate"] for row in tried if row["diverged"]]
        rates = [r for r in tried.levels("rate") if r < min(lost, default=math.inf)]
        safe[depth] = max(rates, default=-math.inf)
    return safe


def safer(rival: str) -> Test:
    """Judge whether 2-shortcut networks stand higher rates, on average over depths."""

    def read(both: PredictedAndMeasured) -> Quantity:
        ours, theirs = (safe_rates(both, n) for n in ("two_shortcut", rival))
        name = (
            "log10 highest rate at which none of these networks diverges, 2-shortcut "
            f"less {NAMES[rival]}"
        )
        gains = [ours[depth] - theirs[depth] for depth in ours if depth in theirs]
        steps = np.diff(both.measured.where(quantity="mean_excess").levels("rate"))
        if not gains or not len(steps):
            return known(name, math.nan, note="no rates were tried")
        return known(name, float(np.mean(gains)), float(steps.min()))

    return inside(read, above(0))


def _deviations(rows: Rows, log: bool) -> Rows:
    """Return the distance of each loss from the median over seeds of its depth."""
    table = []
    for depth in rows.levels("depth"):
        here = [row for row in rows.where(depth=depth) if row["value"] is not None]
        values = np.array([row["value"] for row in here])
        errors = np.array([row["error"] for row in here])
        if log:
            values, errors = np.log10(values), errors / values / math.log(10)
        away = np.abs(values - np.median(values))
        for row, value, error in zip(here, away, errors, strict=True):
            table.append({**row, "value": float(value), "error": float(error)})
    return Rows(table)


def less_spread(rival: str) -> Test:
    """Judge whether final losses of 2-shortcut networks differ less over seeds."""
    pair = (
        measured("loss", _all_have, network=network)
        .keeping(partial(_deviations, log=True))
        .called("log10 excess from its median over seeds")
        for network in ("two_shortcut", rival)
    )
    return on_losses(ordered(*pair))


def steadier(rival: str) -> Test:
    """Judge whether best rates of 2-shortcut networks differ less over seeds."""
    pair = (
        measured("rate", _all_have, network=network)
        .keeping(partial(_deviations, log=False))
        .called("log10 best rate from its median over seeds")
        for network in ("two_shortcut", rival)
    )
    return on_losses(ordered(*pair))


STABLE = readings(
    ReadAs(
        "spread over seeds of the best rate",
        "The best rate of stable networks depends little on the seed.",
        "figure 7: a best rate that is not determined is called very unstable",
        every(steadier(rival) for rival in RIVALS),
    ),
    ReadAs(
        "spread over seeds at the best rate, in decades",
        "Final losses of stable networks depend little on the seed.",
        "the axis of figure 7, left",
        every(less_spread(rival) for rival in RIVALS),
    ),
    ReadAs(
        "highest rate at which no run diverges",
        "Stable networks stand higher rates: of ten seeds none diverges.",
        "section 5.3.1: higher learning rates can also be applied",
        every(safer(rival) for rival in RIVALS),
    ),
)
ALL_SHOWN = Choice(
    what="higher than in each of the other networks of the figure",
    why="the paper says higher and names no network",
)
WORDS = {
    "excess": "excess loss",
}
CLAIMS = (
    Claim(
        name="two-shortcut-near-optimal",
        place="Figure 7 left, section 5.3.1",
        statement="The final losses of 2-shortcut linear networks stay close to "
        "optimal as the networks become deeper.",
        test=on_losses(
            against(
                each(
                    "depth",
                    loss("two_shortcut"),
                    lambda depth: inside(near_optimum("two_shortcut", depth), CLOSE),
                    least=3,
                ),
                somewhere(
                    "depth",
                    loss("xavier"),
                    lambda depth: inside(near_optimum("xavier", depth), FAR),
                ),
            )
        ),
        rival="a loss that leaves the optimum with depth, as with Xavier weights",
    ),
    Claim(
        name="two-shortcut-lowest",
        place="Abstract, figure 7 left",
        statement="2-shortcut networks with small weights end with lower losses than "
        "Xavier, orthogonal and 3-shortcut ones.",
        test=lowest(RIVALS),
        rival="another network that ends as low on the same seeds",
        choices=(ALL_DEPTHS,),
    ),
    beyond(
        name="orthogonal-worsens",
        place="Figure 7 left; the paper has no words on it",
        statement="Orthogonal and 1-shortcut networks, whose initial condition "
        "numbers grow with depth, end further from the optimum the deeper they are.",
        test=on_losses(
            every(
                trend(loss(name), over="depth", slope_in=above(0))
                for name in ("orthogonal", "one_shortcut")
            )
        ),
        rival="a loss that depth leaves alone",
    ),
    Claim(
        name="xavier-fails",
        place="Section 5.1, figure 7 left",
        statement="With Xavier weights deep networks are hard to train: they end "
        "further from the optimum the deeper they are.",
        test=on_losses(trend(loss("xavier"), over="depth", slope_in=above(0))),
        rival="deep Xavier networks that train at a rate of their own",
    ),
    Claim(
        name="xavier-any-rate",
        place="Figure 7, caption",
        statement="At depth 96 the final losses of Xavier networks are basically the "
        "same at all learning rates, so that none is optimal.",
        test=any_rate("xavier", 96),
        rival="losses that depend on the rate, as in shallow networks",
        choices=(NO_DIVERGENCE,),
    ),
    Claim(
        name="two-shortcut-higher-rates",
        place="Figure 7 right, section 5.3.1",
        statement="In deep networks 2-shortcut takes higher learning rates than "
        "Xavier, orthogonal, 1-shortcut and 3-shortcut.",
        test=faster(OTHERS),
        rival="equal best rates",
        choices=(FROM_EIGHT, RATES_MATTER, ALL_SHOWN),
    ),
    beyond(
        name="two-shortcut-rate-stays",
        place="Figure 7 right; the paper has no words on it",
        statement="The best learning rate of deep 2-shortcut networks does not fall "
        "with depth, as that of orthogonal networks does.",
        test=on_losses(
            against(
                trend(rate("two_shortcut"), over="depth", slope_in=STAYS, log_y=False),
                trend(rate("orthogonal"), over="depth", slope_in=FALLS, log_y=False),
            )
        ),
        rival="a best rate in inverse proportion to depth",
        choices=(FROM_EIGHT,),
    ),
    beyond(
        name="one-shortcut-like-orthogonal",
        place="Beside section 5, whose words are on dynamics",
        statement="1-shortcut networks train like plain ones with orthogonal weights: "
        "they end with similar losses at similar rates.",
        test=on_losses(
            against(
                every(
                    inside(
                        gap("one_shortcut", "orthogonal", quantity=name), HALF_A_DECADE
                    )
                    for name in ("loss", "rate")
                ),
                inside(
                    gap("orthogonal", "two_shortcut"),
                    above(0.5, source="ours", why="outside of what counts as similar"),
                ),
            )
        ),
        rival="1-shortcut networks that train like 2-shortcut ones",
        choices=(ALL_DEPTHS,),
    ),
    Claim(
        name="three-shortcut-stuck",
        place="Section 4.2, abstract",
        statement="The higher the order of the stationary point, the harder it is to "
        "escape: 3-shortcut networks need more steps to leave their start than "
        "2-shortcut ones.",
        test=on_losses(
            inside(slower_to_leave("three_shortcut", "two_shortcut"), above(0))
        ),
        rival="3-shortcut networks that leave their start as soon",
        choices=(
            Choice(
                what="a run has left once it keeps at most half of its first excess",
                why="runs leave the start abruptly, so that any share tells the same",
            ),
        ),
    ),
    Claim(
        name="two-shortcut-more-stable",
        place="Abstract",
        statement="2-shortcut networks with small weights are more stable than "
        "Xavier, orthogonal and 3-shortcut ones.",
        test=STABLE,
        rival="networks that stand the same rates, or end as far apart",
        choices=(
            Choice(
                what="on average over depths that are multiples of 6",
                why="these all networks have",
            ),
        ),
    ),
)
