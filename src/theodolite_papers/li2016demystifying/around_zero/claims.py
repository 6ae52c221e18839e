"""Claims around theorem 2: order of contact, biases, ReLU, minimum."""

import math

import numpy as np

from theodolite.core import (
    Claim,
    Grade,
    Number,
    PredictedAndMeasured,
    Quantity,
    Region,
    above,
    below,
    each,
    erratum,
    every,
    exact,
    highest,
    inside,
    known,
    largest,
    lowest,
    measured,
    near,
    predicted,
    smallest,
    trend,
)

from ..shared.reads import always

SMALL = below(
    1e-4, source="rounding", why="weights of a millionth move eigenvalues by no more"
)
NOT_NEGATIVE = Region(low=0.0, low_open=False)


def shrinking(both: PredictedAndMeasured) -> Quantity:
    """Read the exponent of ReLU's curvature as the interval shrinks."""
    rows = predicted("curvature")(both)
    wide, narrow = rows[0], rows[-1]
    span = math.log(wide["delta"] / narrow["delta"])
    value = math.log(wide["value"] / narrow["value"]) / span
    bound = sum(row["error"] / row["value"] for row in (wide, narrow)) / span
    return known("exponent of the curvature in the interval's width", value, bound)


def _orders(both: PredictedAndMeasured) -> dict[str, Number]:
    rows = both.measured.where(quantity="order")
    return {
        f"order at n = {n}": Number(
            float(rows.where(n=n).values().mean()),
            float(rows.where(n=n).values("error").max()),
        )
        for n in rows.levels("n")
    }


def _medians(both: PredictedAndMeasured) -> dict[str, Number]:
    """Return the median over networks, with half the interquartile range as spread."""
    numbers = {}
    for name, label in (("condition", "cond(H)"), ("largest", "largest eigenvalue")):
        for rows, road in (
            (both.measured, "measured"),
            (both.predicted, "of Eqs 9 and 26"),
        ):
            values = rows.where(quantity=name).values()
            low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
            numbers[f"median {label} {road}"] = Number(
                float(middle), float(high - low) / 2
            )
    return numbers


WORDS = {
    "order": "order of contact",
    "flat": "flat directions a unit and coordinate",
    "bias_form": "distance of Hessians with trained biases from the corrected form",
    "bias_theorem": "distance of their largest eigenvalue from theorem 2",
    "off_pattern": "entry where theorem 2 has zeros, over the greatest",
    "fixed_form": "distance of Hessians with constant biases from the corrected form",
    "zero_form": "distance of Hessians with zero biases from theorem 2",
    "printed": "distance of ReLU spectra from Eq 8",
    "half_space": "distance of ReLU spectra from half-space moments",
    "lower": "lesser change of the loss along a direction and its mirror",
    "upper": "greater change of the loss along a direction and its mirror",
    "fixed_largest": "largest eigenvalue with constant biases",
    "scaled": "curvature times the interval's width",
    "slope": "gradient over the loss",
}
CLAIMS = (
    Claim(
        name="stationary-order",
        place="Theorem 2.1, Definition 4",
        statement="For $n \\geq 2$ zero is a stationary point of order $n-1$: the "
        "loss changes by $o(t^{n-1})$ along any direction.",
        test=each(
            "n",
            measured("order"),
            lambda n: inside(smallest(measured("order", n=n)), above(n - 1)),
        ),
        rival="contact of order $n-1$",
        asides=_orders,
    ),
    erratum(
        name="biases-flatten",
        place="Section 4.1, after Eq 3, biases as parameters",
        statement="The unit $x + W_2\\,\\sigma(W_1 x + b)$ of Eq 3 follows theorem 2, "
        "so its condition number is depth-invariant: no eigenvalue is zero.",
        printed="its Hessian still follows the form of theorem 2",
        corrected="a bias couples to $W_2$: spectrum $\\pm c\\,sv([M,\\; E(x-y)])$ "
        "and $d$ zeros a unit, hence an infinite condition number; only the rest of "
        "the spectrum is depth-invariant",
        test=always(measured("flat"), near(0, 0)),
        corrected_test=every(
            exact(measured("bias_form"), rival=measured("bias_theorem")),
            always(measured("flat"), near(1, 0)),
        ),
        rival="the spectrum of theorem 2, shifted by nothing",
    ),
    erratum(
        name="biases-couple-units",
        grade=Grade.LOOSE,
        place="Section 4.1, after Eq 3, biases as constants",
        statement="Eq 3 follows theorem 2 also if its biases $b_r$ are constants: "
        "only the two matrices of a unit meet in the Hessian at zero.",
        printed="its Hessian still follows the form of theorem 2",
        corrected="so it does for $b_r = 0$; else last matrices couple across units "
        "by $\\sigma(b_r)\\sigma(b_s)^T \\otimes I$, whose largest eigenvalue grows "
        "with depth, and zero is no stationary point",
        test=exact(measured("off_pattern")),
        corrected_test=every(
            exact(measured("fixed_form"), rival=measured("off_pattern")),
            exact(measured("zero_form"), rival=measured("slope")),
            trend(measured("fixed_largest"), over="units", slope_in=above(0), points=2),
        ),
        rival="units that stay apart",
    ),
    erratum(
        name="relu-half-space-moments",
        place="Assumption 3 and the remark after it, Eqs 9 and 26",
        statement="ReLU may be replaced by its local polynomial at zero, so a network "
        "with ReLU at mid has the Hessian of Eq 8 with slope $1/2$ near zero.",
        printed="ReLU's derivatives from a local polynomial, whose slope at zero is "
        "$1/2$: by Eq 26 eigenvalues $\\pm\\frac{1}{2}\\,sv(M)$",
        corrected="a ReLU sees half of the inputs, another half for each row $w_j$ of "
        "$W_1$: eigenvalues $\\pm sv(M(w_j))$, $M(w) = \\frac{1}{m}\\sum 1[w \\cdot x "
        "> 0]\\,(x-y)x^T$, and $M/2$ is only the average over $\\pm w_j$",
        test=inside(largest(measured("printed")), SMALL),
        corrected_test=exact(
            measured("half_space"), within=SMALL, rival=measured("printed")
        ),
        rival="the smooth formula",
        asides=_medians,
    ),
    erratum(
        name="relu-has-no-curvature",
        place="Assumption 3 and the remark after it",
        statement="A local polynomial gives ReLU the two derivatives at zero that "
        "assumption 3 asks for: they stay bounded as the interval shrinks.",
        printed="a local polynomial approximation yields $\\sigma^{(k)}$, $k \\leq 2$",
        corrected="the best quadratic on $[-\\delta, \\delta]$ has slope $1/2$ and "
        "curvature $15/(16\\,\\delta)$, which diverges; 1-shortcut networks with ReLU "
        "at post need it",
        test=inside(shrinking, NOT_NEGATIVE),
        corrected_test=every(
            always(predicted("scaled"), near(15 / 16, 1e-12, source="rounding")),
            always(predicted("slope"), near(0.5, 1e-12, source="rounding")),
        ),
        rival="a curvature that converges",
    ),
    erratum(
        name="zero-is-a-saddle",
        place="Section 2",
        statement="Zero is a spurious local minimum of networks with shortcuts of "
        "length 2: the loss falls in no direction.",
        printed="spurious local minimum (such as the zero initial point)",
        corrected="unless $M = 0$ a saddle of order $n-1$ for every $n \\geq 2$: "
        "turning the sign of each unit's last matrix turns that of $L(tV) - L(0)$",
        test=inside(lowest(measured("lower", n=2)), NOT_NEGATIVE),
        corrected_test=every(
            inside(highest(measured("lower")), below(0)),
            inside(lowest(measured("upper")), above(0)),
        ),
        rival="the loss rises in both directions",
    ),
)
