"""Claims, all ours: do skips speed up training through their spectra?"""

from collections.abc import Callable
from functools import partial

from theodolite.core import (
    Choice,
    PredictedAndMeasured,
    Quantity,
    ReadAs,
    Region,
    Select,
    Test,
    above,
    below,
    beyond,
    each,
    equivalent,
    inside,
    measured,
    our_margin,
    readings,
    sampled,
    trend,
)

from .config import NOTHING
from .figure import HORIZONS, rank_correlations, speeds

ours = partial(beyond, place="Beyond hypothesis 6.1")
SHIFT = Choice(
    what="shift: the mean singular value at the start, over all of them",
    why="of spectra in stochastic order the difference of means is their distance",
)
RANKS = Choice(
    what="rank correlation: Spearman's over the eight interventions of a trial",
    why="all of a trial share weights and images, and no form is assumed",
)
SAME_SPEED = our_margin(0.05, "the loss differs by a factor of 1.12 at most")
SAME_SPECTRUM = our_margin(0.05, "the mean singular value differs by 12 % at most")
AVERAGES = measured("mean", lambda row: str(row["variant"]).startswith("average"))
# Where the ways to tell speed come from; the first is that of the figure.
SOURCES = {
    (20, "linear"): "figure 2(d), which the published script draws so",
    (20, "logarithmic"): "the steps of figure 2(d), on the axis of figures 3 to 6",
}


def at_each_speed(make: Callable[[Select], Test]) -> Test:
    """Judge by the mean loss over the steps plotted and over all, on both axes."""
    return readings(
        *(
            ReadAs(
                f"{steps} steps, {axis} axis",
                f"Faster is a lower {mean} mean of the loss over {steps} steps.",
                SOURCES.get((steps, axis), "ours: all steps that were trained"),
                make(measured("speed", over=steps, axis=axis).out_of(speeds)),
            )
            for steps in HORIZONS
            for axis, mean in (("linear", "arithmetic"), ("logarithmic", "geometric"))
        )
    )


def on_each_dataset(make: Callable[[Select, str], Test]) -> Test:
    """Judge speed on every dataset, whichever way it is told."""
    return at_each_speed(
        lambda speed: each(
            "dataset", AVERAGES, lambda name: make(speed.at(dataset=name), name)
        )
    )


def correlated(metric: str) -> Test:
    """Judge whether shift and speed have the same order, on every dataset."""
    name = f"rank correlation of speed and mean singular value, {metric}"

    def at(speed: Select, dataset: str) -> Test:
        shift = measured("mean", dataset=dataset, metric=metric)

        def read(both: PredictedAndMeasured) -> Quantity:
            found = rank_correlations(shift(both), speed(both))
            return sampled(name, [*found.values()])

        return inside(read, above(0))

    return on_each_dataset(at)


def _over_scale(rows: Select, region: Region, name: str) -> Test:
    scaled = rows.keeping(
        lambda kept: kept.where(lambda row: row["variant"].startswith("average"))
    )
    linear = {"log_x": False, "log_y": False}
    return trend(scaled, over="scale", slope_in=region, name=name, **linear)


def _rises(dataset: str) -> Test:
    rows = measured("mean", dataset=dataset, metric="blocks")
    return _over_scale(rows, above(0), "rise of the mean singular value with the scale")


def _falls(speed: Select, dataset: str) -> Test:
    del dataset
    return _over_scale(speed, below(0), "slope of the log10 mean loss over the scale")


def _directions(speed: Select, dataset: str) -> Test:
    del dataset
    pair = (speed.at(variant=name) for name in ("random", "details"))
    return equivalent(*pair, margin=SAME_SPEED)


def _branch(dataset: str) -> Test:
    rows = measured("mean", dataset=dataset, metric="blocks")
    moved, none = rows.at(variant="branch"), rows.at(variant=NOTHING)
    return equivalent(moved, none, margin=SAME_SPECTRUM, log=True)


CLAIMS = (
    ours(
        name="scale-shifts-blocks",
        statement="The scale of the added $I$, from 0 to 2, shifts the singular "
        "values of the two blocks upwards: it is an intervention on the spectrum.",
        test=each("dataset", AVERAGES, _rises),
        rival="a norm that takes the scale away",
        choices=(SHIFT,),
    ),
    ours(
        name="more-is-faster",
        statement="The greater the scale of the added $I$, the faster is training.",
        test=on_each_dataset(_falls),
        rival="a scale that makes no difference, or slows",
    ),
    ours(
        name="blocks-foretell-speed",
        statement="Over interventions on the same network, training is the faster the "
        "more the singular values of the two blocks are shifted upwards.",
        test=correlated("blocks"),
        rival="speed that is not ordered by the shift, or against it",
        choices=(SHIFT, RANKS),
    ),
    ours(
        name="scores-foretell-speed",
        statement="The same of the singular values of the Jacobian from behind the "
        "stem to the scores.",
        test=correlated("composite"),
        rival="speed that is not ordered by the shift, or against it",
        choices=(SHIFT, RANKS),
    ),
    ours(
        name="directions-do-not-matter",
        statement="A random isometry trains as fast as the one of averages and "
        "details, which has the same singular values: that it is an average is no "
        "matter.",
        test=on_each_dataset(_directions),
        rival="an average that keeps the image intact and is ahead for it",
    ),
    ours(
        name="branch-keeps-the-spectrum",
        statement="Moved into the branch, beside its first convolution, the same map "
        "leaves the singular values of the two blocks where they are without it.",
        test=each("dataset", AVERAGES, _branch),
        rival="a shift as from beside the projection",
        choices=(SHIFT,),
    ),
)
