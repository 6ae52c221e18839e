"""Claims of sections 2 and 4, and where they are wrong."""

from theodolite.core import (
    Choice,
    Claim,
    Grade,
    Test,
    above,
    against,
    below,
    beyond,
    erratum,
    every,
    inside,
    largest,
    mean,
    measured,
    meets,
    near,
    our_margin,
    predicted,
    trend,
)

from ..shared.reads import AT_MOST_ONE, ROUNDED, most_over, never_above, never_below
from .claims_layers import LAYER_CLAIMS, same

AT_LEAST_ONE = above(1 - 1e-7, source="rounding", why=ROUNDED)
WITHIN_ROUNDING = below(1, source="rounding", why="in units of the kernel's rounding")
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
HIGHEST = "Hessian norm over $\\beta$"


def climbed(quantity: str, called: str) -> Test:
    """Judge whether ascent on the ratio to a bound stays at or below one.

    Random points do not come near a bound, and would not tell a wrong one.
    """
    return never_above(quantity, found="ascent", called=called)


WORDS = {
    "stretch_over_entry": "stretch over the largest entry",
    "stretch_over_operator": "stretch over the operator norm",
    "wavy_ratio": "least squared gradient over the loss",
    "wavy_curvature": "least curvature of a PL function",
    "gradient_ratio": "squared gradient over its bound",
    "overfull_over_rounding": "least eigenvalue over its rounding",
    "assembled_gap": "distance of the assembled $DF$ from autodiff's",
    "derivative_ratio": "derivative over its bound",
    "cost_gradient_ratio": "gradient of the cost over its bound",
    "quotient_exponent": "exponent of the slopes' quotient",
    "amplitude": "amplitude of the oscillation",
    "kernel_ratio": "sum over layers over the least eigenvalue",
    "conditions_met": "conditions of the theorem that are met",
    "product_bound_ratio": "product over its bound",
    "skip_slack": "least singular value less its bound",
    "tall_slack": "least singular value less its printed bound",
    "affine_slack": "least singular value less its bound",
    "rate": "greatest factor on the loss in a step",
    "rate_bound": "its bound",
    "affine_gap": "distance of derivatives of affine layers from autodiff's",
    "affine_gap_by_columns": "distance with weights listed by columns",
    "matrix_rows": "error in the rows of $DP$",
    "matrix_rows_printed": "error in the printed rows of $DP$",
    "product_constant_ratio": "Lipschitz ratio of the product over its constant",
    "derivative_constant_ratio": "Lipschitz ratio of the derivative over its constant",
    "norm_split_gap": "distance of batch norm from centring and scaling",
    "norm_first_gap": "distance of the first derivative from autodiff's",
    "norm_second_gap": "distance of the second derivative from autodiff's",
    "norm_whole_gap": "distance of the derivative of batch norm from autodiff's",
    "norm_without_mean": "distance without the derivative of the mean",
    "weight_first_gap": (
        "distance of the first derivative of weight norm from autodiff's"
    ),
    "weight_second_gap": (
        "distance of the second derivative of weight norm from autodiff's"
    ),
    "entry_first_gap": "distance of the first derivative by entries from autodiff's",
    "entry_second_gap": "distance of the second derivative by entries from autodiff's",
    "entry_printed_exponent": "distance of the printed exponent from autodiff",
    "entry_printed_deltas": "distance of the printed deltas from autodiff",
    "term_before_norm": "term of a layer before batch norm",
    "term_without_norm": "term of that layer without batch norm",
    "dependent_over_rounding": "least eigenvalue for equal data over its rounding",
    "norm_jacobian_root": "norm of the Jacobian times the root of the variance",
    "first_term": "term of the first layer",
}
BACKGROUND = (
    Claim(
        name="quadratic-upper-bound",
        place="Definition 2.1, Eq 1",
        statement="A $\\beta$-smooth loss rises by at most $\\nabla\\ell^T\\Delta + "
        "\\frac{\\beta}{2}\\|\\Delta\\|^2$ over any step $\\Delta$.",
        test=climbed("descent_ratio", "rise over the parabola's"),
        rival="steps that rise above the parabola",
    ),
    erratum(
        name="any-matrix-norm",
        grade=Grade.LOOSE,
        place="Eq 2",
        statement="The supremum of $\\|D^2\\ell\\|$ is a Lipschitz constant of the "
        "gradient, whatever the matrix norm.",
        printed="'where $\\|\\cdot\\|$ denotes any matrix norm'",
        corrected="over a convex set any norm that dominates the operator norm of "
        "symmetric matrices, as those do that are submultiplicative, of which lemma "
        "B.1 speaks; the largest entry does not: the Hessian of ones in $n$ "
        "dimensions has largest entry 1 and stretches by $n$",
        test=never_above("stretch_over_entry", matrix="ones"),
        corrected_test=never_above("stretch_over_operator"),
        rival="norms that differ by constants which do not matter",
    ),
    Claim(
        name="pl-is-not-convex",
        place="After definition 2.2",
        statement="A function that is $\\mu$-PL need not be convex.",
        test=every(
            never_below("wavy_ratio", region=above(0)),
            never_above("wavy_curvature", region=below(0)),
        ),
        rival="an inequality that convex functions alone obey",
    ),
    Claim(
        name="linear-rate",
        place="Theorem 2.3, Eq 4",
        statement="With $\\eta < 2/\\beta$ every step multiplies the loss above its "
        "minimum by at most $1 - \\mu\\eta(1 - \\beta\\eta/2)$.",
        test=inside(
            most_over(
                predicted("rate_bound"), measured("rate"), ("trial",), ratio=True
            ),
            AT_MOST_ONE,
        ),
        rival="a factor with another step in it",
    ),
    Claim(
        name="gradient-by-kernel",
        place="Theorem 2.4, Eq 7",
        statement="$\\|\\nabla\\ell\\|^2 \\geq \\mu\\,\\lambda(DF)\\,(\\ell - "
        "\\gamma^*)$, where $\\mu$ is the cost's own constant.",
        test=never_below("gradient_ratio", region=AT_LEAST_ONE),
        rival="gradients that vanish while the kernel does not",
    ),
    Claim(
        name="vacuous-below-outputs",
        place="After theorem 2.4",
        statement="With fewer parameters than outputs $\\lambda(DF) = 0$ everywhere.",
        test=against(
            never_above("overfull_over_rounding", region=WITHIN_ROUNDING),
            never_below("least_eigenvalue", region=above(0)),
        ),
        rival="a kernel of full rank, as overparameterised networks have",
    ),
)
SMOOTHNESS = (
    Claim(
        name="chain-rule",
        place="Definition 4.1, proposition 4.2, Eqs 8 to 11",
        statement="DF is $\\prod_{j>l} Jf_j \\cdot Df_l$, layer by layer: assembled "
        "from the layers' formulas it is autodiff's.",
        test=same("assembled_gap"),
        rival="a factor left out, or in another order",
    ),
    Claim(
        name="bounded-and-lipschitz",
        place="Proposition 4.3, Eq 24",
        statement="If every layer and its derivatives are bounded and Lipschitz, so "
        "is DF; with the constants that the layers' give, no sampled one passes them.",
        test=never_above("derivative_ratio", "derivative_constant_ratio"),
        rival="constants that are found too small",
    ),
    Claim(
        name="costs-qualify",
        place="Corollary 4.4 and below",
        statement="Square error and cross-entropy have bounded and Lipschitz "
        "gradients on their sublevel sets.",
        test=never_above("cost_gradient_ratio", "cost_constant_ratio"),
        rival="gradients that grow without bound on a sublevel set",
    ),
    Claim(
        name="normalised-is-smooth-everywhere",
        place="Theorem 4.5, corollary 4.4",
        statement="Networks of smooth nonlinearities, weight- or entry-normalised "
        "layers and residual blocks of them have globally Lipschitz gradients: no "
        "Hessian at any size of the weights passes $\\beta$.",
        test=against(climbed("hessian_ratio", HIGHEST), GROWS),
        rival="Hessians that grow with the weights, as of plain layers",
    ),
    Claim(
        name="plain-weights-are-not",
        place="Section 4.1, after theorem 4.5",
        statement="Plain affine layers are smooth over bounded sets only: Hessians "
        "grow with the weights.",
        test=GROWS,
        rival="Hessians that level off",
    ),
    erratum(
        name="continuous-slopes",
        place="Theorem 4.5, item 1, and its proof",
        statement="Continuously differentiable nonlinearities have Lipschitz "
        "Jacobians on bounded sets.",
        printed="'Continuously differentiable nonlinearities'",
        corrected="nonlinearities whose slope is Lipschitz: that of "
        "$\\mathrm{sgn}(z)|z|^{3/2}$ is continuous, and changes by $\\frac32 "
        "|h|^{-1/2}$ times $h$ near zero",
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
    erratum(
        name="continuous-costs",
        place="Theorem 5.1, hypothesis on the cost",
        statement="For any continuously differentiable, convex cost some fixed step "
        "of gradient descent comes to the minimum.",
        printed="'c any continuously differentiable, convex cost function'",
        corrected="with a Lipschitz gradient on sublevel sets, as corollary 4.4 asks: "
        "on $|z|^{3/2}$ every fixed step ends between $\\pm(\\frac34\\eta)^2$",
        test=inside(
            largest(measured("amplitude")),
            near(0, 1e-9, source="rounding", why=ROUNDED),
        ),
        corrected_test=meets(
            "amplitude",
            ("rate",),
            below(1e-6, source="rounding", why="thousands of steps"),
            formula="cycle",
        ),
        rival="oscillations that die out",
        choices=(
            Choice(
                what="steps of 0.1, 0.03 and 0.01, from 1",
                why="the cycle attracts from everywhere, and scales with the step",
            ),
        ),
    ),
    erratum(
        name="covariance-bounded-below",
        place="After theorem 4.5, and its proof",
        statement="Batch norm behind an affine layer has a bounded Jacobian over data "
        "of nondegenerate covariance.",
        printed="'matrices with nondegenerate covariance'",
        corrected="covariances whose least eigenvalue is at least some $s > 0$, the "
        "same for all: $\\|J\\| \\leq s^{-1/2}$, and reaches it. At $N \\leq d_0$, as "
        "in theorem 4.7, there is no such $s$",
        test=inside(largest(EXPONENT), FLAT),
        corrected_test=every(
            never_above("norm_jacobian_root"),
            inside(
                largest(EXPONENT),
                near(0.5, 1e-6, source="rounding", why="eps against large weights"),
            ),
        ),
        rival="a bound that all nondegenerate data share",
    ),
    beyond(
        name="first-norm-needs-no-covariance",
        place="Beside theorem 4.5",
        statement="For a first layer, whose data does not move, no covariance is "
        "asked for: plain weights of any size in front of a batch norm with "
        "$\\epsilon > 0$ leave the loss globally smooth, also at $N \\leq d_0$.",
        test=climbed("behind_norm_ratio", HIGHEST),
        rival="Hessians that grow with those weights",
    ),
    Claim(
        name="constants-are-worst-case",
        place="Section 5, the end",
        statement="The bounds are worst-case and lead to rates much smaller than "
        "those used in practice: with a few blocks $\\beta$ is far above the Hessians "
        "met.",
        test=inside(
            mean(measured("looseness", lambda row: row["layers"] >= 3), log=True),
            above(1, source="ours", why="'much smaller' as a factor of ten or more"),
        ),
        rival="bounds within a small factor of what is met",
    ),
    beyond(
        name="looseness-grows-with-depth",
        place="Beside section 5",
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
REGULARITY = (
    Claim(
        name="sum-over-layers",
        place="Proposition 4.6, Eq 12",
        statement="$\\sum_l \\lambda(Df_l)\\prod_{j>l}\\lambda(Jf_j)$ is a lower "
        "bound of $\\lambda(DF)$.",
        test=never_above("kernel_ratio"),
        rival="a sum that passes the kernel's least eigenvalue",
    ),
    Claim(
        name="positive-at-all-weights",
        place="Theorem 4.7",
        statement="Residual networks whose branches' Jacobians have norm below one, "
        "on independent data behind an affine layer of full rank, have $\\lambda(DF) "
        "> 0$ at all parameters.",
        test=against(
            every(
                never_below("conditions_met", region=above(0.5)),
                never_below("first_term", region=above(0)),
                never_below("least_eigenvalue", region=above(0)),
            ),
            never_above("dependent_over_rounding", region=WITHIN_ROUNDING),
        ),
        rival="a kernel that is singular, as with two equal samples",
    ),
    Claim(
        name="not-uniformly",
        place="Theorem 4.7",
        statement="$\\lambda(DF)$ is not uniformly positive: it goes to zero as "
        "weights grow.",
        test=every(
            trend(
                measured("first_term"),
                over="scale",
                slope_in=below(0),
                name="exponent of the first layer's term in the size of the weights",
            ),
            trend(
                measured("least_eigenvalue"),
                over="scale",
                slope_in=below(0),
                name="exponent of $\\lambda(DF)$ in the size of the weights",
            ),
        ),
        rival="a floor that all weights keep",
    ),
)
CLAIMS = (*BACKGROUND, *LAYER_CLAIMS, *SMOOTHNESS, *REGULARITY)
