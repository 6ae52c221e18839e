"""Tests that the claims on figures 7 and 8 share, and what we chose in them."""

from collections.abc import Iterable, Mapping

from theodolite.core import (
    Choice,
    Judgement,
    PredictedAndMeasured,
    Test,
    above,
    against,
    below,
    each,
    every,
    inside,
    measured,
    undecided,
)

from .reading import DEEP, SAME, gap, on_losses, over_best

ALL_DEPTHS = Choice(
    what="losses count on average over the depths plotted, in decades",
    why="the paper names no depths, and single networks spread over decades",
)
FROM_EIGHT = Choice(
    what=f"deep is from {DEEP} matrices up",
    why="the paper does not say; fewer are at most four units of two",
)
RATES_MATTER = Choice(
    what="a depth counts where the final losses at all rates differ by a tenth or more",
    why="the caption leaves out rates where all end basically the same",
)
NO_DIVERGENCE = Choice(
    what="all learning rates are those tried at which no network diverged",
    why="a loss that overflows is the same as no other",
)
WITHIN = below(SAME, source="ours", why="a tenth of the loss is what a plot shows")
BEYOND = above(SAME, source="ours", why=WITHIN.why)


def lowest(rivals: Iterable[str]) -> Test:
    """2-shortcut networks end lower than each rival."""
    found = [inside(gap(name, "two_shortcut"), above(0)) for name in rivals]
    return on_losses(every(*found))


def faster(rivals: Iterable[str]) -> Test:
    """Deep 2-shortcut networks take higher rates than each rival."""
    found = [
        inside(gap("two_shortcut", name, quantity="rate", least=DEEP), above(0))
        for name in rivals
    ]
    return on_losses(every(*found))


def any_rate(network: str, depth: int) -> Test:
    """All rates end alike at a depth; at the least depth the lowest rate does not."""
    rows = measured("mean", _many, network=network)
    same = each(
        "rate",
        rows.at(depth=depth),
        lambda rate: inside(over_best(network, depth, rate), WITHIN),
        name=network,
    )

    def sensitive(both: PredictedAndMeasured) -> Judgement:
        table = rows(both)
        first = min(table.levels("depth"), default=depth)
        rates = table.where(depth=first).levels("rate")
        if first == depth or not rates:
            return undecided("there is no shallower network to compare with", network)
        return inside(over_best(network, first, rates[0]), BEYOND)(both)

    return on_losses(against(same, sensitive))


def _many(row: Mapping) -> bool:
    return row["finished"] > 1
