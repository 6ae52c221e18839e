"""Claims of figure 2 and hypothesis 6.1 on spectra and speed at equal weights."""

from collections.abc import Callable

from theodolite.core import (
    Claim,
    Number,
    PredictedAndMeasured,
    ReadAs,
    Row,
    Rows,
    Select,
    Test,
    beyond,
    by_network,
    estimate,
    every,
    measured,
    ordered,
    readings,
)

from ..shared.reads import shifted_up
from .claims_linear import LINEAR_CLAIMS
from .claims_starts import ADDITIONS, HELD, ORDER, START_CLAIMS

Early = Callable[[Row], bool]
PLOTTED, ALL, FIRST, HALF = 20, 30, 10, 5
# Sources of the horizons, the first of which is that of figure 2(d).
SOURCES = {
    PLOTTED: "the published script draws figure 2(d) with a linear axis over 20 steps",
    ALL: "ours: all steps that were trained",
    FIRST: "figure 2 averages its spectra over ten steps",
    HALF: "ours: half of the steps over which figure 2 averages its spectra",
}
DEFAULT = ("torch's default start alone; footnote 6 has some common ones",)


def spectrum(kind: str, metric: str, part: str = "figure") -> Select:
    """Select shares of the spectra of a network of figure 2."""
    rows = measured("share", part=part, kind=kind, metric=metric)
    return rows.called("singular values")


def _lower(slow: str, fast: str, steps: int, log: bool) -> Test:
    """Judge whether a network's mean loss over the first steps is lower."""
    axis = "mean log10 loss" if log else "mean loss"
    name = f"{axis} over {steps} steps, {slow} less {fast}"
    both = (_losses("loss", kind, steps) for kind in (fast, slow))
    return ordered(*both, log=log, name=name)


def _losses(quantity: str, kind: str, steps: int) -> Select:
    """Select losses of the first steps of a network of figure 2, after its start."""
    first = {"part": "figure", "kind": kind}
    return measured(quantity, lambda row: 1 <= row["step"] <= steps, **first)


def _relative(rows: Rows) -> Rows:
    """Return losses over those of the same network before its first step."""
    rows = rows.where(quantity="loss")
    starts = {(r["kind"], r["trial"]): r["value"] for r in rows.where(step=0)}
    return Rows(
        {**row, "quantity": "relative_loss", "value": value, "error": row["error"] / at}
        for row in rows
        for at in [starts[row["kind"], row["trial"]]]
        for value in [row["value"] / at]
    )


def _falls_further(slow: str, fast: str, steps: int) -> ReadAs:
    """Read speed as the loss over what it was before the first step."""
    both = (
        _losses("relative_loss", kind, steps).out_of(_relative) for kind in (fast, slow)
    )
    name = f"mean log10 loss over its start, {steps} steps, {slow} less {fast}"
    return ReadAs(
        f"{steps} steps, over the start's loss",
        "Speed is the mean logarithm of the loss over that before the first step.",
        "equation 4, a rate at which the loss falls from where it starts",
        ordered(*both, log=True, name=name),
    )


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
        ),
        *(_falls_further(slow, fast, steps) for steps in horizons),
    )


def along(make: Callable[[Early], Test]) -> Test:
    """Judge a test on averages over the first steps, at the start, and further on."""

    def until(steps: int, source: str) -> ReadAs:
        what = f"Averages are over the first {steps} steps."
        test = make(lambda row: row["step"] < steps)
        return ReadAs(f"{steps} steps", what, source, test)

    return readings(
        until(FIRST, SOURCES[FIRST]),
        ReadAs(
            "start",
            "Before the first step, at equal weights.",
            "hypothesis 6.1: random layers",
            make(lambda row: row["step"] == 0),
        ),
        until(PLOTTED, "ours: the steps over which figure 2(d) shows the speed"),
    )


def shifts(low: str, high: str, metric: str, early: Early | None = None) -> Test:
    """Judge whether a spectrum is shifted up as a whole, and in its mean."""

    def pair(quantity: str, name: str) -> tuple[Select, Select]:
        rows = measured(quantity, early, part="figure", metric=metric).called(name)
        return rows.at(kind=low), rows.at(kind=high)

    of = " of DF" if metric == "parameters" else ""
    return readings(
        ReadAs(
            "every tenth",
            "Every tenth of the spectrum has a greater mean.",
            "the usual order of distributions; the paper shows histograms",
            shifted_up(*pair("share", f"singular values{of}")),
        ),
        ReadAs(
            "mean",
            "The mean of all singular values is greater.",
            "ours: the paper names no statistic",
            ordered(*pair("mean", f"mean singular value{of}")),
        ),
    )


def _by_parameters(low: str, high: str) -> Test:
    """Judge whether the spectrum of the scores by the parameters is shifted up."""
    return along(lambda early: shifts(low, high, "parameters", early))


def _ratio_rises(early: Early) -> Test:
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
    whole = metric == "parameters"
    return Claim(
        test=_by_parameters(low, high) if whole else shifts(low, high, metric),
        rival="spectra that agree, spread, or fall",
        choices=(HELD,) if metric == "blocks" else (),
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
        statement="Skips, all of whose singular values are 1, improve the speed of "
        "convergence at least initially.",
        test=faster("chain", "res", FIRST, HALF),
        rival="losses that are equal or greater over the first steps",
        departures=DEFAULT,
    ),
    Claim(
        name="average-faster-initially",
        place="Hypothesis 6.1",
        statement="$I + A$ in the place of $A$ improves the speed of convergence at "
        "least initially.",
        test=faster("res", "average", FIRST, HALF),
        rival="losses that are equal or greater over the first steps",
        departures=DEFAULT,
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


WORDS = {
    "matrix_share": "mean of a tenth of the singular values",
    "low_end": "least singular value",
    "high_end": "largest singular value",
    "share": "mean of a tenth of the singular values",
    "mean": "mean singular value",
}
CLAIMS = (*LINEAR_CLAIMS, *NETWORK_CLAIMS, *START_CLAIMS)
