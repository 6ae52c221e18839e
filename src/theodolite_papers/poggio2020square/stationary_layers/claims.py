"""Claims of appendix G on the neural collapse of two classes at equilibrium."""

from theodolite.core import (
    Claim,
    Grade,
    above,
    below,
    erratum,
    every,
    highest,
    inside,
    largest,
    lowest,
    measured,
    near,
    ordered,
    predicted,
    smallest,
)

from .claims_constraint import (
    AT_LEAST_ZERO,
    AT_REST,
    BOTH,
    CONSTRAINT,
    LINEAR,
    MET,
    RELU,
)
from .claims_matrices import MATRICES

MINUS_ONE = near(-1, 1e-9, source="rounding", why="cosines of means of samples")
GATED = ("relu", "single_samples")

WORDS = {
    "sum_gap": "gap of the sum over samples",
    "constraint_gap": "gap of the constraint",
    "off_diagonal": "gradient off the diagonal",
    "diagonal_gap": "gap of diagonal weights",
    "value_printed": "distance of $\\rho^2 y f$ from 1",
    "value_corrected": "distance of $\\rho\\,y f$ from 1",
    "class_gap": "least gap of Eq 40 in a class",
    "within_share": "share of variance within classes",
    "raw_cosine": "cosine of the class means",
    "centred_cosine": "cosine of the centred class means",
    "dual_cosine": "cosine of the last layer with the means",
    "nearest_agreement": "share of samples that the nearest mean decides alike",
    "sample_gap": "gap of Eq 40 over samples",
    "gradient_norm": "norm of the gradient",
    "structural_gap": "distance of both sides of the structural lemma",
    "matrix_distance": "square gap between $V'V$ and $I$",
    "column_cosine": "mean square cosine of two columns",
}
CLAIMS = (
    *CONSTRAINT,
    *MATRICES,
    erratum(
        name="features-are-the-last-layer",
        place="Corollary 4, NC1 and NC3",
        statement="At rest the features of every sample are the last layer's weights "
        "times the output: $h(x_i) = V_L^T f(x_i)$.",
        printed="$h(x_i) = V_L^T f(x_i)$ for both classes",
        corrected="not with ReLU features and both classes: $h \\ge 0$ asks for $V_L "
        "\\ge 0$ where $f > 0$ and for $V_L \\le 0$ where $f < 0$, so that the worse "
        "class misses $1/\\sqrt2$ of $|f|$ at the least; linear features do it",
        test=inside(largest(measured("class_gap", **RELU)), MET),
        corrected_test=every(
            *(
                inside(
                    lowest(
                        measured("class_gap", kind=kind, stage="end"),
                        less=predicted("class_floor"),
                    ),
                    AT_LEAST_ZERO,
                )
                for kind in GATED
            ),
            inside(largest(measured("class_gap", **LINEAR)), AT_REST),
        ),
        rival="features of either sign in a rectified layer",
        choices=(BOTH,),
    ),
    erratum(
        name="collapse-at-rest",
        place="Corollary 4, NC1",
        statement="Where $\\dot V_k = 0$ and $\\dot\\rho = 0$ the features of a class "
        "do not vary.",
        printed="the deviation of $h_{i,c}$ over $i$ is zero at rest",
        corrected="with weight decay outputs at rest differ, and features with them, "
        "in linear networks exactly as much; the variation falls in training, to zero "
        "only where the loss does",
        test=every(
            inside(highest(measured("within_share", **LINEAR)), AT_REST),
            inside(highest(measured("within_share", **RELU)), AT_REST),
        ),
        corrected_test=every(
            inside(
                smallest(measured("within_share", **LINEAR)),
                above(1e-4, source="ours", why="far above what training leaves open"),
            ),
            *(
                ordered(
                    measured("within_share", kind=kind, stage="end"),
                    measured("within_share", kind=kind, stage="start"),
                    log=True,
                    name=f"log10 variation lost in training ({kind})",
                )
                for kind in ("linear", "relu")
            ),
        ),
        rival="features that vary as much as at the start",
        choices=(BOTH,),
        grade=Grade.LOOSE,
    ),
    erratum(
        name="means-are-opposite",
        place="Corollary 4, NC2",
        statement="The means of the two classes become opposite vectors.",
        printed="$\\mu_1 = V^T$ and $\\mu_2 = -V^T$",
        corrected="means of ReLU features are at no more than a right angle; with the "
        "global mean taken off, as neural collapse is defined, those of two equal "
        "classes are opposite identically, for noise too, which tests nothing",
        test=inside(
            highest(measured("raw_cosine", **RELU)),
            below(-0.99, source="ours", why="within eight degrees of opposite"),
        ),
        corrected_test=every(
            *(
                inside(lowest(measured("raw_cosine", kind=kind)), AT_LEAST_ZERO)
                for kind in GATED
            ),
            inside(lowest(measured("centred_cosine")), MINUS_ONE),
            inside(highest(measured("centred_cosine")), MINUS_ONE),
            inside(highest(measured("centred_cosine", stage="noise")), MINUS_ONE),
        ),
        rival="centred means of noise at any angle",
    ),
    Claim(
        name="last-layer-is-dual",
        place="Corollary 4, NC3",
        statement="The last layer comes to lie along the difference of the class "
        "means.",
        test=every(
            inside(
                lowest(measured("dual_cosine", kind=kind, stage="end")),
                above(0.99, source="ours", why="within eight degrees"),
            )
            for kind in ("linear", "relu")
        ),
        rival="a last layer like that of noise, at any angle",
        choices=(BOTH,),
    ),
    Claim(
        name="nearest-centre",
        place="Corollary 4, NC4",
        statement="The network decides for the class whose mean is nearest.",
        test=every(
            inside(
                lowest(measured("nearest_agreement", kind=kind, stage="end")),
                near(1, 1e-9, source="rounding", why="a share of samples"),
            )
            for kind in ("linear", "relu")
        ),
        rival="the agreement of networks that are not trained, about a half",
        choices=(BOTH,),
    ),
)
