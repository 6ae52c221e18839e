"""Claims of hypothesis 6.1 from other starts: schemes and sizes of the weights."""

from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Judgement,
    PredictedAndMeasured,
    Select,
    Test,
    above,
    beyond,
    each,
    every,
    inside,
    measured,
    ordered,
    slope_difference,
    somewhere,
)

from ..shared.reads import SHARES, shifted_up

ADDITIONS = (("chain", "res"), ("res", "average"))
ORDER = Choice(
    what="shifted upwards: every tenth of the spectrum has a greater mean",
    why="the paper shows histograms and names no statistic; this is the usual order "
    "of distributions",
)
HELD = Choice(
    what="the two blocks alone, a Jacobian a sample at the statistics of the batch",
    why="the skips pass over the blocks and not over the readout; coupling samples "
    "by the statistics moves the distribution function by 0.7 % at most",
)
SPEED = Choice(
    what="faster: a smaller mean logarithm of the loss over the steps",
    why="the paper shows curves and names no statistic",
)


def steps_of(both: PredictedAndMeasured) -> int:
    """Return the number of steps of training from other starts."""
    return max(measured("log_loss", part="start")(both).levels("over"), default=0)


SCHEMES = measured("share", part="start", metric="blocks", kind="chain", gain=1.0)
SMALL, LARGE = 0.25, 4.0


def start(quantity: str, kind: str, **labels: Any) -> Select:
    """Select numbers of networks from a start."""
    return measured(quantity, part="start", kind=kind, **labels)


def faster_from(slow: str, fast: str, over: int | None = None, **labels: Any) -> Test:
    """Judge whether the second network's losses are less from a start."""

    def test(both: PredictedAndMeasured) -> Judgement:
        steps = steps_of(both) if over is None else over
        low, high = (start("log_loss", k, over=steps, **labels) for k in (fast, slow))
        return ordered(low, high)(both)

    return test


def whole_hypothesis(init: str) -> Test:
    """Judge shift and speed of both additions from one scheme."""
    labels = {"init": init, "gain": 1.0}
    shifts = (
        shifted_up(
            start("share", low, metric="blocks", **labels),
            start("share", high, metric="blocks", **labels),
            name=f"shift, {low} to {high}",
        )
        for low, high in ADDITIONS
    )
    speeds = (faster_from(low, high, 10, **labels) for low, high in ADDITIONS)
    return every(*shifts, *speeds)


def _gap_over_gain(both: PredictedAndMeasured) -> Judgement:
    """Judge whether the loss of Res minus that of Chain rises with the weights."""
    res, chain = (
        start("log_loss", kind, init="default", over=steps_of(both))
        for kind in ("res", "chain")
    )
    name = "slope over the weights' scale of log-loss, Res less Chain"
    read = slope_difference(res, chain, "gain", log_y=False, name=name)
    return inside(read, above(0))(both)


def _share(kind: str, share: int, gain: float) -> Select:
    labels = {"metric": "blocks", "init": "default", "gain": gain, "share": share}
    return start("share", kind, **labels)


START_CLAIMS = (
    Claim(
        name="some-initialisation",
        place="Hypothesis 6.1 and its footnote",
        statement="For some common initialisation scheme skips shift the singular "
        "values of the composite that they pass over upwards and improve the speed of "
        "convergence at least initially.",
        test=somewhere("init", SCHEMES, whole_hypothesis),
        rival="a shift without speed in every scheme",
        choices=(
            ORDER,
            HELD,
            SPEED,
            Choice(
                what="common schemes: torch's default, He, Glorot, orthogonal",
                why="the paper says common, and names the first alone",
            ),
        ),
    ),
    beyond(
        name="scores-see-less",
        place="Beyond hypothesis 6.1",
        statement="Whatever the scheme, skips lower the mean singular value of the "
        "Jacobian to the scores before the first step.",
        test=each(
            "init",
            SCHEMES,
            lambda init: ordered(
                start("mean", "res", metric="composite", init=init, gain=1.0),
                start("mean", "chain", metric="composite", init=init, gain=1.0),
            ),
        ),
        rival="a mean that rises with the blocks'",
    ),
    beyond(
        name="small-weights-want-skips",
        place="Beyond hypothesis 6.1; section 7, fourth problem",
        statement="Whether skips speed training depends on the variance of the "
        "weights: the smaller the weights of the blocks, the more the chain lags, and "
        "at a quarter of the default the network with skips is ahead.",
        test=every(
            _gap_over_gain, faster_from("chain", "res", init="default", gain=SMALL)
        ),
        rival="a gain that no variance changes",
        choices=(SPEED,),
    ),
    beyond(
        name="small-weights-narrow-spectra",
        place="Beyond hypothesis 6.1; section 7, fourth problem",
        statement="The shift depends on the variance too: at a quarter of the default "
        "skips narrow the spectrum of the two blocks, lifting its least tenth and "
        "lowering its largest; at four times it they lift both.",
        test=every(
            ordered(_share("chain", 1, SMALL), _share("res", 1, SMALL)),
            ordered(_share("res", SHARES, SMALL), _share("chain", SHARES, SMALL)),
            ordered(_share("chain", 1, LARGE), _share("res", 1, LARGE)),
            ordered(_share("chain", SHARES, LARGE), _share("res", SHARES, LARGE)),
        ),
        rival="the same order of spectra at every variance",
        choices=(HELD,),
    ),
)
