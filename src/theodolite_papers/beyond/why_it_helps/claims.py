"""Claims, all ours: do skips speed up training through their spectra?"""

import math
from functools import partial

from theodolite.core import (
    Choice,
    Number,
    PredictedAndMeasured,
    Quantity,
    Region,
    Select,
    Test,
    above,
    below,
    beyond,
    each,
    equivalent,
    estimate,
    inside,
    measured,
    our_margin,
    sampled,
    trend,
)

from .config import NOTHING
from .figure import METRICS, rank_correlations, steps_of

ours = partial(beyond, place="Beyond hypothesis 6.1")
SPEED = Choice(
    what="faster: a smaller mean logarithm of the loss over the steps",
    why="one number for a whole curve, of which no step is chosen",
)
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


def correlated(metric: str) -> Test:
    """Judge whether shift and speed have the same order, on every dataset."""
    name = f"rank correlation of speed and mean singular value, {metric}"

    def at(dataset: str) -> Test:
        def read(both: PredictedAndMeasured) -> Quantity:
            return sampled(name, [*rank_correlations(both, dataset, metric).values()])

        return inside(read, above(0))

    return each("dataset", AVERAGES, at)


def _pooled(both: PredictedAndMeasured) -> dict[str, Number]:
    """Return rank correlations over all trials and datasets, by length of run."""
    numbers = {}
    for metric in METRICS:
        for over in sorted({10, steps_of(both)}):
            values = [
                value
                for dataset in both.measured.levels("dataset")
                for value in rank_correlations(both, dataset, metric, over).values()
                if math.isfinite(value)
            ]
            if len(values) > 1:
                average = estimate(values)
                name = f"rank correlation, {metric}, {over} steps, all trials"
                numbers[name] = Number(average.mean, average.stderr)
    return numbers


def _losses(dataset: str, variant: str | None = None) -> Select:
    """Select mean logarithms of the loss over all steps."""
    rows = measured("log_loss", dataset=dataset)
    rows = rows.at(variant=variant) if variant else rows
    return rows.keeping(
        lambda kept: kept.where(over=max(kept.levels("over"), default=0))
    )


def _averages(rows: Select) -> Select:
    keep = rows.keep
    return rows.keeping(
        lambda kept: (keep(kept) if keep else kept).where(
            lambda row: row["variant"].startswith("average")
        )
    )


def _over_scale(rows: Select, region: Region, name: str) -> Test:
    linear = {"log_x": False, "log_y": False}
    return trend(_averages(rows), over="scale", slope_in=region, name=name, **linear)


def _rises(dataset: str) -> Test:
    rows = measured("mean", dataset=dataset, metric="blocks")
    return _over_scale(rows, above(0), "rise of the mean singular value with the scale")


def _falls(dataset: str) -> Test:
    name = "slope of the logarithm of the loss over the scale"
    return _over_scale(_losses(dataset), below(0), name)


def _directions(dataset: str) -> Test:
    pair = (_losses(dataset, "random"), _losses(dataset, "details"))
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
        test=each("dataset", AVERAGES, _falls),
        rival="a scale that makes no difference, or slows",
        choices=(SPEED,),
    ),
    ours(
        name="blocks-foretell-speed",
        statement="Over interventions on the same network, training is the faster the "
        "more the singular values of the two blocks are shifted upwards.",
        test=correlated("blocks"),
        rival="speed that is not ordered by the shift, or against it",
        choices=(SHIFT, SPEED, RANKS),
        asides=_pooled,
    ),
    ours(
        name="scores-foretell-speed",
        statement="The same of the singular values of the Jacobian from behind the "
        "stem to the scores.",
        test=correlated("composite"),
        rival="speed that is not ordered by the shift, or against it",
        choices=(SHIFT, SPEED, RANKS),
    ),
    ours(
        name="directions-do-not-matter",
        statement="A random isometry trains as fast as the one of averages and "
        "details, which has the same singular values: that it is an average is no "
        "matter.",
        test=each("dataset", AVERAGES, _directions),
        rival="an average that keeps the image intact and is ahead for it",
        choices=(SPEED,),
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
