"""Claims of the paper on the flow of norms and normalised layers."""

import itertools

from theodolite.core import (
    ROUNDING,
    Choice,
    Claim,
    PredictedAndMeasured,
    Quantity,
    Read,
    Row,
    above,
    against,
    below,
    between,
    beyond,
    every,
    exact,
    highest,
    inside,
    known,
    largest,
    lowest,
    measured,
    meets,
    near,
)

from .claims_errata import ERRATA, LIMIT, SUMS, least_rise


def _gaps(both: PredictedAndMeasured, quantity: str, by: tuple[str, ...]) -> list[Row]:
    """Return measured rows with their distance from the flow, where it is known."""
    theory = {
        tuple(row.get(k) for k in by): row["value"]
        for row in both.predicted.where(quantity=quantity)
    }
    return [
        {**row, "value": abs(row["value"] - theory[key])}
        for row in both.measured.where(quantity=quantity)
        if (key := tuple(row.get(k) for k in by)) in theory
    ]


def ratio_of_halving(quantity: str, by: tuple[str, ...]) -> Read:
    """Read the factor by which half the step divides the distance from the flow."""
    name = f"distance of {quantity.replace('_', ' ')}, step over half step"

    def read(both: PredictedAndMeasured) -> Quantity:
        rows = _gaps(both, quantity, by)
        rates = sorted({row["rate"] for row in rows})
        if len(rates) < 2:
            return known(name, float("nan"), note="there are no two steps")
        fine, coarse = (
            sum(row["value"] for row in rows if row["rate"] == rate)
            for rate in rates[:2]
        )
        # Flows are known to this much, and distances add up to the sums of both.
        bound = 2e-8 * len(rows)
        return known(name, coarse / fine, bound / fine)

    return read


def _more_so(both: PredictedAndMeasured) -> Quantity:
    """Read the least rise over layers of what smaller starts cost."""
    name = "least rise over layers of what a smaller start costs"
    rows = both.measured.where(quantity="transient")
    starts = rows.levels("start")
    if len(starts) < 2:
        return known(name, float("nan"), note="there are no two starts")
    costs, error = [], 0.0
    for layers in rows.levels("layers"):
        low, high = (
            rows.where(layers=layers, start=start)[0]
            for start in (starts[0], starts[-1])
        )
        costs.append(low["value"] - high["value"])
        error = max(error, low["error"] + high["error"])
    rises = [b - a for a, b in itertools.pairwise(costs)]
    return known(name, min(rises, default=float("nan")), 2 * error)


def largest_sum_gap(both: PredictedAndMeasured) -> Quantity:
    """Read the distance of the sum of the terms of Eq 19 from the measured speed."""
    rows = both.measured.where(quantity="plain_velocity")
    gaps = [
        row["value"]
        - sum(
            both.measured.value(quantity=name, trial=row["trial"], layer=row["layer"])
            for name in ("plain_by_outputs", "plain_by_labels")
        )
        for row in rows
    ]
    value = max(map(abs, gaps), default=float("nan"))
    return known("largest gap of the terms of Eq 19", value, 3e-13)


WORDS = {
    "lemma_gap": "distance of both sides of the lemma",
    "output": "output",
    "radial": "radial speed",
    "radial_eq_21": "radial speed by Eq 21",
    "radial_eq_23": "radial speed by Eq 23",
    "ray_gap": "distance of gradients from outputs times layers",
    "ray_layer_speed": "speed of the layers",
    "ray_norm_speed": "speed of the norm",
    "gradient_gap": "distance of gradients from the formula",
    "gradient_as_is_gap": "distance of gradients without factors",
    "rest_pull": "$\\sum \\ell_n f_n$ at rest",
    "rest_balance": "$\\sum \\ell_n f_n + \\lambda\\rho$ at rest",
    "equilibrium": "norm at rest",
    "clarke_residual": "residual with shares of both gradients",
    "last_residual": "residual of the last layer",
    "one_noise": "shift by a single noise",
    "norm_speed": "speed of the norm",
    "held_norm": "norm with the weights held",
    "velocity": "velocity of the weights",
    "multiplier": "Lagrange multiplier",
    "plain_velocity": "velocity of plain weights",
    "shares_norm": "norm at rest with held weights",
    "times_least": "norm at rest times the least output",
    "times_most": "norm at rest times the greatest output",
    "square_rate": "rate of a layer's squared norm",
    "printed_square_rate": "the printed rate",
    "layer_norm_speed": "speed of a layer's norm",
    "printed_layer_norm_speed": "the printed speed",
    "mean_layer_norm_speed": "speed of a layer's norm for the mean loss",
    "layered_norm": "norm of several layers in time",
    "transient": "time until the norm has grown",
    "radial_eq_21_corrected": "radial speed by Eq 21 with the multiplier",
    "free_of_weights": "error in the dimension of minimisers",
    "free_of_units_printed": "error in the printed dimension, unit weights",
    "free_of_units": "error in the dimension of minimisers, unit weights",
    "wrong_way": "steps in which the norm goes the wrong way",
    "logistic_gap": "distance of the norm from a logistic curve",
    "noise_shift": "mean shift by both signs of noise",
}
CLAIMS = (
    Claim(
        name="structural-lemma",
        place="Eqs 1 and 2",
        statement="$\\langle W_k, \\partial g(x)/\\partial W_k\\rangle = g(x)$ for "
        "every layer, and every input of its own.",
        test=exact(measured("lemma_gap")),
        rival="a multiple of the output, as with biases",
    ),
    Claim(
        name="outputs-at-most-one",
        place="Section 2.1 and footnote 3",
        statement="With $\\|x\\| = 1$ and unit layers, $|f(x)| \\leq 1$.",
        test=against(
            every(
                inside(highest(measured("output")), between(0, 1)),
                inside(
                    highest(measured("ascended").called("largest output by ascent")),
                    below(1 + 1e-12, source="rounding", why="products of unit layers"),
                ),
            ),
            inside(
                lowest(measured("ascended").called("largest output by ascent")),
                above(0.999, source="ours", why="the bound is reached"),
            ),
        ),
        rival="a search that stays far below the bound",
    ),
    Claim(
        name="flow-of-the-norm",
        place="Eqs 5, 20, 22 and 30",
        statement="$\\dot\\rho = -2[\\sum_n \\rho f_n^2 - \\sum_n f_n y_n] - "
        "2\\lambda\\rho$.",
        test=every(
            meets("norm_speed", ("trial",), SUMS, relative=False),
            meets("held_norm", ("time",), LIMIT),
        ),
        rival="a mean in place of the sum, or decay without its factor",
    ),
    Claim(
        name="flow-of-the-weights",
        place="Eqs 3, 4, 6 and 23, right-hand side",
        statement="$\\dot V_k = 2\\rho\\sum_n \\ell_n (V_k f_n - \\partial "
        "f_n/\\partial V_k)$, with $\\nu = -\\sum_n(\\rho^2 f_n^2 - \\rho\\,y_n f_n)$, "
        "is the gradient flow on the sphere.",
        test=every(
            meets("velocity", ("trial", "layer"), SUMS, relative=False),
            meets("multiplier", ("trial",), SUMS, relative=False),
            exact(measured("radial")),
        ),
        rival="the multiplier with the other sign",
    ),
    Claim(
        name="flow-of-plain-weights",
        place="Eqs 18 and 19",
        statement="On the mean of squares $\\dot W_k = -\\frac{2}{N}\\sum_n (g_n - "
        "y_n)\\,\\partial g_n/\\partial W_k$, the sum of a term of outputs and one of "
        "labels.",
        test=every(
            meets("plain_velocity", ("trial", "layer"), SUMS, relative=False),
            inside(largest_sum_gap, SUMS),
        ),
        rival="the sum in place of the mean",
    ),
    Claim(
        name="own-gradients-leave-the-norm",
        place="Footnote 5",
        statement="Where $V_k f_n = \\partial f_n/\\partial V_k$, $\\dot V_k = 0$, but "
        "that is no critical point of $(\\rho, V_k)$ unless $\\dot\\rho = 0$.",
        test=every(
            inside(highest(measured("ray_gap")), SUMS),
            inside(highest(measured("ray_layer_speed")), SUMS),
            inside(highest(measured("ray_norm_speed", place="rest")), SUMS),
            *(
                inside(
                    lowest(measured("ray_norm_speed", place=place)),
                    above(1e-3, source="ours", why="far beyond what rounding leaves"),
                )
                for place in ("below", "above")
            ),
        ),
        rival="norms that rest wherever layers do",
        choices=(
            Choice(
                what="layers of rank one, inputs of several lengths on one ray",
                why="the condition can hold of every layer and sample there alone",
            ),
        ),
    ),
    Claim(
        name="norm-tells-outputs-of-zero-and-one",
        place="Footnote 9",
        statement="A small equilibrium $\\rho$ corresponds to $f_n$ close to 1 or 0, "
        "and is of the order of $1/f_n$.",
        test=every(
            meets("shares_norm", ("trial", "spread"), ROUNDING),
            inside(
                highest(measured("times_least")),
                below(1 + 1e-9, source="rounding", why="one quotient of sums"),
            ),
            inside(
                lowest(measured("times_most")),
                above(1 - 1e-9, source="rounding", why="one quotient of sums"),
            ),
        ),
        rival="a small norm of outputs that are neither 0 nor 1",
        choices=(
            Choice(
                what="all $y_n f_n$ between 0 and 1 and no decay: $\\rho - 1 = \\sum "
                "f_n(1 - f_n)/\\sum f_n^2$, and of the order is between $1/\\max f_n$ "
                "and $1/\\min f_n$",
                why="the footnote is on interpolating or almost interpolating "
                "solutions, which separate all samples and have little decay",
            ),
        ),
    ),
    Claim(
        name="gradients-by-weights",
        place="Appendix B.1, below Eq 23",
        statement="$\\partial g/\\partial W_k = \\frac{\\rho}{\\rho_k}\\,\\partial "
        "f/\\partial V_k$; with $\\rho_k = 1$ for $k < L$ and $\\rho_L = \\rho$ that "
        "is $\\rho$ times the gradient below the last layer, and the gradient in it.",
        test=against(
            exact(measured("gradient_gap")),
            inside(
                largest(measured("gradient_as_is_gap")),
                above(0.1, source="ours", why="factors that are seen"),
            ),
        ),
        rival="gradients that norms leave as they are",
    ),
    Claim(
        name="norm-at-rest",
        place="Eqs 7, 9 and 31",
        statement="$\\rho$ rests at $\\sum y_n f_n/(\\lambda + \\sum f_n^2)$.",
        test=meets(
            "equilibrium", ("case",), ROUNDING, test=lambda row: row["case"] != "torch"
        ),
        rival="a rest that does not depend on decay",
    ),
    beyond(
        name="decay-of-a-library",
        place="Beside Eq 4",
        statement="On the mean of squares a library's decay $w$, which adds $w\\rho$ "
        "to the gradient, is $\\lambda = N w/2$ of the paper's sum.",
        test=meets("equilibrium", ("case",), ROUNDING, case="torch"),
        rival="$\\lambda = w$",
    ),
    Claim(
        name="layers-grow-alike",
        place="Lemma 3",
        statement="Without normalisation $\\partial\\rho_k^2/\\partial t$ is the same "
        "for all layers.",
        test=meets("square_rate", ("trial",), SUMS, relative=False),
        rival="layers that grow with their size or depth",
    ),
    Claim(
        name="norm-of-layers",
        place="Eq 28",
        statement="With $L$ layers of equal norm $\\dot\\rho = "
        "2L\\rho^{(2L-2)/L}[\\sum f_n y_n - \\rho\\sum f_n^2]$.",
        test=every(
            meets("layered_norm", ("layers",), LIMIT),
            meets("transient", ("layers", "start"), LIMIT),
        ),
        rival="the flow of one layer, Eq 5",
    ),
    Claim(
        name="small-starts-are-slow",
        place="Section 2.3.1 and appendix D",
        statement="The smaller $\\rho$ is at the start, the longer its growth takes, "
        "and the more so the more layers there are.",
        test=every(
            inside(least_rise("start", falling=True), above(0)),
            inside(_more_so, above(0)),
        ),
        rival="a time that does not hang on the start",
    ),
    beyond(
        name="descent-meets-the-flow",
        place="Beside Eqs 5 and 6",
        statement="Gradient descent of ReLU networks with retraction meets the flow in "
        "proportion to its step, until the flow slides along a kink.",
        test=every(
            inside(
                ratio_of_halving("flow_norm", ("trial",)),
                near(
                    2, 0.3, source="ours", why="first order, at steps that are finite"
                ),
            ),
            inside(
                ratio_of_halving("flow_weights", ("trial", "layer")),
                near(
                    2, 0.3, source="ours", why="first order, at steps that are finite"
                ),
            ),
        ),
        rival="a distance that stays as steps vanish",
    ),
    *ERRATA,
)
