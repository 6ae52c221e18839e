"""Claims on the proof of theorem 5.1, line by line: as printed and corrected."""

from theodolite.core import (
    Grade,
    Row,
    Test,
    above,
    below,
    erratum,
    every,
    inside,
    largest,
    largest_distance,
    lowest,
    measured,
    meets,
    our_margin,
    predicted,
    trend,
)

from ..shared.reads import most_over, never_above, never_below

ROUNDED = below(1e-9, source="rounding", why="a few products in double precision")
GROWN = below(
    0.02,
    source="ours",
    why="a bounded distance from what grows for ever leaves no ratio but 1",
)
ARRIVED = below(
    0.01, source="ours", why="losses this near to the infimum would pass for arriving"
)
LAW = our_margin(0.3, "laws of late steps, read after finitely many", centre=1.0)


def late(row: Row) -> bool:
    """Return whether a step is late enough for laws of growth to hold."""
    return row["step"] >= 100


def _within(bound: str, quantity: str, by: tuple[str, ...], name: str) -> Test:
    """Judge whether measured rows keep their predicted bounds, up to rounding."""
    over = most_over(predicted(bound), measured(quantity), by, name=name)
    return inside(over, ROUNDED)


KERNEL = measured(
    "kernel", late, gate="tanh", cost="logistic", layers=2, multiple=8.0
).called("least eigenvalue of the kernel")

PROOF_CLAIMS = (
    erratum(
        name="gain-upside-down",
        place="Below theorem 5.1, and Eq 37",
        statement="A step leaves at most $1 - \\mu\\alpha$ of the loss, with $\\alpha "
        "= \\eta(1 - 2\\beta^{-1}\\eta)$.",
        printed="$\\alpha = \\eta(1 - 2\\beta^{-1}\\eta) > 0$",
        corrected="$\\alpha = \\eta(1 - \\beta\\eta/2)$. For $\\ell = (\\theta_1^2 + "
        "4\\theta_2^2)/2$ and $\\eta = 0.45$ a step may leave 0.64; printed is "
        "0.3025, right is 0.91. For $\\beta = 0.5$, $\\eta = 1$ the printed $\\alpha$ "
        "is $-3$",
        test=_within(
            "printed_factor",
            "factor",
            ("case",),
            "what a step leaves, less its printed bound",
        ),
        corrected_test=_within(
            "factor", "factor", ("case",), "what a step leaves, less its bound"
        ),
        rival="a bound that no quadratic loss breaks",
    ),
    erratum(
        name="one-factor-too-many",
        grade=Grade.LOOSE,
        place="Below theorem 5.1, and Eq 37",
        statement="After $t$ steps at most $\\prod_{i=0}^{t}(1 - \\mu_i\\alpha)$ of "
        "the loss is left.",
        printed="$\\prod_{i=0}^{t}$",
        corrected="$\\prod_{i=0}^{t-1}$, with equality at every step of a parabola; "
        "as printed the bound fails before the first step, while its limit is the same",
        test=_within(
            "printed_left",
            "left",
            ("step",),
            "what steps leave, less the printed bound",
        ),
        corrected_test=inside(
            largest_distance(
                predicted("left"),
                measured("left"),
                ("step",),
                relative=False,
                name="largest distance of what steps leave from the bound",
            ),
            ROUNDED,
        ),
        rival="a product that is merely not tight",
    ),
    erratum(
        name="growth-lacks-the-step",
        grade=Grade.LOOSE,
        place="Below Eq 42",
        statement="Euler's iterates with step $\\eta$ stay at a bounded distance from "
        "$(4C\\epsilon t + 1)^{1/4}$ at every integer $t$.",
        printed="$|r_t - r(t)| < B$ with $r(t) = (4C\\epsilon t + 1)^{1/4}$",
        corrected="from $r(\\eta t) = (4\\eta C\\epsilon t + 1)^{1/4}$; over the "
        "printed one the ratio tends to $\\eta^{1/4}$. For $\\eta \\leq 1$ the "
        "printed one is still an upper bound",
        test=meets(
            "growth", ("rate", "step"), GROWN, formula="printed_growth", test=late
        ),
        corrected_test=meets("growth", ("rate", "step"), GROWN, test=late),
        rival="a distance that stays bounded at every step length",
    ),
    erratum(
        name="regularity-goes-with-the-square",
        place="Eqs 37, 44 and 45",
        statement="$\\mu_t$ goes with $\\sigma(D\\mathrm{en}(w_t))$, vanishes no "
        "faster than $t^{-3/4}$, and the product in Eq 37 tends to zero.",
        printed="$\\mu_t \\geq \\Gamma t^{-3/4}$, whose sum diverges",
        corrected="theorem 2.4 has $\\lambda = \\sigma^2$, so that in the worst case "
        "$\\mu_t \\sim t^{-3/2}$, whose sum converges: $\\prod(1 - t^{-3/2}/2) = "
        "0.2174$. For every bounded monotone parameterisation $\\int P'(w)^2 dt$ is "
        "how far $P$ moves, over the force, and finite",
        test=trend(
            KERNEL,
            over="step",
            slope_in=above(-0.75),
            points=2,
            name="exponent of the kernel's least eigenvalue in time",
        ),
        corrected_test=every(
            trend(
                KERNEL,
                over="step",
                slope_in=our_margin(
                    0.25,
                    "a third of the way to the printed one; steps are finite",
                    centre=-1.5,
                ),
                points=2,
                name="exponent of the kernel's least eigenvalue in time",
            ),
            inside(
                lowest(predicted("product", of="square")),
                above(0.2, source="ours", why="0.2174 after a million steps"),
            ),
            inside(
                lowest(predicted("product", of="printed")),
                below(1e-20, source="ours", why="what the printed power would leave"),
            ),
        ),
        rival="weights that never go far enough for the kernel to vanish",
    ),
    erratum(
        name="weights-cannot-be-turned",
        place="Above Eq 39",
        statement="By an orthogonal transformation of the first layer's weights one "
        "may assume that they move along a coordinate axis.",
        printed="'By applying an orthogonal-affine transformation … without loss of "
        "generality'",
        corrected="$\\mathrm{en}(Rw) \\neq R\\,\\mathrm{en}(w)$. What the argument "
        "needs holds entry by entry: none outgrows $r_t$",
        test=inside(largest(measured("turning_gap")), ROUNDED),
        corrected_test=never_above(
            "weight_over_growth", region=below(1), called="weight over $r_t$"
        ),
        rival="a normalisation that commutes with rotations",
    ),
    erratum(
        name="square-cost-is-not-uniform",
        place="Idea of the proof of theorem 5.1",
        statement="For the square cost $\\mu_t$ has a positive lower bound, so that "
        "descent converges.",
        printed="'$\\mu_t$ can be uniformly lower bounded (e.g. for the square cost)'",
        corrected="not even for a target that can be reached: with branches at rest "
        "$w \\to \\infty$, $\\mu_t \\to 0$ and the loss tends to $(1 - y)^2$. It "
        "holds while first-layer weights stay bounded",
        test=inside(
            largest(
                measured("stalled_excess", cost="square").called("loss at the end")
            ),
            ARRIVED,
        ),
        corrected_test=every(
            never_above("over_law", cost="square", multiple=8.0, region=LAW),
            never_below("over_law", cost="square", multiple=8.0, region=LAW),
            never_below(
                "fall_over_kernel", region=above(1), called="fall over its bound"
            ),
        ),
        rival="slow descent that would arrive later",
    ),
)
