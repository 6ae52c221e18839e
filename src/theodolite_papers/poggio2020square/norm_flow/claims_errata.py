"""Printed statements on the flow that are wrong, and their corrections."""

import itertools

from theodolite.core import (
    Choice,
    Grade,
    PredictedAndMeasured,
    Quantity,
    Read,
    Select,
    Test,
    above,
    below,
    erratum,
    every,
    exact,
    highest,
    inside,
    known,
    largest,
    largest_distance,
    lowest,
    measured,
    meets,
    near,
    predicted,
    smallest,
)

from .config import SCALES

# Extrapolated to steps of length zero, descent meets a flow to this.
LIMIT = below(
    2e-3,
    source="ours",
    why="what extrapolation from finite steps to none leaves at these steps",
)
SUMS = below(1e-9, source="rounding", why="sums over samples, differentiated")
NONE = near(0, 1e-10, source="rounding", why="sums over samples, differentiated")
STILL = below(
    0.01, source="ours", why="descent has come within thousandths of its end by then"
)
UNIT = ("one input with decay", "two inputs")


def least_rise(along: str, *, falling: bool = False) -> Read:
    """Read the least rise of measured transients along a label, all others held.

    The label is followed downwards if ``falling``.
    """
    other = "layers" if along == "start" else "start"
    name = f"least rise of the transient over {'smaller ' * falling}{along}"

    def read(both: PredictedAndMeasured) -> Quantity:
        rows = both.measured.where(quantity="transient")
        rises, errors = [], []
        for held in rows.levels(other):
            path = sorted(
                rows.where(**{other: held}), key=lambda r: r[along], reverse=falling
            )
            for a, b in itertools.pairwise(path):
                rises.append(b["value"] - a["value"])
                errors.append(a["error"] + b["error"])
        least = min(rises, default=float("nan"))
        return known(name, least, max(errors, default=0.0))

    return read


def _meets(first: str, second: str) -> Test:
    """Judge whether autodiff agrees with a formula for every network and layer."""
    gap = largest_distance(
        predicted(first), measured(second), ("trial",), relative=False
    )
    return inside(gap, SUMS)


def _sphere(rho: float) -> Select:
    return measured("sphere_rate", rho=rho).called(f"rate of |V|² - 1 at norm {rho:g}")


def _at_smallest_start(both: PredictedAndMeasured) -> Quantity:
    """Return the smallest increase of the transient with depth, smallest start."""
    rows = both.measured.where(quantity="transient")
    start = min(rows.levels("start"), default=None)
    kept = PredictedAndMeasured(both.predicted, rows.where(start=start))
    rise = least_rise("layers")(kept)
    return known(
        "least rise of the transient over layers, smallest start",
        rise.value,
        rise.value - rise.lower(0.05),
    )


def _less_one(both: PredictedAndMeasured) -> Quantity:
    """Read how far the end of one unit without decay is above the least norm."""
    rows = both.measured.where(quantity="end", case="one input")
    value = rows[0]["value"] - 1 if len(rows) else float("nan")
    error = rows[0]["error"] if len(rows) else 0.0
    return known("norm at the end less the least norm", value, error)


ERRATA = (
    erratum(
        name="decay-for-a-multiplier",
        place="Eq 21",
        statement="The flow of $V_k$ with $-2\\lambda V_k$ keeps $V_k^T\\dot V_k = 0$.",
        printed="$\\dot V_k = \\dots - 2\\lambda V_k$",
        corrected="$\\dot V_k = \\dots - 2\\nu V_k$; $\\nu$ itself is right",
        test=exact(measured("radial_eq_21")),
        corrected_test=exact(measured("radial_eq_21_corrected")),
        rival="a decay that happens to equal the multiplier",
    ),
    erratum(
        name="projected-twice",
        place="Eq 23, middle",
        statement="The middle of Eq 23 is its right-hand side.",
        printed="$2\\sum_n[\\ell_n\\rho(-\\partial f_n/\\partial V_k) + 2 V_k\\rho "
        "f_n\\ell_n]$",
        corrected="without the inner 2, as on the right-hand side and in Eq 6",
        test=exact(measured("radial_eq_23")),
        corrected_test=exact(measured("radial")),
        rival="a velocity along the sphere either way",
    ),
    erratum(
        name="rate-of-squares",
        place="Eq 26",
        statement="$\\partial\\|W_k\\|^2/\\partial t$ is a sum of two positive terms.",
        printed="$\\frac{4}{N}\\sum g_n^2 + \\frac{4}{N}\\sum g_n$",
        corrected="$-\\frac{4}{N}\\sum g_n^2 + \\frac{4}{N}\\sum y_n g_n$",
        test=_meets("printed_square_rate", "square_rate"),
        corrected_test=_meets("square_rate", "square_rate"),
        rival="norms that can only grow",
    ),
    erratum(
        name="depth-counted-twice",
        place="Eq 27, middle",
        statement="$\\dot\\rho_k$ has the factor $2L$.",
        printed="$-2L\\sum_n(\\rho_k^L f_n - y_n) f_n\\rho_k^{L-1}$",
        corrected="$-2\\sum_n\\dots$, as on the right; the factor $L$ of Eq 28 comes "
        "from the sum over layers",
        test=_meets("printed_layer_norm_speed", "layer_norm_speed"),
        corrected_test=_meets("layer_norm_speed", "layer_norm_speed"),
        rival="layers that share one norm as a parameter",
    ),
    erratum(
        name="samples-lost-count",
        place="Eqs 27 and 28, after Eqs 18 and 26",
        statement="On the mean of squares of Eq 18, $\\dot\\rho_k$ is Eq 27.",
        printed="$-2\\rho_k^{L-1}[\\sum_n\\rho_k^L f_n^2 - \\sum_n f_n y_n]$",
        corrected="$-\\frac{2}{N}\\dots$: Eqs 27 and 28 have lost the $1/N$ of Eqs "
        "18 and 26, and are right of the sum of squares",
        test=_meets("layer_norm_speed", "mean_layer_norm_speed"),
        corrected_test=_meets("mean_layer_norm_speed", "mean_layer_norm_speed"),
        rival="a loss that is the sum from appendix B on",
        grade=Grade.LOOSE,
    ),
    erratum(
        name="dimension-of-minimisers",
        place="Section 2.3.1, after observation 2",
        statement="Critical points $V_k$ of one $\\rho_{eq}$ at zero loss are "
        "degenerate with dimension $W - N$.",
        printed="dimensionality $W - N$",
        corrected="$W - N$ of all weights that fit the labels; of unit layers at one "
        "$\\rho$ it is $W - N - L$",
        test=inside(largest(measured("free_of_units_printed")), NONE),
        corrected_test=every(
            inside(largest(measured(name)), NONE)
            for name in ("free_of_weights", "free_of_units")
        ),
        rival="samples that do not each take a dimension",
        choices=(
            Choice(
                what="networks whose outputs are taken for labels",
                why="every one of them then has zero loss",
            ),
        ),
        grade=Grade.LOOSE,
    ),
    erratum(
        name="sphere-repels",
        place="Section 6.1, second remark",
        statement="The multiplier draws each $V_k$ to the unit sphere from both sides.",
        printed="'a regularizer when the norm of $V_k$ is larger than 1' and 'the "
        "opposite effect for $\\|V_k\\| < 1$'",
        corrected="$\\frac{d}{dt}(\\|V_k\\|^2 - 1) = -4\\nu(\\|V_k\\|^2 - 1)$: the "
        "sphere attracts where $\\nu > 0$ and repels, on both sides, where $\\nu < 0$, "
        "that is for $\\rho > \\sum y f/\\sum f^2$",
        test=every(inside(highest(_sphere(rho)), below(0)) for rho in SCALES),
        corrected_test=every(
            inside(highest(_sphere(SCALES[0])), below(0)),
            inside(lowest(_sphere(SCALES[1])), above(0)),
            meets(
                "sphere_rate",
                ("trial", "rho", "side"),
                below(1e-6, source="rounding", why="a rate over a small distance"),
            ),
        ),
        rival="a sphere that attracts wherever the flow is",
    ),
    erratum(
        name="norm-grows-monotonically",
        place="Observation 1 and section 3",
        statement="From a small norm and average separability $\\rho$ grows "
        "monotonically until it rests.",
        printed="'$\\rho$ grows monotonically until a minimum is reached'",
        corrected="so for outputs that are held; else $\\dot\\rho$ has the sign of "
        "$\\rho_{eq}(t) - \\rho$, and $\\rho_{eq}(t)$ falls below $\\rho$ as outputs "
        "grow: with decay and without it, for one ReLU unit",
        test=inside(
            largest(
                measured("drop", lambda row: row["case"] in UNIT).called(
                    "peak of the norm less its end"
                )
            ),
            near(0, 1e-3, source="ours", why="far above what finite steps add"),
        ),
        corrected_test=every(
            inside(largest(measured("wrong_way")), near(0, 0)),
            *(
                meets(name, ("case",), LIMIT, test=lambda row: row["case"] in UNIT)
                for name in ("peak", "end")
            ),
        ),
        rival="overshoot of finite steps, which vanishes with them",
        choices=(
            Choice(
                what="a second layer of one weight, held at 1 by its norm",
                why="the paper asks for two layers or more",
            ),
        ),
    ),
    erratum(
        name="smallest-norm-first",
        place="Observation 2",
        statement="From $\\rho \\to 0$ the flow finds the interpolation of least norm, "
        "even for $\\lambda = 0$.",
        printed="'typically found first, even for $\\lambda = 0$'",
        corrected="one unit and one input keep $\\rho^2 + 2\\ln\\sin\\theta$: the "
        "limit depends on the angle at the start however small $\\rho_0$ is",
        test=inside(
            _less_one,
            near(0, 1e-3, source="ours", why="far above what finite steps add"),
        ),
        corrected_test=every(
            inside(
                largest_distance(
                    predicted("aligned"), measured("end", case="one input"), ()
                ),
                LIMIT,
            ),
            inside(
                largest_distance(
                    predicted("invariant"),
                    measured("invariant", case="one input"),
                    (),
                    relative=False,
                ),
                LIMIT,
            ),
        ),
        rival="the least norm, 1",
        grade=Grade.LOOSE,
    ),
    erratum(
        name="growth-is-logistic",
        place="Below Eq 28",
        statement="Eq 28 is a differential logistic equation.",
        printed="'of the type known as differential logistic equation'",
        corrected="for $L = 2$ alone; the power of $\\rho$ is $2 - 2/L$",
        test=inside(
            largest(predicted("logistic_gap").called("distance from a logistic curve")),
            near(0, 1e-6, source="rounding", why="an integrated flow"),
        ),
        corrected_test=every(
            inside(
                largest(predicted("logistic_gap", layers=2)),
                near(0, 1e-6, source="rounding", why="an integrated flow"),
            ),
            inside(
                smallest(predicted("logistic_gap", lambda row: row["layers"] > 2)),
                above(0.05, source="ours", why="a twentieth of the rest is seen"),
            ),
        ),
        rival="another power that is logistic too",
        choices=(
            Choice(
                what="the logistic curve of the same start, first speed and end",
                why="these fix all of its constants",
            ),
        ),
        grade=Grade.LOOSE,
    ),
    erratum(
        name="deep-is-slow",
        place="Section 2.3.1 and appendix D",
        statement="The transient is longer with more layers.",
        printed="'$T$ is longer with more layers'",
        corrected="from small enough a start; from $\\rho_0 = 0.1$ it is shorter with "
        "every layer",
        test=inside(least_rise("layers"), above(0)),
        corrected_test=inside(_at_smallest_start, above(0)),
        rival="times that layers do not change",
        choices=(
            Choice(
                what="the time to half of the rest, outputs held",
                why="the paper does not say when the transient ends",
            ),
        ),
        grade=Grade.LOOSE,
    ),
    erratum(
        name="rest-without-pull",
        place="Footnote 4",
        statement="$\\dot\\rho = 0$ is equivalent to $\\sum\\ell_n f_n = 0$.",
        printed="'$\\dot\\rho = 0$ is equivalent to $\\sum\\ell_n f_n = 0$'",
        corrected="$\\sum\\ell_n f_n = -\\lambda\\rho$; zero at $\\lambda = 0$ alone",
        test=inside(largest(measured("rest_pull")), NONE),
        corrected_test=every(
            inside(largest(measured("rest_balance")), NONE),
            inside(largest(measured("rest_pull", decayed=False)), NONE),
        ),
        rival="a pull that decay does not balance",
        grade=Grade.LOOSE,
    ),
    erratum(
        name="norm-at-least-one",
        place="Footnote 6 and appendix B.1",
        statement="No equilibrium has a norm below one.",
        printed="'$\\rho \\geq 1$ for a critical point to exist'",
        corrected="so if all samples are separated and $\\lambda = 0$; not under "
        "average separability ($y f = (1, 1, -0.9)$ rests at 0.39), nor with decay "
        "($N/(N + \\lambda)$ for $y f = 1$)",
        test=inside(lowest(measured("equilibrium")), above(1 - 1e-9, source="paper")),
        corrected_test=every(
            inside(lowest(measured("equilibrium", case="separable")), above(1)),
            inside(highest(measured("equilibrium", case="average")), below(1)),
            inside(highest(measured("equilibrium", case="decay")), below(1)),
        ),
        rival="norms below one that are no equilibria",
    ),
    erratum(
        name="noise-lowers-the-norm",
        place="Footnote 13",
        statement="Label noise makes $\\sum f_n y_n$ and the norm at rest smaller.",
        printed="'Label noise also makes $\\sum_n f_n y_n$ smaller'",
        corrected="noise of mean zero that does not know the outputs leaves both as "
        "they are on average, and moves single draws either way",
        test=inside(
            highest(measured("noise_shift").called("mean shift by noise")),
            below(-1e-9, source="rounding", why="smaller at all"),
        ),
        corrected_test=every(
            inside(largest(measured("noise_shift")), NONE),
            inside(highest(measured("one_noise")), above(0)),
            inside(lowest(measured("one_noise")), below(0)),
        ),
        rival="noise that follows the outputs, as labels that flip do",
        choices=(
            Choice(
                what="outputs held, and with each noise its mirror image",
                why="the mean is then exact; the footnote speaks of given outputs",
            ),
        ),
    ),
    erratum(
        name="rest-at-kinks",
        place="Eq 8",
        statement="Where descent ends, $\\dot V_k = 0$ by Eq 8 for every layer.",
        printed="$\\sum_n\\ell_n\\,\\partial f_n/\\partial V_k = \\sum_n\\ell_n V_k "
        "f_n$",
        corrected="at points where the network can be differentiated. ReLU networks "
        "slide along kinks and end on them: Eq 8 then holds for some shares of the "
        "gradient between both sides, Clarke's subgradient, in the first layer",
        test=inside(
            largest(measured("first_residual").called("residual of the first layer")),
            STILL,
        ),
        corrected_test=every(
            inside(largest(measured("clarke_residual")), STILL),
            inside(largest(measured("last_residual")), STILL),
            inside(highest(measured("kinks")), above(0.5)),
            inside(highest(predicted("slides")), above(0.5)),
        ),
        rival="descent that has not ended",
        choices=(
            Choice(
                what="a pre-activation within eight of the last steps is a kink",
                why="descent chatters by as much as it steps",
            ),
        ),
        grade=Grade.LOOSE,
    ),
)
