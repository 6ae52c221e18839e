"""Section 4.2: the tangent kernel's bound, and networks where it is positive."""

from theodolite.core import (
    Claim,
    above,
    against,
    below,
    every,
    measured,
    trend,
)

from .claims_regions import WITHIN_ROUNDING, never_above, never_below

CLAIMS = (
    Claim(
        name="sum-over-layers",
        place="Proposition 4.6, Eq 12",
        statement=(
            "$\\sum_l \\lambda(Df_l)\\prod_{j>l}\\lambda(Jf_j)$ is a lower bound of "
            "$\\lambda(DF)$."
        ),
        test=never_above(measured("kernel_ratio")),
        rival="a sum that passes the kernel's least eigenvalue",
    ),
    Claim(
        name="positive-at-all-weights",
        place="Theorem 4.7",
        statement=(
            "Residual networks whose branches' Jacobians have norm below one, on "
            "independent data behind an affine layer of full rank, have "
            "$\\lambda(DF) > 0$ at all parameters."
        ),
        test=against(
            every(
                never_below(measured("conditions_met"), above(0.5)),
                never_below(measured("first_term"), above(0)),
                never_below(measured("least_eigenvalue"), above(0)),
            ),
            never_above(measured("dependent_over_rounding"), WITHIN_ROUNDING),
        ),
        rival="a kernel that is singular, as with two equal samples",
    ),
    Claim(
        name="not-uniformly",
        place="Theorem 4.7",
        statement=(
            "$\\lambda(DF)$ is not uniformly positive: it goes to zero as weights grow."
        ),
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
