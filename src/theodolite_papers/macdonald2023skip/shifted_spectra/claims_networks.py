"""Figure 2: what three networks of equal weights say of spectra and speed."""

from theodolite.core import (
    Choice,
    Claim,
    Judgement,
    Kind,
    Number,
    PredictedAndMeasured,
    Select,
    Test,
    by_network,
    estimate,
    every,
    measured,
    ordered,
)

from ..shared.shares import shifted_up

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

INITIALLY = Choice(what="initially: ten steps", why="spectra are averaged over them")


def spectrum(kind: str, metric: str, part: str = "figure") -> Select:
    """Select shares of the spectra of a network of figure 2."""
    return measured("share", part=part, kind=kind, metric=metric)


def log_loss(kind: str, over: int, part: str = "figure") -> Select:
    """Select mean logarithms of the loss over the first steps."""
    return measured("log_loss", part=part, kind=kind, over=over)


def steps_of(both: PredictedAndMeasured, part: str = "figure") -> int:
    """Return the number of steps of training."""
    return max(measured("log_loss", part=part)(both).levels("over"), default=0)


def faster(slow: str, fast: str, over: int | None = None, part: str = "figure") -> Test:
    """Judge whether a network's loss is less over the first steps, or over all."""

    def test(both: PredictedAndMeasured) -> Judgement:
        steps = steps_of(both, part) if over is None else over
        low, high = (log_loss(kind, steps, part) for kind in (fast, slow))
        return ordered(low, high)(both)

    return test


def _asides(both: PredictedAndMeasured) -> dict[str, Number]:
    """Tell mean singular values of the three networks by both metrics."""
    found = {}
    for metric in ("composite", "blocks"):
        for kind in ("chain", "res", "average"):
            rows = measured("mean", part="figure", kind=kind, metric=metric)(both)
            values = list(by_network(rows).values.values())
            if len(values) > 1:
                told = estimate(values)
                found[f"mean, {metric}, {kind}"] = Number(told.mean, told.stderr)
    return found


def _claim(low: str, high: str, metric: str, **words: str) -> Claim:
    choices = (ORDER,) if metric == "composite" else (ORDER, HELD)
    return Claim(
        test=shifted_up(spectrum(low, metric), spectrum(high, metric)),
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
        statement=(
            "Adding skips to the chain shifts the singular values of the composite "
            "Jacobian, from behind the stem to the scores and averaged over the first "
            "ten steps, upwards."
        ),
    ),
    _claim(
        "res",
        "average",
        "composite",
        name="average-shifts-scores",
        place="Figure 2(b), (c); section 6.2",
        statement=(
            "Replacing the projection $A$ by $I + A$ shifts the singular values of the "
            "same composite Jacobian upwards."
        ),
    ),
    _claim(
        "chain",
        "res",
        "blocks",
        name="skips-shift-blocks",
        place="Hypothesis 6.1, figure 2",
        statement=(
            "Skips shift the singular values of the composite that they pass over, "
            "the two blocks, upwards."
        ),
    ),
    _claim(
        "res",
        "average",
        "blocks",
        name="average-shifts-blocks",
        place="Hypothesis 6.1, figure 2",
        statement=(
            "$I + A$ in the place of $A$ shifts the singular values of the two blocks "
            "upwards."
        ),
    ),
    Claim(
        name="skips-train-faster",
        place="Figure 2(d), section 6.2",
        statement="The network with skips converges faster than the chain.",
        test=faster("chain", "res"),
        rival="equal losses, or a chain that is ahead",
        choices=(SPEED,),
    ),
    Claim(
        name="average-trains-faster",
        place="Figure 2(d), section 6.2",
        statement="The network with $I + A$ converges faster than the one with $A$.",
        test=faster("res", "average"),
        rival="equal losses, or a projection alone that is ahead",
        choices=(SPEED,),
    ),
    Claim(
        name="skips-faster-initially",
        place="Hypothesis 6.1",
        statement="Skips improve the speed of convergence at least initially.",
        test=faster("chain", "res", 10),
        rival="losses that are equal or greater over the first steps",
        choices=(SPEED, INITIALLY),
    ),
    Claim(
        name="average-faster-initially",
        place="Hypothesis 6.1",
        statement=(
            "$I + A$ in the place of $A$ improves the speed of convergence at least "
            "initially."
        ),
        test=faster("res", "average", 10),
        rival="losses that are equal or greater over the first steps",
        choices=(SPEED, INITIALLY),
    ),
    Claim(
        name="script-shifts-scores",
        place="Figure 2, as by the published script",
        kind=Kind.BEYOND,
        statement=(
            "On pixels between 0 and 1, as the published script has them against the "
            "words of the paper, both additions shift the singular values of the "
            "composite Jacobian upwards."
        ),
        test=every(
            *(
                shifted_up(
                    spectrum(low, "composite", "script"),
                    spectrum(high, "composite", "script"),
                    name=f"{low} to {high}",
                )
                for low, high in ADDITIONS
            )
        ),
        rival="the scale of the pixels, which skips pass on, makes no difference",
        choices=(ORDER,),
    ),
)
