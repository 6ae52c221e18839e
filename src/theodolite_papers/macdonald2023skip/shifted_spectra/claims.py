"""Claims of figure 2 and hypothesis 6.1 on spectra and speed at equal weights."""

from collections.abc import Callable
from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Judgement,
    Number,
    PredictedAndMeasured,
    ReadAs,
    Row,
    Select,
    Test,
    above,
    beyond,
    by_network,
    each,
    estimate,
    every,
    inside,
    measured,
    ordered,
    readings,
    slope_difference,
    somewhere,
)

from ..shared.reads import SHARES, shifted_up
from .claims_linear import LINEAR_CLAIMS

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
PLOTTED, ALL, FIRST = 20, 30, 10
# Sources of the horizons, the first of which is that of figure 2(d).
SOURCES = {
    PLOTTED: "the published script draws figure 2(d) with a linear axis over 20 steps",
    ALL: "ours: all steps that were trained",
    FIRST: "figure 2 averages its spectra over ten steps",
}

INITIALLY = Choice(what="initially: ten steps", why="spectra are averaged over them")


def spectrum(kind: str, metric: str, part: str = "figure") -> Select:
    """Select shares of the spectra of a network of figure 2."""
    rows = measured("share", part=part, kind=kind, metric=metric)
    return rows.called("singular values")


def steps_of(both: PredictedAndMeasured) -> int:
    """Return the number of steps of training from other starts."""
    return max(measured("log_loss", part="start")(both).levels("over"), default=0)


def _lower(slow: str, fast: str, steps: int, log: bool) -> Test:
    """Judge whether a network's mean loss over the first steps is lower."""

    def losses(kind: str) -> Select:
        first = {"part": "figure", "kind": kind}
        return measured("loss", lambda row: 1 <= row["step"] <= steps, **first)

    axis = "mean log10 loss" if log else "mean loss"
    name = f"{axis} over {steps} steps, {slow} less {fast}"
    return ordered(losses(fast), losses(slow), log=log, name=name)


def faster(slow: str, fast: str, *horizons: int) -> Test:
    """Judge whether a network's loss is lower, on either axis and up to each step."""
    return readings(
        *(
            ReadAs(
                f"{steps} steps, {'logarithmic' if log else 'linear'} axis",
                f"Speed is the mean over {steps} steps of the loss"
                f"{', as a logarithm' if log else ''}.",
                "ours" if log else SOURCES[steps],
                _lower(slow, fast, steps, log),
            )
            for steps in horizons
            for log in (False, True)
        )
    )


def along(make: Callable[[Callable[[Row], bool]], Test]) -> Test:
    """Judge a test on averages over the first steps, and further along training."""

    def until(steps: int) -> ReadAs:
        what = f"Averages are over the first {steps} steps."
        test = make(lambda row: row["step"] < steps)
        return ReadAs(f"{steps} steps", what, SOURCES[steps], test)

    return readings(until(FIRST), until(PLOTTED), until(ALL))


def _by_parameters(low: str, high: str) -> Test:
    """Judge whether the spectrum of the scores by the parameters is shifted up."""
    labels = {"part": "figure", "metric": "parameters"}
    name = "singular values of DF"
    return along(
        lambda early: shifted_up(
            measured("share", early, kind=low, **labels).called(name),
            measured("share", early, kind=high, **labels).called(name),
        )
    )


def _ratio_rises(early: Callable[[Row], bool]) -> Test:
    """Judge whether both additions raise the ratio of squared gradient to loss."""

    def ratio(kind: str) -> Select:
        rows = measured("ratio", early, part="figure", kind=kind)
        return rows.called("squared gradient over loss")

    return every(ordered(ratio(low), ratio(high), log=True) for low, high in ADDITIONS)


def _asides(both: PredictedAndMeasured) -> dict[str, Number]:
    """Return mean singular values of the three networks by both metrics."""
    numbers = {}
    for metric in ("composite", "blocks", "parameters"):
        for kind in ("chain", "res", "average"):
            rows = measured("mean", part="figure", kind=kind, metric=metric)(both)
            values = list(by_network(rows).values.values())
            if len(values) > 1:
                average = estimate(values)
                numbers[f"mean, {metric}, {kind}"] = Number(
                    average.mean, average.stderr
                )
    return numbers


def _claim(low: str, high: str, metric: str, **words: str) -> Claim:
    choices = (ORDER, HELD) if metric == "blocks" else (ORDER,)
    whole = metric == "parameters"
    up = shifted_up(spectrum(low, metric), spectrum(high, metric))
    return Claim(
        test=_by_parameters(low, high) if whole else up,
        rival="spectra that agree, spread, or fall",
        choices=choices,
        asides=_asides,
        **words,  # type: ignore[arg-type]
    )


NETWORK_CLAIMS = (
    _claim(
        "chain",
        "res",
        "composite",
        name="skips-shift-scores",
        place="Figure 2(a), (b); section 6.2",
        statement="Adding skips to the chain shifts the singular values of the "
        "composite Jacobian, from behind the stem to the scores and averaged over the "
        "first ten steps, upwards.",
    ),
    _claim(
        "res",
        "average",
        "composite",
        name="average-shifts-scores",
        place="Figure 2(b), (c); section 6.2",
        statement="Replacing the projection $A$ by $I + A$ shifts the singular values "
        "of the same composite Jacobian upwards.",
    ),
    _claim(
        "chain",
        "res",
        "blocks",
        name="skips-shift-blocks",
        place="Hypothesis 6.1, figure 2",
        statement="Skips shift the singular values of the composite that they pass "
        "over, the two blocks, upwards.",
    ),
    _claim(
        "res",
        "average",
        "blocks",
        name="average-shifts-blocks",
        place="Hypothesis 6.1, figure 2",
        statement="$I + A$ in the place of $A$ shifts the singular values of the two "
        "blocks upwards.",
    ),
    _claim(
        "chain",
        "res",
        "parameters",
        name="skips-shift-parameters",
        place="Section 6.1",
        statement="With the layers' Jacobians the singular values of $DF$, the "
        "derivative of all scores by all parameters, shift upwards as skips are added.",
    ),
    _claim(
        "res",
        "average",
        "parameters",
        name="average-shifts-parameters",
        place="Section 6.1",
        statement="$I + A$ in the place of $A$ shifts the singular values of $DF$ "
        "upwards.",
    ),
    Claim(
        name="additions-raise-the-ratio",
        place="Section 6.1",
        statement="Both additions raise the ratio $\\|\\nabla\\ell\\|^2 / \\ell$, "
        "which gives the speed.",
        test=along(_ratio_rises),
        rival="a ratio that the additions leave alone or lower",
    ),
    Claim(
        name="skips-train-faster",
        place="Figure 2(d), section 6.2",
        statement="The network with skips converges faster than the chain.",
        test=faster("chain", "res", PLOTTED, ALL),
        rival="equal losses, or a chain that is ahead",
    ),
    Claim(
        name="average-trains-faster",
        place="Figure 2(d), section 6.2",
        statement="The network with $I + A$ converges faster than the one with $A$.",
        test=faster("res", "average", PLOTTED, ALL),
        rival="equal losses, or a projection alone that is ahead",
    ),
    Claim(
        name="skips-faster-initially",
        place="Hypothesis 6.1",
        statement="Skips improve the speed of convergence at least initially.",
        test=faster("chain", "res", FIRST),
        rival="losses that are equal or greater over the first steps",
        choices=(INITIALLY,),
    ),
    Claim(
        name="average-faster-initially",
        place="Hypothesis 6.1",
        statement="$I + A$ in the place of $A$ improves the speed of convergence at "
        "least initially.",
        test=faster("res", "average", FIRST),
        rival="losses that are equal or greater over the first steps",
        choices=(INITIALLY,),
    ),
    beyond(
        name="script-shifts-scores",
        place="Figure 2, as by the published script",
        statement="On pixels between 0 and 1, as the published script has them "
        "against the words of the paper, both additions shift the singular values of "
        "the composite Jacobian upwards.",
        test=every(
            shifted_up(
                spectrum(low, "composite", "script"),
                spectrum(high, "composite", "script"),
                name=f"{low} to {high}",
            )
            for low, high in ADDITIONS
        ),
        rival="the scale of the pixels, which skips pass on, makes no difference",
        choices=(ORDER,),
    ),
)


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

CLAIMS = (*LINEAR_CLAIMS, *NETWORK_CLAIMS, *START_CLAIMS)
