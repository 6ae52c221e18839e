"""Claims of figure 7 and the text about it."""

from theodolite.core import (
    Choice,
    Claim,
    PredictedAndMeasured,
    Quantity,
    Read,
    Rows,
    Select,
    Test,
    above,
    against,
    below,
    beyond,
    by_network,
    difference,
    each,
    every,
    inside,
    measured,
    our_margin,
    somewhere,
    trend,
)

from ..shared.final_losses.reading import (
    ALL_DEPTHS,
    FROM_EIGHT,
    NO_DIVERGENCE,
    RATES_MATTER,
    any_rate,
    deepest,
    faster,
    gap,
    lowest,
    on_losses,
    rate_matters,
    reference,
    shallower,
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


def as_deepest(depth: int) -> Test:
    """Judge whether 2-shortcut networks have the same excess at the greatest depth."""
    last = loss("two_shortcut").keeping(deepest)
    read = difference(loss("two_shortcut").at(depth=depth), last, log=True)
    return inside(read, HALF_A_DECADE)


ALL_SHOWN = Choice(
    what="higher than in each of the other networks of the figure",
    why="the paper says higher and names no network",
)
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
    beyond(
        name="two-shortcut-loss-invariant",
        place="Section 5.3.1, taken further than it goes",
        statement="The excess of 2-shortcut networks over the optimal loss is itself "
        "the same at all depths, as are their initial condition numbers.",
        test=on_losses(
            each("depth", loss("two_shortcut").keeping(shallower), as_deepest, least=2)
        ),
        rival="an excess that differs by decades, though all of it is small",
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
        "escape: of all rates tried, 3-shortcut networks stay near their start "
        "through all steps at more of them than 2-shortcut networks do.",
        test=on_losses(
            inside(gap("three_shortcut", "two_shortcut", quantity="stayed"), above(0))
        ),
        rival="3-shortcut networks that leave the start at the same rates",
        choices=(
            Choice(
                what="a run that keeps more than half of its first excess has stayed",
                why="runs leave the start abruptly, so that any share tells the same",
            ),
        ),
    ),
)
