"""Section 2: smoothness, the Polyak–Łojasiewicz inequality, and gradients of models."""

from theodolite.core import (
    Claim,
    Kind,
    above,
    against,
    below,
    every,
    inside,
    measured,
    predicted,
)

from ..shared.signed_rows import most_over
from .claims_regions import (
    AT_LEAST_ONE,
    AT_MOST_ONE,
    WITHIN_ROUNDING,
    never_above,
    never_below,
)

CLAIMS = (
    Claim(
        name="quadratic-upper-bound",
        place="Definition 2.1, Eq 1",
        statement=(
            "A $\\beta$-smooth loss rises by at most $\\nabla\\ell^T\\Delta + "
            "\\frac{\\beta}{2}\\|\\Delta\\|^2$ over any step $\\Delta$."
        ),
        test=never_above(measured("descent_ratio")),
        rival="steps, short or long, that rise above the parabola",
    ),
    Claim(
        name="any-matrix-norm",
        place="Eq 2",
        kind=Kind.ERRATUM,
        statement=(
            "The supremum of $\\|D^2\\ell\\|$ is a Lipschitz constant of the gradient, "
            "whatever the matrix norm."
        ),
        printed="'where $\\|\\cdot\\|$ denotes any matrix norm'",
        corrected=(
            "the operator norm, or one that dominates it, over a convex set: the "
            "Hessian of ones in $n$ dimensions has largest entry 1 and stretches by $n$"
        ),
        test=never_above(measured("stretch_over_entry", matrix="ones")),
        corrected_test=never_above(measured("stretch_over_operator")),
        rival="norms that differ by constants which do not matter",
    ),
    Claim(
        name="pl-is-not-convex",
        place="After definition 2.2",
        statement="A function that is $\\mu$-PL need not be convex.",
        test=every(
            never_below(measured("wavy_ratio"), above(0)),
            never_above(measured("wavy_curvature"), below(0)),
        ),
        rival="an inequality that convex functions alone obey",
    ),
    Claim(
        name="linear-rate",
        place="Theorem 2.3, Eq 4",
        statement=(
            "With $\\eta < 2/\\beta$ every step multiplies the loss above its minimum "
            "by at most $1 - \\mu\\eta(1 - \\beta\\eta/2)$."
        ),
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
        statement=(
            "$\\|\\nabla\\ell\\|^2 \\geq \\mu\\,\\lambda(DF)\\,(\\ell - \\gamma^*)$, "
            "where $\\mu$ is the cost's own constant."
        ),
        test=never_below(measured("gradient_ratio"), AT_LEAST_ONE),
        rival="gradients that vanish while the kernel does not",
    ),
    Claim(
        name="vacuous-below-outputs",
        place="After theorem 2.4",
        statement="With fewer parameters than outputs $\\lambda(DF) = 0$ everywhere.",
        test=against(
            never_above(measured("overfull_over_rounding"), WITHIN_ROUNDING),
            never_below(measured("least_eigenvalue"), above(0)),
        ),
        rival="a kernel of full rank, as overparameterised networks have",
    ),
)
