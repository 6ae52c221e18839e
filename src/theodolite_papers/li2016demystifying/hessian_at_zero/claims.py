"""Claims of theorem 2 about the Hessian at zero."""

from theodolite.core import (
    ROUNDING,
    Claim,
    Region,
    Select,
    above,
    against,
    below,
    beyond,
    every,
    exact,
    highest,
    inside,
    largest,
    measured,
    meets,
    near,
    smallest,
    trend,
)

AMPLIFIED = below(
    1e-8, source="rounding", why="a quotient loses what its divisor has lost"
)
ABOVE_ROUNDING = above(ROUNDING.high, source="rounding", why=ROUNDING.why)
NEGATIVE = Region(high=0.0)


def curvature(quantity: str, data: str = "random") -> Select:
    """Select a quantity of 2-shortcut networks at zero weights, on one kind of data."""
    return measured(quantity, n=2, data=data)


WORDS = {
    "max_entry": "entry of the Hessian",
    "off_pattern": "entry where Eq 8 has zeros",
    "unit_spread": "difference of blocks between units",
    "entries": "distance of blocks from Eq 9",
    "spectrum": "distance of eigenvalues from singular values of $M$",
    "gradient_norm": "norm of the gradient",
    "block_spread": "difference of blocks along a diagonal",
    "transposed_above": "distance of blocks above from transposed ones below",
    "printed_diagonal": "distance of $B$ from its formula",
    "printed_lower": "distance of $A$ from its formula",
    "closed_form": "distance of blocks from the general formula",
    "lowest": "lowest eigenvalue",
    "coupling": "entry between layers of different units",
    "entries_rival": "distance of blocks from rivals of Eq 9",
    "spectrum_rival": "distance of eigenvalues from those of $M$",
    "condition": "condition number",
    "flat": "share of eigenvalues that are zero",
    "excess": "excess loss",
    "same_above": "distance of blocks above from those below",
    "lower_rival": "distance of $A$ from a formula without commutation",
    "largest": "largest eigenvalue",
}
CLAIMS = (
    Claim(
        name="hessian-vanishes",
        place="Theorem 2.1",
        statement="For $n \\geq 3$ the Hessian at zero is the zero matrix.",
        test=against(
            inside(
                largest(measured("max_entry", lambda row: row["n"] > 2)), near(0, 0)
            ),
            inside(smallest(curvature("max_entry")), ABOVE_ROUNDING),
        ),
        rival="some second derivative survives, as it does for $n=2$",
    ),
    Claim(
        name="two-shortcut-form",
        place="Theorem 2.2, Eq 8, Figure 11",
        statement="For $n=2$ the Hessian is block diagonal over units, each with "
        "blocks $A$ and $A^T$ off its diagonal, and $A$ is the same in all units.",
        test=every(
            exact(measured("off_pattern"), rival=measured("coupling")),
            exact(measured("unit_spread")),
        ),
        rival="units couple, as they do for $n=1$",
    ),
    Claim(
        name="two-shortcut-entries",
        place="Eqs 23–25",
        statement="$A = \\sigma_{mid}'(0)\\,\\sigma_{post}'(0)\\,(I \\otimes "
        "M)\\,P^T$ with $M = \\Sigma^{X\\sigma(X)} - \\Sigma^{Y\\sigma(X)}$ and $P$ "
        "the commutation matrix.",
        test=exact(measured("entries"), rival=measured("entries_rival")),
        rival="$M$ transposed, or $P$ left out",
    ),
    Claim(
        name="two-shortcut-spectrum",
        place="Theorem 2.2, Eqs 22 and 26",
        statement="The eigenvalues for $n=2$ are $\\pm$ the singular values of "
        "$\\sigma_{mid}'(0)\\,\\sigma_{post}'(0)\\,M$, each $dR$ times with each sign.",
        test=exact(measured("spectrum"), rival=measured("spectrum_rival")),
        rival="magnitudes of the eigenvalues of $M$ in place of its singular values",
    ),
    Claim(
        name="two-shortcut-condition",
        place="Theorem 2.2, Eq 9",
        statement="$\\mathrm{cond}(H) = \\sqrt{\\mathrm{cond}(M^T M)}$ for $n=2$, "
        "which does not see depth.",
        test=against(
            meets("condition", ("setting", "trial"), AMPLIFIED),
            trend(
                measured("largest", n=1, setting="linear"),
                over="units",
                slope_in=above(0),
                points=2,
            ),
        ),
        rival="growth with depth, as of the largest eigenvalue for $n=1$",
    ),
    Claim(
        name="strict-saddle",
        place="Theorem 2.2",
        statement="For $n=2$ zero is a strict saddle on data that are not degenerate: "
        "the gradient vanishes and some eigenvalue is negative.",
        test=every(
            inside(largest(curvature("gradient_norm")), ROUNDING),
            inside(highest(curvature("lowest")), NEGATIVE),
        ),
        rival="a minimum, or a saddle without negative curvature",
    ),
    beyond(
        name="degenerate-means-zero",
        place="Theorem 2.2, made precise",
        statement="The degenerate case is $M = 0$ alone. Where $M$ is singular zero "
        "is still a strict saddle, though Eq 9 is infinite; where $M = 0$ the Hessian "
        "vanishes, the identity is the best linear map, and zero is a global minimum "
        "of the linear network.",
        test=every(
            inside(highest(curvature("lowest", "singular")), NEGATIVE),
            inside(smallest(curvature("flat", "singular")), above(0)),
            inside(largest(curvature("max_entry", "zero")), ROUNDING),
            exact(curvature("excess", "zero"), rival=curvature("excess")),
        ),
        rival="singular $M$ without negative curvature, or a saddle where $M = 0$",
    ),
    Claim(
        name="one-shortcut-form",
        place="Theorem 2.3, Eq 10",
        statement="For $n=1$ the Hessian is block Toeplitz: $B$ on the diagonal, $A$ "
        "below it, $A^T$ above.",
        test=every(
            exact(measured("block_spread")),
            exact(measured("transposed_above"), rival=measured("same_above")),
        ),
        rival="$A$ above the diagonal, or blocks that change with distance",
    ),
    Claim(
        name="one-shortcut-entries",
        place="Eqs 27–32",
        statement="With $\\sigma_{pre}=\\sigma_{post}=id$, $B = \\Sigma^{XX} \\otimes "
        "I$ and $A = (I \\otimes M)\\,P^T + B$.",
        test=every(
            exact(measured("printed_diagonal", setting="linear")),
            exact(
                measured("printed_lower", setting="linear"),
                rival=measured("lower_rival", setting="linear"),
            ),
        ),
        rival="$A$ without the commutation matrix",
    ),
    beyond(
        name="one-shortcut-general",
        place="Theorem 2.3, beside Eqs 27–32",
        statement="For any activations, where the paper prints no blocks, $B = "
        "p_1^2\\,\\Sigma^{ss} \\otimes I + p_2\\,\\delta_{i_1 "
        "i_2}E[(x-y)_{i_1}s_{j_1}s_{j_2}]$ and $A = p_1^2\\,(\\Sigma^{ss} \\otimes I "
        "+ \\delta_{j_1 i_2}E[(x-y)_{i_1}\\sigma_{pre}'(x_{j_1})s_{j_2}])$ with "
        "$s=\\sigma_{pre}(x)$, $p_1=\\sigma_{post}'(0)$, $p_2=\\sigma_{post}''(0)$.",
        test=every(
            exact(
                measured("closed_form", setting="general"),
                rival=measured("printed_diagonal", setting="general"),
            ),
            inside(
                smallest(measured("printed_lower", setting="general")), ABOVE_ROUNDING
            ),
        ),
        rival="the blocks printed for identity activations",
    ),
)
