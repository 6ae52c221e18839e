"""Claims, all ours: what the certified ratio does along training."""

from collections.abc import Callable
from functools import partial

from theodolite.core import (
    Choice,
    Claim,
    PredictedAndMeasured,
    Quantity,
    ReadAs,
    Select,
    Test,
    above,
    at_each,
    below,
    beyond,
    inside,
    mean,
    measured,
    ordered,
    readings,
    sampled,
    somewhere,
)

from .config import BOTH, NEITHER, NORMS, SKIPS, TASKS
from .figure import levels, rank_correlations

ours = partial(beyond, place="Beyond theorem 4.7")
TENTH = Choice(
    what="bounded below: never below a tenth, at even times of the training",
    why="the theorem's bound is positive and not uniform, and names no size",
)
BELOW = below(-1.0, source="ours", why="a tenth, which a fixed rate takes ten-fold")
ABOVE = above(-1.0, source="ours", why="a tenth, which a fixed rate takes ten-fold")
WHY = {
    "square, rate 1": "below theorem 5.1: uniform bounds are for the square cost",
    "square, rate 0.3": "ours: the paper names no rate",
    "cross-entropy, rate 1": "theorem 4.7 speaks of the kernel, whatever the cost",
}
STARTS = {
    "own": "the network's own value before the first step",
    BOTH: "that of the network with skips and norms before the first step",
}


def on_each_task(make: Callable[[Select], Test], *starts: str) -> Test:
    """Judge levels of each task, over each start."""
    return readings(
        *(
            ReadAs(
                f"{task}, over {start}",
                f"The unit is {STARTS[start]}.",
                WHY[task],
                make(measured("level", task=task, over=start).out_of(levels)),
            )
            for task in TASKS
            for start in starts
        )
    )


def _stays(kind: str) -> Test:
    return on_each_task(
        lambda level: at_each(
            "step", level.at(kind=kind), lambda at: inside(mean(at), ABOVE)
        ),
        *STARTS,
    )


def _falls(kind: str) -> Test:
    def falls(level: Select) -> Test:
        here = level.at(kind=kind)
        return somewhere(
            "step", here, lambda step: inside(mean(here.at(step=step)), BELOW)
        )

    return on_each_task(falls, *STARTS)


def _norms_keep(level: Select) -> Test:
    last = level.keeping(lambda rows: rows.where(step=max(rows.levels("step"))))
    return ordered(last.at(kind=SKIPS), last.at(kind=BOTH), name="log10 of the level")


def _orders(level: Select) -> Test:
    def read(both: PredictedAndMeasured) -> Quantity:
        correlations = rank_correlations(both.measured, level.labels["task"])
        name = "rank correlation of certified and true"
        return sampled(name, [*correlations.values()])

    return inside(read, above(0))


def _whether_it_falls(kind: str, name: str, words: str, rival: str) -> Claim:
    return ours(
        name=name,
        statement=f"{words} the certified ratio falls along training.",
        test=_falls(kind),
        rival=rival,
        choices=(TENTH,),
    )


WORDS = {
    "level": "log10 ratio over its start",
}
CLAIMS = (
    ours(
        name="both-stay",
        statement="With skips and norms the certified ratio stays bounded below along "
        "training.",
        test=_stays(BOTH),
        rival="a ratio that falls as weights grow",
        choices=(TENTH,),
    ),
    _whether_it_falls(
        SKIPS, "skips-alone-fall", "With skips and without norms", "skips that suffice"
    ),
    _whether_it_falls(
        NORMS, "norms-alone-fall", "With norms and without skips", "norms that suffice"
    ),
    _whether_it_falls(
        NEITHER, "neither-falls", "Without skips and norms", "layers that stay regular"
    ),
    ours(
        name="norms-keep-it",
        statement="Beside skips, norms keep more of the certified ratio to the end of "
        "training than plain weights do.",
        test=on_each_task(_norms_keep, "own"),
        rival="plain weights, which lose less",
    ),
    ours(
        name="certified-orders-true",
        statement="Over the four networks and all times, the certified ratio has the "
        "order of the true one.",
        test=on_each_task(_orders, "own"),
        rival="bounds that say nothing of the ratio",
    ),
)
