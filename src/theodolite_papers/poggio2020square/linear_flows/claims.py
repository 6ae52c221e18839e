"""Claims of the paper on linear classifiers, right, wrong and corrected."""

from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Number,
    above,
    below,
    beyond,
    erratum,
    every,
    highest,
    inside,
    largest,
    lowest,
    mean,
    measured,
    meets,
    near,
    smallest,
    span,
)

SUMS = below(1e-9, source="rounding", why="sums over samples, differentiated")
SAME = below(1e-5, source="ours", why="descent is this close to rest when it ends")
DIFFERENT = above(1e-3, source="ours", why="a hundred times what ends at rest differ")
LIMIT = below(
    2e-3,
    source="ours",
    why="what extrapolation from finite steps to none leaves at these steps",
)
NOTHING = near(0, 1e-6, source="rounding", why="descent that came to rest")
SPEED = ("trial", "loss", "start")
OPEN: dict[str, Any] = {"shape": "wide", "loss": "square", "decay": 0.0}
FIXED: dict[str, Any] = {"shape": "tall", "loss": "square", "decay": 0.0}


WORDS = {
    "printed_loss_rate": "rate of the loss by Eqs 32 and 33",
    "spread": "distance between ends from several starts",
    "expansion": "factor on the distance of two points in a step",
    "alpha": "contribution of a sample",
    "each_gap": "gap of the constraint of each sample",
    "sum_gap": "gap of the constraint's sum",
    "sample_residual": "residual of a sample",
    "rest_gap": "distance between the end and the point of rest",
    "norm_speed": "speed of the norm",
    "direction_speed": "speed of the direction",
    "loss_rate": "rate of the loss",
    "fixed_gap": "motion of a fixed point in a step",
    "end_norm": "norm at the end",
    "plain_norm": "norm that small starts reach",
    "least_norm": "the least norm",
    "plain_loss": "loss that small starts reach",
    "sample_step": "step on a single sample",
    "deep_norm_speed": "speed of a layer's norm",
    "deep_velocity": "velocity of a layer",
    "leaving": "tangent gradient where margins are equal",
}
CLAIMS = (
    erratum(
        name="speeds-of-a-linear-network",
        place="Eqs 32 and 33",
        statement="Eqs 32 and 33 are the gradient flow of both losses.",
        printed="$\\dot\\rho = \\frac{2}{\\rho}\\sum\\ell_n y_n v^T x_n - "
        "2\\lambda\\rho$, $\\dot v \\propto \\sum\\ell_n(x_n - vv^T x_n)$",
        corrected="square: $\\dot\\rho = -2\\sum\\ell_n v^T x_n - 2\\lambda\\rho$, "
        "$\\dot v = -2\\rho\\sum\\ell_n(x_n - vv^T x_n)$; exponential: $\\dot\\rho = "
        "\\sum\\ell_n y_n v^T x_n - 2\\lambda\\rho$, $\\dot v = \\rho\\sum\\ell_n "
        "y_n(x_n - vv^T x_n)$. As printed the objective rises at some points",
        test=every(
            inside(highest(measured("printed_loss_rate", loss=loss)), below(0))
            for loss in ("square", "exponential")
        ),
        corrected_test=every(
            meets("norm_speed", SPEED, SUMS, relative=False),
            meets("direction_speed", (*SPEED, "feature"), SUMS, relative=False),
            inside(highest(measured("loss_rate")), below(0)),
        ),
        rival="speeds that differ by a factor of proportion alone",
    ),
    Claim(
        name="independent-with-decay",
        place="Appendix E.2",
        statement="With normalisation and $\\lambda > 0$ the end does not depend on "
        "initial conditions, under either loss.",
        test=every(
            inside(largest(measured(name, loss=loss, decay=0.1)), SAME)
            for name in ("spread", "rest_gap")
            for loss in ("square", "exponential")
        ),
        rival="ends that remember their start",
        choices=(
            Choice(
                what="ends are compared as $w = \\rho v$",
                why="$(\\rho, v)$ and $(-\\rho, -v)$ are one classifier",
            ),
        ),
    ),
    Claim(
        name="dependent-without-decay",
        place="Section 2.3 and the end of appendix E.2",
        statement="For $\\lambda = 0$ and open weights the end depends on the start.",
        test=inside(mean(measured("spread", **OPEN)), DIFFERENT),
        rival="one end, as with decay",
        choices=(
            Choice(
                what="judged on the mean over datasets",
                why="the paper does not say that it is seen in each of them",
            ),
        ),
        asides=lambda both: {
            "least spread of a dataset": Number(
                smallest(measured("spread", **OPEN))(both).value, 1e-9
            )
        },
    ),
    beyond(
        name="data-can-decide",
        place="Beside appendix E.2",
        statement="Decay is not needed where data fix the weights ($N \\geq d$): for "
        "$\\lambda = 0$ all starts then end alike.",
        test=every(
            inside(largest(measured("spread", **FIXED)), SAME),
            inside(largest(measured("rest_gap", **FIXED)), SAME),
        ),
        rival="directions that stay where they start",
    ),
    Claim(
        name="small-weights-least-norm",
        place="Footnote 1",
        statement="Plain gradient descent of overparametrised linear systems from "
        "close to zero converges to the interpolation of least norm.",
        test=every(
            meets("plain_norm", ("trial",), SAME, formula="least_norm"),
            inside(largest(measured("plain_loss")), SAME),
        ),
        rival="the norms that normalised descent ends at",
    ),
    beyond(
        name="descent-meets-linear-flows",
        place="Beside appendix E.2",
        statement="Without decay descent is where the flow is at the same time from "
        "the same start, as its step vanishes.",
        test=meets("end_norm", ("trial", "start"), LIMIT),
        rival="ends that the length of the step decides",
    ),
    erratum(
        name="one-step-expands",
        place="Appendix E.2, below Eq 34",
        statement="The map $v(t+1) = T v(t)$ of Eq 34 is not expanding.",
        printed="'is not expanding (because $v$ has unit norm)'",
        corrected="it has two fixed points, expands about $-x$ by $1 + \\eta$ and "
        "contracts about $x$ by $1 - \\eta$. The end is unique since the objective in "
        "$w = \\rho v$ is strictly convex for $\\lambda > 0$",
        test=inside(highest(measured("expansion")), below(1 + 1e-9)),
        corrected_test=every(
            inside(largest(measured("fixed_gap")), SUMS),
            inside(lowest(measured("expansion", place="opposite")), above(1)),
            inside(highest(measured("expansion", place="target")), below(1)),
        ),
        rival="a map that contracts everywhere",
    ),
    erratum(
        name="contributions-are-positive",
        place="Eq 29 and appendix E.3",
        statement="For $\\lambda > 0$ every $\\alpha_n$ is positive, and none is zero.",
        printed="'reasonable to assume that $\\alpha_n > 0$'; '$\\alpha_n \\neq 0$'",
        corrected="residuals at rest may vanish or change sign: three inputs of one "
        "class at $\\pm 60$ and 0 degrees leave (0.5, 0.5, 0) at $\\lambda = 0.5$ and "
        "(0.375, 0.375, -0.25) at $\\lambda = 0.1$; the sum $v = \\sum\\alpha_n x_n$ "
        "holds",
        test=inside(lowest(measured("alpha")), above(1e-6)),
        corrected_test=every(
            inside(largest(measured("sum_gap")), NOTHING),
            meets("residual", ("decay", "sample"), NOTHING, relative=False),
            inside(smallest(measured("alpha", decay=0.5)), NOTHING),
        ),
        rival="residuals of one sign wherever data are separable",
    ),
    erratum(
        name="sum-is-not-each",
        place="Eqs 36 and 37",
        statement="At rest Eq 37 holds for each sample.",
        printed="$(\\rho f_n - y_n)\\,\\partial f_n/\\partial V_k = (\\rho f_n - y_n) "
        "V_k f_n$ for all $n$",
        corrected="it holds of the sum over samples, Eq 36",
        test=inside(largest(measured("each_gap")), NOTHING),
        corrected_test=inside(largest(measured("sum_gap")), NOTHING),
        rival="samples that are at rest one by one",
    ),
    Claim(
        name="rest-of-single-samples",
        place="Eq 39 and footnote 8",
        statement="SGD with batches of one sample rests where $(I - "
        "V_kV_k^T)\\,\\ell(x_n)\\,\\partial f(x_n)/\\partial V_k = 0$ for all $n$; at "
        "other critical points, where GD stops, it goes on.",
        test=every(
            inside(largest(measured("sample_residual", decay=0.0)), SAME),
            inside(largest(measured("sample_step", decay=0.0)), SAME),
            inside(smallest(measured("sample_residual", decay=0.1)), DIFFERENT),
            inside(smallest(measured("sample_step", decay=0.1)), DIFFERENT),
        ),
        rival="samples that leave the rest of all samples alone",
        choices=(
            Choice(
                what="linear classifiers: without decay where SGD ends, with decay "
                "where GD ends",
                why="data fit exactly without decay, and not with it",
            ),
        ),
    ),
    Claim(
        name="flow-of-the-exponential-loss",
        place="Eq 46",
        statement="$\\dot\\rho_k = \\frac{\\rho}{\\rho_k}\\sum e^{-\\rho y_n f_n} y_n "
        "f_n$ and $\\dot V_k = \\rho\\sum e^{-\\rho y_n f_n} y_n S_k\\,\\partial "
        "f_n/\\partial V_k$ for weight-normalised ReLU networks.",
        test=every(
            meets("deep_norm_speed", ("trial", "layer"), SUMS, relative=False),
            meets(
                "deep_velocity",
                ("trial", "layer"),
                below(1e-6, source="rounding", why="outputs differenced in doubles"),
                relative=False,
            ),
        ),
        rival="a factor of 2, or the norms of all layers",
    ),
    erratum(
        name="margins-become-equal",
        place="Eq 47",
        statement="Under the exponential loss an asymptotic equilibrium has one margin "
        "for all samples.",
        printed="'cannot be satisfied unless $f_1 = f_i$, for all $i$'",
        corrected="three inputs at $\\pm 60$ and 0 degrees have the equilibrium $v = "
        "(1, 0)$ at every $\\rho$, the flow goes there, and margins are (0.5, 0.5, 1), "
        "as of support vectors and another sample",
        test=inside(
            span(measured("margin").called("margins")),
            below(1e-2, source="ours", why="a hundredth of the largest is seen"),
        ),
        corrected_test=every(
            inside(
                largest(measured("leaving")),
                below(1e-10, source="rounding", why="terms that cancel"),
            ),
            meets(
                "margin",
                ("sample",),
                below(1e-2, source="ours", why="descent that ends after finite time"),
            ),
        ),
        rival="an equilibrium of equal margins further on",
    ),
)
