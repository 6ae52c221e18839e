"""What the paper argues, step by step, and which verdicts answer.

The prose asks and the verdicts answer: nothing here states a result.
"""

from theodolite.studies.story import Chapter, Finding

STORY = (
    Chapter(
        "An identity added to projections",
        "Where a ResNet changes its shape, its skip is a random 1×1 convolution $A$. "
        "Hypothesis 6.1 predicts that $I + A$, with $I$ an average pool scaled to "
        "singular values 1, trains faster, and the paper reports that it does so "
        "consistently, if modestly, at the same accuracy. We train both from the same "
        "weights on the same batches, at the paper's four rates, and count every run.",
        (
            Finding("image_tables/faster-at-the-best-rate"),
            Finding("image_tables/faster-at-first"),
            Finding("image_tables/consistently-faster"),
            Finding("image_tables/same-accuracy"),
            Finding("image_tables/order-of-final-losses"),
            Finding("image_tables/best-rate"),
            Finding("image_tables/original-diverges"),
            Finding("image_tables/modified-never-diverges"),
            Finding("image_tables/losses-as-printed"),
            Finding("image_tables/accuracies-as-printed"),
        ),
    ),
    Chapter(
        "What the printed tables say of themselves",
        "Means and deviations over ten trials allow tests of their own. We ask whether "
        "the modified network ends lower in every row, whether accuracies differ by "
        "more than chance, of which trials the rows at rate 0.2 are, and whether table "
        "2 shows four rates at all.",
        (
            Finding("image_tables/ends-lower-in-print"),
            Finding("image_tables/accuracies-differ-in-print"),
            Finding("image_tables/trials-left-out"),
            Finding("image_tables/one-rate-in-table-2"),
            Finding("image_tables/rates-matter"),
            Finding("image_tables/batch-statistics-alike"),
            Finding("image_tables_imagenet/one-row-two-counts"),
            Finding("image_tables_imagenet/better-in-print"),
        ),
    ),
    Chapter(
        "CIFAR-100 and ImageNet",
        "The same comparison with a hundred classes, and with PreAct-ResNet50, "
        "momentum and weight decay. It is ready to run where the images are.",
        (
            Finding("image_tables_cifar100/faster-on-cifar100"),
            Finding("image_tables_cifar100/same-accuracy-on-cifar100"),
            Finding("image_tables_imagenet/faster-on-imagenet"),
            Finding("image_tables_imagenet/better-on-imagenet"),
            Finding("image_tables_imagenet/modified-fails-at-0.2"),
        ),
    ),
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
