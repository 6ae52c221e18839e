"""Section 4.1: which systems are smooth everywhere, and with which constant."""

from theodolite.core import (
    Choice,
    Claim,
    Kind,
    above,
    against,
    below,
    every,
    exact,
    inside,
    largest,
    largest_distance,
    mean,
    measured,
    near,
    our_margin,
    predicted,
    trend,
)

from ..shared.signed_rows import most_over
from .claims_regions import ROUNDED, SAME, never_above

FLAT = our_margin(
    0.1, "an exponent that tells bounded from the root of one over the rest"
)
GROWS = trend(
    measured("plain_norm"),
    over="scale",
    slope_in=above(0),
    name="exponent of Hessian norms in the size of plain weights",
)
EXPONENT = measured("norm_exponent").called("exponent of the Jacobian's norm")
CLAIMS = (
    Claim(
        name="chain-rule",
        place="Definition 4.1, proposition 4.2, Eqs 8 to 11",
        statement=(
            "DF is $\\prod_{j>l} Jf_j \\cdot Df_l$, layer by layer: assembled from the "
            "layers' formulas it is autodiff's."
        ),
        test=exact(measured("assembled_gap"), within=SAME),
        rival="a factor left out, or in another order",
    ),
    Claim(
        name="bounded-and-lipschitz",
        place="Proposition 4.3, Eq 24",
        statement=(
            "If every layer and its derivatives are bounded and Lipschitz, so is DF; "
            "with the constants that the layers' give, no sampled one passes them."
        ),
        test=every(
            never_above(measured("derivative_ratio")),
            never_above(measured("derivative_constant_ratio")),
        ),
        rival="constants that are found too small",
    ),
    Claim(
        name="costs-qualify",
        place="Corollary 4.4 and below",
        statement=(
            "Square error and cross-entropy have bounded and Lipschitz gradients on "
            "their sublevel sets."
        ),
        test=every(
            never_above(measured("cost_gradient_ratio")),
            never_above(measured("cost_constant_ratio")),
        ),
        rival="gradients that grow without bound on a sublevel set",
    ),
    Claim(
        name="normalised-is-smooth-everywhere",
        place="Theorem 4.5, corollary 4.4",
        statement=(
            "Networks of smooth nonlinearities, weight- or entry-normalised layers and "
            "residual blocks of them have globally Lipschitz gradients: no Hessian at "
            "any size of the weights passes $\\beta$."
        ),
        test=against(never_above(measured("hessian_ratio")), GROWS),
        rival="Hessians that grow with the weights, as of plain layers",
    ),
    Claim(
        name="plain-weights-are-not",
        place="Section 4.1, after theorem 4.5",
        statement=(
            "Plain affine layers are smooth over bounded sets only: Hessians grow with "
            "the weights."
        ),
        test=GROWS,
        rival="Hessians that level off",
    ),
    Claim(
        name="continuous-slopes",
        place="Theorem 4.5, item 1, and its proof",
        kind=Kind.ERRATUM,
        statement=(
            "Continuously differentiable nonlinearities have Lipschitz Jacobians on "
            "bounded sets."
        ),
        printed="'Continuously differentiable nonlinearities'",
        corrected=(
            "nonlinearities whose slope is Lipschitz: that of "
            "$\\mathrm{sgn}(z)|z|^{3/2}$ is continuous, and changes by "
            "$\\frac32 |h|^{-1/2}$ times $h$ near zero"
        ),
        test=inside(largest(measured("quotient_exponent")), FLAT),
        corrected_test=inside(
            most_over(
                predicted("slope_constant"),
                measured("steepest"),
                ("activation",),
                ratio=True,
            ),
            below(1 + 1e-6, source="rounding", why="differences of slopes"),
        ),
        rival="quotients that stay bounded as points come close",
    ),
    Claim(
        name="continuous-costs",
        place="Theorem 5.1, hypothesis on the cost",
        kind=Kind.ERRATUM,
        statement=(
            "For any continuously differentiable, convex cost some fixed step of "
            "gradient descent comes to the minimum."
        ),
        printed="'c any continuously differentiable, convex cost function'",
        corrected=(
            "with a Lipschitz gradient on sublevel sets, as corollary 4.4 asks: on "
            "$|z|^{3/2}$ every fixed step ends between $\\pm(\\frac34\\eta)^2$"
        ),
        test=inside(
            largest(measured("amplitude")),
            near(0, 1e-9, source="rounding", why=ROUNDED),
        ),
        corrected_test=inside(
            largest_distance(predicted("cycle"), measured("amplitude"), ("rate",)),
            below(1e-6, source="rounding", why="thousands of steps"),
        ),
        rival="oscillations that die out",
        choices=(
            Choice(
                what="steps of 0.1, 0.03 and 0.01, from 1",
                why="the cycle attracts from everywhere, and scales with the step",
            ),
        ),
    ),
    Claim(
        name="covariance-bounded-below",
        place="After theorem 4.5, and its proof",
        kind=Kind.ERRATUM,
        statement=(
            "Batch norm behind an affine layer has a bounded Jacobian over data of "
            "nondegenerate covariance."
        ),
        printed="'matrices with nondegenerate covariance'",
        corrected=(
            "covariances whose least eigenvalue is at least some $s > 0$, the same for "
            "all: $\\|J\\| \\leq s^{-1/2}$, and reaches it. At $N \\leq d_0$, as in "
            "theorem 4.7, there is no such $s$"
        ),
        test=inside(largest(EXPONENT), FLAT),
        corrected_test=every(
            never_above(measured("norm_jacobian_root")),
            inside(
                largest(EXPONENT),
                near(0.5, 1e-6, source="rounding", why="eps against large weights"),
            ),
        ),
        rival="a bound that all nondegenerate data share",
    ),
    Claim(
        name="first-norm-needs-no-covariance",
        place="Beside theorem 4.5",
        kind=Kind.BEYOND,
        statement=(
            "For a first layer, whose data does not move, no covariance is asked for: "
            "plain weights of any size in front of a batch norm with $\\epsilon > 0$ "
            "leave the loss globally smooth, also at $N \\leq d_0$."
        ),
        test=never_above(measured("behind_norm_ratio")),
        rival="Hessians that grow with those weights",
    ),
    Claim(
        name="constants-are-worst-case",
        place="Section 5, the end",
        statement=(
            "The bounds are worst-case and lead to rates much smaller than those used "
            "in practice: with a few blocks $\\beta$ is far above the Hessians met."
        ),
        test=inside(
            mean(measured("looseness", lambda row: row["layers"] >= 3), log=True),
            above(1, source="ours", why="'much smaller' as a factor of ten or more"),
        ),
        rival="bounds within a small factor of what is met",
    ),
    Claim(
        name="looseness-grows-with-depth",
        place="Beside section 5",
        kind=Kind.BEYOND,
        statement="The factor between $\\beta$ and Hessians grows with the blocks.",
        test=trend(
            measured("looseness"),
            over="layers",
            slope_in=above(0),
            log_x=False,
            name="decades of looseness a block",
        ),
        rival="a factor that depth does not change",
    ),
)
