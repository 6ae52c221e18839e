"""Claims on the phase diagram; all of them are ours, none is the paper's.

Networks of one seed share their weights over depths, kinds and scales, so that all
runs of a seed are averaged before seeds are compared.
"""

from functools import partial

from theodolite.core import (
    Number,
    PredictedAndMeasured,
    Select,
    Test,
    above,
    beyond,
    every,
    inside,
    mean,
    measured,
    ordered,
)

from .config import DIVERGES, KINDS, STUCK, TRAINS
from .figure import FORETOLD, scored

RIGHT = {
    "foretold": "quadratic model",
    "by_sharpness": "sharpness alone",
    "all_train": "always trains",
}
ours = partial(beyond, place="Beyond the paper")


def right(name: str) -> Select:
    """Select whether a rule predicted the end of each run correctly."""
    return measured(name).called(f"share right, {RIGHT[name]}")


def trained(kind: str) -> Select:
    """Select whether runs of the deepest networks of a kind trained."""
    deepest = measured("trained", kind=kind).keeping(
        lambda rows: rows.where(depth=max(rows.levels("depth"), default=None))
    )
    return deepest.called("share of runs that train, deepest")


def on_scores(test: Test) -> Test:
    """Return a test that judges the scores of runs: predicted rightly or wrongly."""
    return lambda both: test(scored(both))


def shares_right(both: PredictedAndMeasured) -> dict[str, Number | float | int]:
    """Return the share of runs that each rule predicts, and the share of each phase."""
    runs = scored(both)
    shares: dict[str, Number | float | int] = {}
    for name in FORETOLD:
        share = mean(right(name))(runs)
        shares[str(right(name))] = Number(share.value, share.error)
    said = both.measured.where(quantity="foretold")
    hits = runs.measured.where(quantity="foretold")
    names = {DIVERGES: "divergences", STUCK: "stays", TRAINS: "successes"}
    for phase, name in names.items():
        values = hits.values()[said.values() == phase]
        if len(values):
            shares[f"share of foretold {name} that happened"] = float(values.mean())
    return shares


CLAIMS = (
    ours(
        name="phases-foretold",
        statement="Loss, gradient and Hessian at the start tell which runs train: the "
        "quadratic model foretells more phases than the rule "
        "$\\eta\\lambda_{\\max}<2$ and than the guess that all train.",
        test=on_scores(
            every(
                ordered(right("by_sharpness"), right("foretold")),
                ordered(right("all_train"), right("foretold")),
            )
        ),
        rival="sharpness alone, or the guess that everything trains, does as well",
        asides=shares_right,
    ),
    ours(
        name="most-foretold",
        statement="More than three runs in four end as the quadratic model at the "
        "start says.",
        test=on_scores(
            inside(
                mean(right("foretold")),
                above(0.75, source="ours", why="three in four, where a guess has one"),
            )
        ),
        rival="the landscape away from the start decides",
        asides=shares_right,
    ),
    ours(
        name="errors-are-late-divergence",
        statement="Where the model is wrong, it mostly misses a divergence: curvature "
        "grows along the way.",
        test=on_scores(
            inside(
                mean(
                    measured("missed"),
                    name="share of runs that diverged unforetold, less other errors",
                ),
                above(0),
            )
        ),
        rival="the model errs as often on runs that stay",
    ),
    ours(
        name="two-shortcut-trains-widest",
        place="Sections 4 and 5, taken over all scales and rates",
        statement="At the largest depth 2-shortcut networks train in a larger part of "
        "the box of scales and rates than plain, 1- and 3-shortcut ones.",
        test=on_scores(
            every(
                ordered(trained(kind), trained("two_shortcut"))
                for kind in KINDS
                if kind != "two_shortcut"
            )
        ),
        rival="another shortcut length trains more widely",
    ),
)
