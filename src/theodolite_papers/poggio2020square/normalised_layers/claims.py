"""Claims of the paper on weight and batch normalisation, and corrections."""

from theodolite.core import (
    Claim,
    Grade,
    Test,
    above,
    below,
    beyond,
    erratum,
    every,
    exact,
    highest,
    inside,
    largest,
    largest_distance,
    lowest,
    measured,
    predicted,
    smallest,
)

SUMS = below(1e-9, source="rounding", why="sums over samples, differentiated")
SEEN = above(1e-3, source="ours", why="far beyond the rounding of any of the numbers")
ENTRY = ("row", "column")


def _meets(quantity: str, by: tuple[str, ...], formula: str = "") -> Test:
    gap = largest_distance(
        predicted(formula or quantity), measured(quantity), by, relative=False
    )
    return inside(gap, SUMS)


WORDS = {
    "vector_growth": "growth of the length of $v$",
    "plain_gap": "distance from the plain dynamics",
    "unprojected_gap": "distance of $\\dot V$ from $\\dot W/\\rho$",
    "projected_gap": "distance of $\\dot V$ from $S\\dot W/\\rho$",
    "invariant_gap": "distance where the loss ignores the norm",
    "product_gap": "distance of the Jacobian from the entrywise product",
    "blocks_gap": "distance of the Jacobian from one block a unit",
    "projector_gap": "distance of $I - \\hat X\\hat X^T$ from a projection",
    "activation_change": "change of outputs as a row is scaled",
    "row_pull": "cosine of a row with its gradient",
    "frobenius_over_rows": "Frobenius norm over the number of rows",
    "stretch": "norm of the output of a unit kernel",
    "gain_speed": "speed of the gain",
    "vector_speed": "speed of $v$",
    "tangent_speed": "that of the tangent gradient",
    "jacobian": "entry of the Jacobian",
    "printed_jacobian": "the printed one",
    "projector_over_n_gap": "distance of $I - \\hat X\\hat X^T/n$ from a projection",
    "activation_norm_gap": (
        "distance of activation norms from the root of the batch's size"
    ),
    "frobenius_over_root": "Frobenius norm over the root of the number of rows",
    "stretch_over_bound": "stretch of a convolution over its bound",
}
CLAIMS = (
    Claim(
        name="speeds-under-weight-norm",
        place="Eqs 12 and 13",
        statement="$\\dot g = v^T\\dot w/\\|v\\|$ and $\\dot v = \\frac{g}{\\|v\\|} "
        "S\\dot w$ under weight normalisation.",
        test=every(
            _meets("gain_speed", ("trial", "length")),
            _meets("vector_speed", ("trial", "length")),
        ),
        rival="speeds without the length of $v$",
    ),
    Claim(
        name="tangent-gradient-alike",
        place="Eqs 14 and 15",
        statement="With $\\|v\\| = 1$ these are $v^T\\dot w$ and $S\\rho\\,\\dot w$.",
        test=inside(
            largest_distance(
                predicted("tangent_speed"),
                measured("vector_speed", length=1.0),
                ("trial",),
                relative=False,
            ),
            SUMS,
        ),
        rival="two dynamics that differ on the sphere too",
    ),
    Claim(
        name="length-is-kept",
        place="Appendix A.1",
        statement="$v^T\\dot v = 0$, so that $\\|v\\|$ is constant in time.",
        test=exact(measured("vector_growth"), within=SUMS),
        rival="a length that drifts",
    ),
    Claim(
        name="not-the-plain-dynamics",
        place="Appendix A.1, the end",
        statement="The dynamics is not equivalent to the standard one on $w$.",
        test=inside(smallest(measured("plain_gap")), SEEN),
        rival="a change of variables alone",
    ),
    erratum(
        name="projection-left-out",
        place="Section 2.3 and appendix B.1",
        statement="If $W_k = \\rho_k V_k$ then $\\dot V_k = \\dot W_k/\\rho_k$.",
        printed="$\\dot V_k = \\frac{1}{\\rho_k}\\dot W_k$",
        corrected="$\\dot V_k = \\frac{1}{\\rho_k} S\\dot W_k$; the same where the "
        "loss does not depend on $\\rho_k$, as before a batch norm",
        test=inside(largest(measured("unprojected_gap")), SUMS),
        corrected_test=every(
            inside(largest(measured("projected_gap")), SUMS),
            inside(largest(measured("invariant_gap")), SUMS),
        ),
        rival="weights without a radial gradient",
        grade=Grade.LOOSE,
    ),
    erratum(
        name="mean-neglected",
        place="Appendix A.2, below Eq 16",
        statement="The Jacobian of batch normalisation has two terms.",
        printed="$(\\sigma_B^2 + \\epsilon)^{-1/2}[I - \\frac{1}{N}\\hat X\\hat X^T]$",
        corrected="$(\\sigma_B^2 + \\epsilon)^{-1/2}[I - \\frac{1}{N}11^T - "
        "\\frac{1}{N}\\hat X\\hat X^T]$, since the mean moves too",
        test=_meets("jacobian", ENTRY, "printed_jacobian"),
        corrected_test=_meets("jacobian", ENTRY),
        rival="a mean whose derivative cancels",
        grade=Grade.LOOSE,
    ),
    erratum(
        name="one-block-for-each-unit",
        place="Appendix A.2, the D-dimensional case",
        statement="The Jacobian of several units is an entrywise product.",
        printed="$(\\sigma_B^2 + \\epsilon)^{-1/2}[I - \\frac{1}{N}\\hat X^T \\odot "
        "\\hat X]$",
        corrected="one block for each unit $d$, and none between them: $(\\sigma_d^2 + "
        "\\epsilon)^{-1/2}[I - \\frac{1}{N}11^T - \\frac{1}{N}\\hat x_d\\hat "
        "x_d^T]$; $\\hat X^T$ and $\\hat X$ have different shapes unless $D = N$",
        test=inside(largest(measured("product_gap")), SUMS),
        corrected_test=inside(largest(measured("blocks_gap")), SUMS),
        rival="units that a batch couples",
    ),
    erratum(
        name="projector-needs-the-batch",
        place="Appendix A.2",
        statement="$I - \\hat X\\hat X^T$ is the projection $S$.",
        printed="$I - \\hat X\\hat X^T = S$",
        corrected="$I - \\frac{1}{N}\\hat X\\hat X^T$: $\\hat X$ has norm $\\sqrt{N}$",
        test=inside(largest(measured("projector_gap")), SUMS),
        corrected_test=inside(largest(measured("projector_over_n_gap")), SUMS),
        rival="activations of norm one",
        grade=Grade.LOOSE,
    ),
    Claim(
        name="activations-are-controlled",
        place="Appendix A.2, remark 1, Eq 17",
        statement="Batch normalisation controls norms of activations and not those of "
        "the weights.",
        test=every(
            inside(largest(measured("activation_change")), SUMS),
            inside(largest(measured("activation_norm_gap")), SUMS),
        ),
        rival="activations that follow the size of the weights",
    ),
    Claim(
        name="each-row-by-itself",
        place="Section 2.3 and appendix A.2, remark 2",
        statement="Batch normalisation normalises each row: the loss does not depend "
        "on the norm of any of them.",
        test=inside(largest(measured("row_pull")), SUMS),
        rival="one norm for the whole matrix, as with weight normalisation",
    ),
    erratum(
        name="root-of-the-rows",
        place="Footnote 16",
        statement="$M$ rows of norm 1 make a matrix of norm $M$.",
        printed="'implies normalization of the matrix to $M$'",
        corrected="$\\sqrt{M}$ in Frobenius' norm",
        test=inside(
            lowest(measured("frobenius_over_rows")), above(1 - 1e-9, source="paper")
        ),
        corrected_test=every(
            inside(lowest(measured("frobenius_over_root")), above(1 - 1e-9)),
            inside(highest(measured("frobenius_over_root")), below(1 + 1e-9)),
        ),
        rival="a norm that adds up over rows",
        grade=Grade.LOOSE,
    ),
    beyond(
        name="convolutions-exceed-one",
        place="Beside section 2.1, footnote 3",
        statement="$|f| \\leq 1$ does not carry over to convolutions, whose kernels "
        "are used at every place: with unit kernel and image the output may have a "
        "norm up to the side of the kernel.",
        test=every(
            inside(lowest(measured("stretch")), above(1)),
            inside(highest(measured("stretch_over_bound")), below(1)),
        ),
        rival="a bound of one, as for matrices",
    ),
)
