"""Claims on matrices that should meet the constraint, and on trained ones."""

from theodolite.core import (
    Choice,
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
    mean,
    measured,
    meets,
    near,
    ordered,
    our_margin,
    predicted,
    smallest,
    some,
)

from .claims_constraint import BOTH, EXACT, LINEAR, OPEN, RELU, WRITTEN

PROJECTIONS = measured(
    "constraint_gap", lambda row: row["network"].startswith("projection")
).called("gap of equal projections")
ORTHOGONAL = measured(
    "constraint_gap",
    lambda row: row["network"].startswith("orthogonal") and row["layer"] < 4,
).called("gap of orthogonal matrices")
FIRST = {
    kind: predicted("constraint_gap", lambda row, k=kind: row["network"].startswith(k))
    for kind in ("projection", "orthogonal")
}
OF_LAW = {
    kind: measured(
        "constraint_gap",
        lambda row, k=kind: row["layer"] == 1 and row["network"].startswith(k),
    )
    for kind in FIRST
}
CLOSE = our_margin(0.15, "weight decay of a tenth leaves a tenth of each label")


def _nearer(distance: str) -> Test:
    """Judge whether training of linear networks lowers a distance."""
    return ordered(
        measured(distance, kind="linear", stage="end"),
        measured(distance, kind="linear", stage="start"),
        name=f"{distance.replace('_', ' ')} lost in training",
    )


MATRICES = (
    erratum(
        name="equal-projections",
        place="Appendix H.1, equations 53 and 54",
        statement="Equal projections in all layers but the last, with the last one "
        "along the features, satisfy equation 48.",
        printed="$V_1 = \\dots = V_{L-1} \\propto P$, $P^2 = P$",
        corrected="only for $P = uu^T$ and inputs along $u$: the first layer's gap is "
        "$\\sqrt{r/c^2 - 1}$ at rank $r$ and cosine $c$ of input and image",
        test=exact(PROJECTIONS),
        corrected_test=every(
            exact(measured("constraint_gap", network="projection, rank 1, along")),
            inside(
                smallest(
                    measured(
                        "constraint_gap", layer=1, network="projection, rank 1, aslant"
                    )
                ),
                OPEN,
            ),
            inside(
                largest_distance(
                    FIRST["projection"], OF_LAW["projection"], WRITTEN, relative=False
                ),
                below(1e-7, source="rounding", why="roots of differences that vanish"),
            ),
        ),
        rival="a gap that hangs on neither rank nor input",
    ),
    erratum(
        name="orthogonal-matrices",
        place="Appendix H.2",
        statement="Layers that are proportional to orthogonal matrices satisfy Eq 48.",
        printed="$V_k \\propto Q_k$ with $Q_k^T = Q_k^{-1}$",
        corrected="$\\partial f/\\partial V_k$ has rank one and $V_k$ rank $p$: the "
        "gap is $\\sqrt{p - 1}$ at the least, 0 for $p = 1$ alone",
        test=exact(ORTHOGONAL),
        corrected_test=every(
            inside(
                largest_distance(FIRST["orthogonal"], OF_LAW["orthogonal"], WRITTEN),
                EXACT,
            ),
            inside(smallest(ORTHOGONAL), OPEN),
        ),
        rival="a rank-one matrix in place of one of full rank",
    ),
    erratum(
        name="diagonal-is-preserved",
        place="Appendix H.3, equations 55 and 56",
        statement="Gradient descent preserves diagonal weights: off the diagonal "
        "gradients vanish.",
        printed="$\\partial f/\\partial W_k^{ij} = 0$ for $i \\ne j$",
        corrected="it is $a^i b^j$, which does not vanish off the diagonal; what stays "
        "diagonal is a network whose other weights do not exist",
        test=exact(measured("off_diagonal", network="diagonal")),
        corrected_test=meets("off_diagonal", WRITTEN, EXACT, network="diagonal"),
        rival="gradients that cancel off the diagonal",
    ),
    erratum(
        name="diagonal-weights",
        place="Appendix H.3, equation 57",
        statement="In a diagonal network of 4 layers that satisfies equation 48, "
        "weights are proportional to the entries of the input.",
        printed="$V_k^i = \\pm x^i/f$",
        corrected="$|V_k^i| = (|f|/|x^i|)^{1/(L-2)}$ for $L > 2$, or 0: large entries "
        "have small weights",
        test=exact(measured("diagonal_gap", law="printed")),
        corrected_test=every(
            exact(measured("diagonal_gap", law="corrected")),
            meets("diagonal_output", ("law",), EXACT, law="corrected"),
        ),
        rival="another power of the input",
    ),
    erratum(
        name="random-is-orthogonal",
        place="Section 5, before figure 7",
        statement="Randomly initialised weight matrices are approximately orthogonal.",
        printed="approximately orthogonal",
        corrected="two columns of a square normal matrix nearly are, their cosine has "
        "mean square $1/p$; the matrix is not: $\\|p V^TV - I\\|^2/p$ has mean $(p^2 + "
        "p - 2)/(p^2 + 2)$, about 1 at every width",
        test=inside(
            mean(measured("matrix_distance").called("square distance of V'V from I")),
            below(0.1, source="ours", why="a third of the identity's own norm"),
        ),
        corrected_test=every(
            meets(
                name,
                (),
                below(0.1, source="ours", why="means over some dozens of matrices"),
            )
            for name in ("matrix_distance", "column_cosine")
        ),
        rival="singular values that are all alike",
        grade=Grade.READING,
    ),
    Claim(
        name="training-orthogonalises",
        place="Appendix H.2, last paragraph",
        statement="Normalisation biases the weight matrices of linear networks towards "
        "orthogonal matrices or projections.",
        test=some(_nearer("orthogonal_distance"), _nearer("projection_gap")),
        rival="matrices that lose rank",
        choices=(
            BOTH,
            Choice(
                what="linear networks; training lowers the distance from orthogonal "
                "matrices, or that from multiples of projections",
                why="the paper does not expect it of ReLU networks, and writes "
                "orthogonal (or projection)",
            ),
        ),
        departures=("no networks without normalisation beside them",),
    ),
    beyond(
        name="layers-lose-rank",
        place="Beside appendix H",
        statement="What training finds has low rank: one in every layer of a linear "
        "network, with a stable rank below 2 in ReLU networks of two classes.",
        test=every(
            inside(
                largest(measured("stable_rank", **LINEAR)),
                near(1, 1e-6, source="rounding", why="ratios of singular values"),
            ),
            inside(
                highest(measured("stable_rank", **RELU)),
                below(2, source="ours", why="there are two classes to be told apart"),
            ),
            inside(
                smallest(
                    measured("stable_rank", lambda row: row["layer"] < 3, stage="start")
                ),
                above(2, source="ours", why="so that there is rank to be lost"),
            ),
        ),
        rival="matrices that keep the rank they start with",
    ),
    erratum(
        name="output-at-rest",
        place="Appendix G, before corollary 4",
        statement="Near zero loss, $\\rho f_i = 1/\\rho_{eq}$ for outputs of size one.",
        printed="$\\rho f_i = 1/\\rho_{eq}$",
        corrected="$y_i f_i = 1/\\rho_{eq}$, up to what weight decay leaves",
        test=inside(largest(measured("value_printed", stage="end")), CLOSE),
        corrected_test=every(
            inside(largest(measured("value_corrected", **LINEAR)), CLOSE),
            inside(largest(measured("value_corrected", **RELU)), CLOSE),
        ),
        rival="a network of scale one, for which both are the same",
    ),
)
