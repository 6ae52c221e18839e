"""Is it by their spectra that skips act on speed? All of it is ours."""

import math

from theodolite.core import (
    Choice,
    Claim,
    Kind,
    Number,
    PredictedAndMeasured,
    Quantity,
    Select,
    Test,
    above,
    below,
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
from .tables import METRICS, rank_correlations, steps_of

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
    """Judge whether shift and speed are ordered alike, on every dataset."""

    def at(dataset: str) -> Test:
        def read(both: PredictedAndMeasured) -> Quantity:
            found = rank_correlations(both, dataset, metric)
            name = f"rank correlation of speed and mean singular value, {metric}"
            return sampled(name, list(found.values()))

        return inside(read, above(0))

    return each("dataset", AVERAGES, at)


def _pooled(both: PredictedAndMeasured) -> dict[str, Number]:
    """Tell rank correlations over all trials and architectures, by length of run."""
    found = {}
    for metric in METRICS:
        for over in sorted({10, steps_of(both)}):
            values = [
                value
                for dataset in both.measured.levels("dataset")
                for value in rank_correlations(both, dataset, metric, over).values()
                if math.isfinite(value)
            ]
            if len(values) > 1:
                told = estimate(values)
                name = f"rank correlation, {metric}, {over} steps, all trials"
                found[name] = Number(told.mean, told.stderr)
    return found


def _losses(dataset: str, variant: str | None = None) -> Select:
    """Select mean logarithms of the loss over all steps."""
    rows = measured("log_loss", dataset=dataset)
    rows = rows.at(variant=variant) if variant else rows
    return rows.keeping(
        lambda found: found.where(over=max(found.levels("over"), default=0))
    )


def _averages(rows: Select) -> Select:
    keep = rows.keep
    return rows.keeping(
        lambda found: (keep(found) if keep else found).where(
            lambda row: row["variant"].startswith("average")
        )
    )


def _rises(dataset: str) -> Test:
    rows = _averages(measured("mean", dataset=dataset, metric="blocks"))
    name = "rise of the mean singular value with the scale"
    slope_in = above(0)
    return trend(
        rows, over="scale", slope_in=slope_in, log_x=False, log_y=False, name=name
    )


def _falls(dataset: str) -> Test:
    name = "slope of the logarithm of the loss over the scale"
    return trend(
        _averages(_losses(dataset)),
        over="scale",
        slope_in=below(0),
        log_x=False,
        log_y=False,
        name=name,
    )


def _directions(dataset: str) -> Test:
    pair = (_losses(dataset, "random"), _losses(dataset, "details"))
    return equivalent(*pair, margin=SAME_SPEED)


def _branch(dataset: str) -> Test:
    rows = measured("mean", dataset=dataset, metric="blocks")
    moved, none = rows.at(variant="branch"), rows.at(variant=NOTHING)
    return equivalent(moved, none, margin=SAME_SPECTRUM, log=True)


CLAIMS = (
    Claim(
        name="scale-shifts-blocks",
        place="Beyond hypothesis 6.1",
        kind=Kind.BEYOND,
        statement=(
            "The scale of the added $I$, from 0 to 2, shifts the singular values of "
            "the two blocks upwards: it is an intervention on the spectrum."
        ),
        test=each("dataset", AVERAGES, _rises),
        rival="a norm that takes the scale away",
        choices=(SHIFT,),
    ),
    Claim(
        name="more-is-faster",
        place="Beyond hypothesis 6.1",
        kind=Kind.BEYOND,
        statement="The greater the scale of the added $I$, the faster is training.",
        test=each("dataset", AVERAGES, _falls),
        rival="a scale that makes no difference, or slows",
        choices=(SPEED,),
    ),
    Claim(
        name="blocks-foretell-speed",
        place="Beyond hypothesis 6.1",
        kind=Kind.BEYOND,
        statement=(
            "Over interventions on the same network, training is the faster the more "
            "the singular values of the two blocks are shifted upwards."
        ),
        test=correlated("blocks"),
        rival="speed that is not ordered by the shift, or against it",
        choices=(SHIFT, SPEED, RANKS),
        asides=_pooled,
    ),
    Claim(
        name="scores-foretell-speed",
        place="Beyond hypothesis 6.1",
        kind=Kind.BEYOND,
        statement=(
            "The same of the singular values of the Jacobian from behind the stem to "
            "the scores."
        ),
        test=correlated("composite"),
        rival="speed that is not ordered by the shift, or against it",
        choices=(SHIFT, SPEED, RANKS),
    ),
    Claim(
        name="directions-do-not-matter",
        place="Beyond hypothesis 6.1",
        kind=Kind.BEYOND,
        statement=(
            "A random isometry trains as fast as the one of averages and details, "
            "which has the same singular values: that it is an average is no matter."
        ),
        test=each("dataset", AVERAGES, _directions),
        rival="an average that keeps the image intact and is ahead for it",
        choices=(SPEED,),
    ),
    Claim(
        name="branch-keeps-the-spectrum",
        place="Beyond hypothesis 6.1",
        kind=Kind.BEYOND,
        statement=(
            "Moved into the branch, beside its first convolution, the same map leaves "
            "the singular values of the two blocks where they are without it."
        ),
        test=each("dataset", AVERAGES, _branch),
        rival="a shift as from beside the projection",
        choices=(SHIFT,),
    ),
)
