"""Claims of appendices A and B: derivatives of layers and of products."""

from theodolite.core import (
    Claim,
    Test,
    above,
    below,
    beyond,
    erratum,
    every,
    exact,
    inside,
    largest,
    measured,
    near,
)

from ..shared.reads import ROUNDED, all_of_them, never_above, never_below

SAME = below(1e-11, source="rounding", why=ROUNDED)
NOTHING = near(0, 1e-11, source="rounding", why=ROUNDED)
WITHOUT_MEAN = measured("norm_without_mean")


def same(*names: str) -> Test:
    """Judge whether formulas agree with autodiff up to rounding."""
    return all_of_them(*(exact(measured(name), within=SAME) for name in names))


LAYER_CLAIMS = (
    Claim(
        name="derivatives-of-affine-layers",
        place="Example A.1, Eqs 16 to 21",
        statement="Rows first, $J\\,\\mathrm{aff} = A \\otimes \\mathrm{Id}_N$ and "
        "$D\\,\\mathrm{aff} = (\\mathrm{Id} \\otimes X^T, \\mathrm{Id} \\otimes 1)$.",
        test=exact(
            measured("affine_gap"), within=SAME, rival=measured("affine_gap_by_columns")
        ),
        rival="the same products for columns first",
    ),
    erratum(
        name="shape-of-dp",
        place="Example A.1, below Eq 21",
        statement="$DP(w)$ has as many rows as there are numbers in the data.",
        printed="$DP(w) \\in \\mathbb{R}^{d_0 N \\times p}$",
        corrected="$DP(w) \\in \\mathbb{R}^{d_1 d_0 \\times p}$: the data is not in it",
        test=inside(largest(measured("matrix_rows_printed")), NOTHING),
        corrected_test=inside(largest(measured("matrix_rows")), NOTHING),
        rival="a derivative of the layer rather than of its matrix",
    ),
    Claim(
        name="products-of-lipschitz-maps",
        place="Lemma B.1",
        statement="A product of matrices bounded by $b_i$ and Lipschitz with $c_i$ is "
        "bounded by $\\prod b_i$ and Lipschitz with $\\sum_i c_i \\prod_{j \\neq i} "
        "b_j$.",
        test=never_above("product_bound_ratio", "product_constant_ratio"),
        rival="constants that some pair of points passes",
    ),
    Claim(
        name="derivatives-of-batch-norm",
        place="Lemma B.2, Eqs 25 to 29",
        statement="Batch norm is $v \\circ m$, and its first and second derivatives "
        "are those of the lemma.",
        test=every(
            same("norm_split_gap"),
            same("norm_first_gap"),
            same("norm_second_gap"),
            exact(measured("norm_whole_gap"), within=SAME, rival=WITHOUT_MEAN),
        ),
        rival="a mean whose derivative is neglected",
    ),
    Claim(
        name="derivatives-of-weight-norm",
        place="Lemma B.3, Eqs 30 to 32",
        statement="First and second derivatives of weight normalisation, and the "
        "first of entry normalisation.",
        test=same("weight_first_gap", "weight_second_gap", "entry_first_gap"),
        rival="formulas that lack a term",
    ),
    erratum(
        name="second-derivative-of-entry-norm",
        place="Lemma B.3, Eq 33",
        statement="The second derivative of entry normalisation.",
        printed="$-\\delta^i_n\\delta^i_m\\delta^i_k\\delta^j_l\\, "
        "3\\epsilon(\\epsilon + (w^i_j)^2)^{-3/2} w^i_j$",
        corrected="$-\\delta^i_n\\delta^j_m\\delta^i_k\\delta^j_l\\, "
        "3\\epsilon(\\epsilon + (w^i_j)^2)^{-5/2} w^i_j$",
        test=same("entry_printed_exponent", "entry_printed_deltas"),
        corrected_test=same("entry_second_gap"),
        rival="an exponent and deltas that autodiff agrees with",
    ),
    Claim(
        name="skips-lift-singular-values",
        place="Lemma B.4, Eq 34",
        statement="A branch whose Jacobian has norm below $1 - \\delta$ leaves all "
        "singular values of the block above $\\delta$.",
        test=never_below("skip_slack", "matrix_slack"),
        rival="branches that cancel more of the skip than their norm",
    ),
    erratum(
        name="tall-data",
        place="Lemma B.5, Eq 35",
        statement="$\\sigma(D\\,\\mathrm{aff}_P) \\geq \\sigma(X)\\,\\sigma(DP)$ for "
        "all data and parameters.",
        printed="'for all $w \\in \\mathbb{R}^p$ and $X \\in \\mathbb{R}^{d_0 \\times "
        "N}$'",
        corrected="for $N \\leq d_0$ and $p \\geq d_1 d_0$, as theorem 4.7 has it: "
        "with $X = (1, 1)$ and $P(w) = w_1 + 2w_2$ the left side is 0 and the right "
        "$\\sqrt{10}$",
        test=never_below("tall_slack", "affine_slack"),
        corrected_test=never_below("affine_slack"),
        rival="least singular values that multiply for any shapes",
    ),
    beyond(
        name="batch-norm-hides-earlier-layers",
        place="Beside proposition 4.6 and example A.3",
        statement="A batch norm has $\\lambda(Jf) = 0$, since it forgets constants: "
        "in Eq 12 every layer before one adds nothing, whatever its weights.",
        test=every(
            inside(largest(measured("term_before_norm")), near(0, 0)),
            never_below("term_without_norm", region=above(0)),
        ),
        rival="terms that only shrink, as behind other layers",
    ),
)
