"""What the paper argues, step by step, and which verdicts answer.

The prose asks and the verdicts answer: nothing here states a result.
"""

from theodolite.studies.story import Chapter, Finding

STORY = (
    Chapter(
        "Two numbers that decide a descent",
        "Gradient descent comes to a global minimum at a linear rate if the loss has a "
        "Lipschitz gradient and obeys the Polyak–Łojasiewicz inequality. For a model, "
        "the second follows from its tangent kernel. We descend, and differentiate.",
        (
            Finding("curvature_certificates/quadratic-upper-bound"),
            Finding("curvature_certificates/any-matrix-norm"),
            Finding("curvature_certificates/pl-is-not-convex"),
            Finding("curvature_certificates/linear-rate"),
            Finding("curvature_certificates/gradient-by-kernel"),
            Finding("curvature_certificates/vacuous-below-outputs"),
        ),
    ),
    Chapter(
        "Layers and their derivatives",
        "A network is a chain of maps of parameters and inputs. The appendices give "
        "the derivatives of affine, normalised and residual layers, and say how "
        "bounds multiply. Automatic differentiation reads the same formulas.",
        (
            Finding("curvature_certificates/derivatives-of-affine-layers"),
            Finding("curvature_certificates/shape-of-dp"),
            Finding("curvature_certificates/products-of-lipschitz-maps"),
            Finding("curvature_certificates/derivatives-of-batch-norm"),
            Finding("curvature_certificates/derivatives-of-weight-norm"),
            Finding("curvature_certificates/second-derivative-of-entry-norm"),
            Finding("curvature_certificates/skips-lift-singular-values"),
            Finding("curvature_certificates/tall-data"),
            Finding("curvature_certificates/batch-norm-hides-earlier-layers"),
        ),
    ),
    Chapter(
        "Smooth everywhere?",
        "If weights are normalised, the paper argues, the loss is smooth on all of "
        "parameter space, and not on bounded sets only. We make the constants explicit "
        "and look for weights whose Hessian passes them, and for layers that the "
        "hypotheses let in by mistake.",
        (
            Finding("curvature_certificates/chain-rule"),
            Finding("curvature_certificates/bounded-and-lipschitz"),
            Finding("curvature_certificates/costs-qualify"),
            Finding("curvature_certificates/normalised-is-smooth-everywhere"),
            Finding("curvature_certificates/plain-weights-are-not"),
            Finding("curvature_certificates/continuous-slopes"),
            Finding("curvature_certificates/continuous-costs"),
            Finding("curvature_certificates/covariance-bounded-below"),
            Finding("curvature_certificates/first-norm-needs-no-covariance"),
            Finding("curvature_certificates/constants-are-worst-case"),
            Finding("curvature_certificates/looseness-grows-with-depth"),
        ),
    ),
    Chapter(
        "Regular everywhere?",
        "A skip around a branch of norm below one keeps the block's Jacobian away from "
        "zero, so that a regular first layer makes the whole kernel regular, at all "
        "weights, though not uniformly. We follow the bound and the kernel as weights "
        "grow.",
        (
            Finding("curvature_certificates/sum-over-layers"),
            Finding("curvature_certificates/positive-at-all-weights"),
            Finding("curvature_certificates/not-uniformly"),
        ),
    ),
)
