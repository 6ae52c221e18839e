"""Claims of Eq 16 on random networks, and measured properties of their paths.

Lengths count layers of weights, the first of which has no skip.
"""

from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    ReadAs,
    Region,
    Rows,
    Select,
    Test,
    above,
    against,
    at_each,
    below,
    between,
    beyond,
    difference,
    each,
    every,
    exact,
    inside,
    mean,
    measured,
    our_margin,
    readings,
    trend,
)

UNIT: dict[str, Any] = {"scale": "unit", "part": "output"}
HE: dict[str, Any] = {"scale": "he", "part": "output"}
REAL = Choice(
    what="weights of lengths are energies of real networks: mean squares, over normal "
    "inputs, of the sums over paths with gates as the forward pass sets them",
    why="the paper weighs lengths in a model whose gates are coins",
)
TIED = Choice(
    what="networks of $n$ different weights; weights of lengths are squares, "
    "$\\epsilon_r^2$, whose greatest is that of $\\epsilon_r$",
    why="the sentence says $\\Lambda = n$; of networks whose weights all differ there "
    "are claims of ours",
)
NEAR = 0.025, "a twentieth of the one half that is foretold"
FITS = below(0.05, source="ours", why="a twentieth of the energy at other lengths")
NO_TREND = our_margin(0.1, "a factor of three in size moves it by less than 12 %")
NEAR_ONE = our_margin(
    0.25, "half of the way to the rival, which is twice as wide", centre=1
)
NARROWER = below(NEAR_ONE.low, source="ours", why=NEAR_ONE.why)
HALF = below(0.5, source="paper", why="less than half the network's depth")
MADE_UP = between(0.75, 1, source="ours", why="the quarter of the statement")


WORDS = {
    "beta": "fitted $\\beta$",
    "beta_less_open": "fitted $\\beta$ less the share of open gates",
    "deeper": "mean length less that of the law, over the depth",
    "deletion_gap": "sum of all losses by a branch less $\\sum_r r\\,c_r$",
    "distance": "energy at other lengths than the law's",
    "gain_beta": "$\\beta$ by the gains of single branches",
    "length": "mean length of paths",
    "over_binomial": "variance of lengths over that of a binomial",
    "over_squared": "variance of lengths over that of a squared binomial",
    "peak_share": "length of the greatest weight over the depth",
    "spread_share": "spread of lengths over the depth",
    "true_change": "part of the output that is lost with a branch",
    "true_over_frozen": "loss with a branch over that of frozen paths",
}


def at_each_depth(rows: Select, region: Region) -> Test:
    """Judge the mean over networks at every depth."""
    return at_each("depth", rows, lambda at: inside(mean(at), region), least=3)


def _of_one_depth(rows: Rows) -> Rows:
    """Keep the depth that has the most widths."""
    widths = {d: len(rows.where(depth=d).levels("width")) for d in rows.levels("depth")}
    most = max(widths, key=lambda depth: (widths[depth], depth), default=None)
    return rows.where(depth=most)


def _deeper(first: Select, second: Select) -> Test:
    """Judge, at every depth, whether one exceeds the other, paired by network."""

    def at(depth: int) -> Test:
        gap = difference(first.at(depth=depth), second.at(depth=depth))
        return inside(gap, above(0))

    return each("depth", first, at, least=3)


def same_beta(scale: str) -> list[ReadAs]:
    """Return the law at the share of gates that is measured, and expected."""
    of: dict[str, Any] = {"scale": scale, "part": "output"}
    fits = at_each_depth(measured("distance", **of), FITS)
    half = at_each_depth(measured("beta", **of), our_margin(*NEAR, centre=0.5))
    open_ones = measured("beta_less_open", scale=scale)
    return [
        ReadAs(
            "measured $\\rho$",
            "The share of gates that the forward pass opens.",
            "section 3: gates are open with probability $\\rho$",
            every(at_each_depth(open_ones, our_margin(*NEAR)), fits),
        ),
        ReadAs(
            "$\\rho = 1/2$",
            "Gates are fair coins.",
            "ours: weights are as often negative as positive",
            every(half, fits),
        ),
    ]


def peak(scale: str) -> Test:
    """Judge whether the greatest weight is below half of the depth."""
    return at_each_depth(measured("peak_share", scale=scale, part="output"), HALF)


CLAIMS = (
    Claim(
        name="beta-is-rho",
        place="Eq 16, end of section 3",
        statement="With $C = 1/\\sqrt{n}$ and $\\Lambda = n$, path lengths weigh as in "
        "Eq 16 with $\\beta = \\rho$, the probability that a gate is open.",
        test=readings(*same_beta("shared")),
        rival="a $\\beta$ that the model's coins do not give, or another law",
        choices=(REAL, TIED),
    ),
    Claim(
        name="peak-below-half",
        place="End of section 3",
        statement="With $C = 1/\\sqrt{n}$ and $\\Lambda = n$ the greatest weight of a "
        "deep network is at less than half its depth.",
        test=peak("shared"),
        rival="half of the depth or more, as of paths that all weigh the same",
        choices=(REAL, TIED),
        departures=("a limit of infinitely many layers, read at finite depths",),
    ),
    beyond(
        name="peak-below-half-untied",
        place="Beside the end of section 3",
        statement="Where all weights differ, as networks begin, the greatest weight is "
        "at less than half the network's depth.",
        test=peak("unit"),
        rival="half of the depth or more, as of paths that all weigh the same",
        choices=(REAL,),
    ),
    Claim(
        name="scale-sets-depth",
        place="Section 4, item 1, in random networks",
        statement="Before training, as measured of outputs, the scale $C$ of the "
        "weights controls the depths of the ensemble: the greater, the deeper.",
        test=_deeper(measured("length", **HE), measured("length", **UNIT)),
        rival="depths that are the same at twice the variance of weights",
        choices=(REAL,),
    ),
    Claim(
        name="narrow-band",
        place="Theorem 2",
        statement="Path lengths that count lie in a band that is narrow beside the "
        "depth, the more so the deeper the network is.",
        test=every(
            trend(measured("spread_share", **s), over="depth", slope_in=below(0))
            for s in (UNIT, HE)
        ),
        rival="a band that takes the same part of the depth",
        choices=(REAL,),
    ),
    beyond(
        name="deeper-than-eq-16",
        place="Measured: Eq 16",
        statement="Real networks are deeper than Eq 16 with $\\beta = "
        "\\rho\\sqrt{n}\\,C$: the mean length exceeds that of the law at every depth "
        "and both scales.",
        test=every(
            at_each_depth(measured("deeper", scale=s), above(0)) for s in ("unit", "he")
        ),
        rival="the mean of the law, or less",
    ),
    beyond(
        name="width-of-a-squared-binomial",
        place="Measured: Eq 16",
        statement="Paths of one length add up coherently: lengths spread as the square "
        "of a binomial of the same mean, not as the binomial of independent paths, "
        "which is twice as wide.",
        test=against(
            every(
                at_each_depth(measured("over_squared", scale=s), NEAR_ONE)
                for s in ("unit", "he")
            ),
            every(
                at_each_depth(measured("over_binomial", scale=s), NARROWER)
                for s in ("unit", "he")
            ),
        ),
        rival="a binomial, as of independent paths",
    ),
    beyond(
        name="width-of-layers-is-no-matter",
        place="Measured: after Eq 16",
        statement="At $C = 1/\\sqrt{n}$ wide networks have the $\\beta$ of narrow "
        "ones.",
        test=trend(
            measured("beta", **UNIT).keeping(_of_one_depth),
            over="width",
            slope_in=NO_TREND,
        ),
        rival="a $\\beta$ that grows with the width, as at a fixed $C$",
    ),
    beyond(
        name="norms-overstate",
        place="Measured: Eq 16",
        statement="What branches add to the norm overstates $\\beta$: the measured one "
        "lies below what gains of single branches give.",
        test=_deeper(measured("gain_beta", scale="unit"), measured("beta", **UNIT)),
        rival="branches that add up as if they were parallel",
    ),
    beyond(
        name="gradient-deeper-than-output",
        place="Measured: section 4",
        statement="At the start the gradient comes by slightly longer paths than the "
        "output, at every depth.",
        test=_deeper(
            measured("length", scale="unit", part="gradient"),
            measured("length", **UNIT),
        ),
        rival="a gradient by shorter paths, or by the same",
    ),
    beyond(
        name="deletions-add-up",
        place="Measured: lesions",
        statement="With gates frozen, what the output loses by single deletions of all "
        "branches adds up to $\\sum_r r\\,c_r$, the ensemble's own number.",
        test=exact(measured("deletion_gap")),
        rival="paths that are counted by a wrong number of branches",
    ),
    beyond(
        name="gates-make-up",
        place="Measured: lesions",
        statement="Frozen paths foretell what a real network loses with a branch to a "
        "quarter of its size, and overstate it: gates that react make up for some.",
        test=at_each_depth(measured("true_over_frozen", scale="unit"), MADE_UP),
        rival="gates that do not react, or that outweigh the paths that are lost",
    ),
    beyond(
        name="no-branch-is-spare",
        place="Measured: section 4",
        statement="At the start a branch of a deep network matters as much as one of a "
        "shallow network: the part of the output that is lost with it does not depend "
        "on the depth.",
        test=trend(
            measured("true_change", scale="unit"), over="depth", slope_in=NO_TREND
        ),
        rival="a part that falls as one over the depth, as of a mean of many members",
    ),
)
