"""The argument of the paper, step by step, and the verdicts that answer it.

The text asks questions and the verdicts answer them: no result is stated here.
"""

from theodolite.studies import Chapter, Finding

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
    Chapter(
        "From any initialisation",
        "The main theorem takes an entry-normalised first layer, residual blocks "
        "whose branches are shorter than their skips, and linearly independent data. "
        "Then the loss is smooth everywhere and the tangent kernel never singular, "
        "and gradient descent is said to converge to a global minimum from any "
        "initialisation, even where such minima lie at infinity. We descend at the "
        "certified step, and look for starts that never arrive.",
        (
            Finding("global_convergence/every-step-descends"),
            Finding("global_convergence/kernel-never-singular"),
            Finding("global_convergence/theorem-5-1"),
            Finding("global_convergence/open-sets-stall"),
            Finding("global_convergence/zero-branches-stay-one-layer"),
            Finding("global_convergence/cross-entropy-stays-positive"),
        ),
    ),
    Chapter(
        "The proof, line by line",
        "If first-layer weights stay bounded, the loss falls by a factor at every "
        "step. If they do not, the factors tend to one, and the proof argues that "
        "they do so slowly enough for their product to vanish: a weight grows like "
        "$t^{1/4}$ and the regularity shrinks like $t^{-3/4}$. We check each line on "
        "losses that can be followed by hand, and the powers on networks.",
        (
            Finding("global_convergence/gain-upside-down"),
            Finding("global_convergence/one-factor-too-many"),
            Finding("global_convergence/weights-cannot-be-turned"),
            Finding("global_convergence/growth-lacks-the-step"),
            Finding("global_convergence/regularity-goes-with-the-square"),
            Finding("global_convergence/square-cost-is-not-uniform"),
        ),
    ),
    Chapter(
        "What is left of the theorem",
        "Where the proof stops, other arguments may go on. One layer is convex in its "
        "normalised entries, and descent on its weights a mirror flow; weights that "
        "cannot leave a ball leave the first case of the proof. And of the starts that "
        "nobody chose to be bad, how many arrive?",
        (
            Finding("global_convergence/one-layer-reaches"),
            Finding("global_convergence/one-layer-rate"),
            Finding("global_convergence/first-case-needs-pl"),
            Finding("global_convergence/most-normal-starts-reach"),
            Finding("global_convergence/local-infima-at-infinity"),
            Finding("global_convergence/eight-times-the-step"),
        ),
    ),
    Chapter(
        "Do skips shift singular values upwards?",
        "The theory asks for Jacobians whose least singular values stay away from "
        "zero. Section 6 turns that into a hypothesis on whole spectra: a skip whose "
        "singular values are 1, put across random layers, shifts the singular values "
        "of their composite upwards. Figure 1 shows it for one random matrix, figure 2 "
        "for small networks. What exactly the added map is, we look at first.",
        (
            Finding("shifted_spectra/linear-shift"),
            Finding("shifted_spectra/linear-law"),
            Finding("shifted_spectra/rise-at-every-variance"),
            Finding("shifted_spectra/lemma-is-silent"),
            Finding("shifted_spectra/average-pool-is-no-isometry"),
            Finding("shifted_spectra/skips-shift-scores"),
            Finding("shifted_spectra/average-shifts-scores"),
            Finding("shifted_spectra/skips-shift-blocks"),
            Finding("shifted_spectra/average-shifts-blocks"),
            Finding("shifted_spectra/script-shifts-scores"),
        ),
    ),
    Chapter(
        "And is training faster for it?",
        "The shift is to be the cause of speed, at least initially and at least for "
        "some common initialisation schemes. Between the two the paper has the "
        "spectrum of $DF$ and the ratio of the squared gradient to the loss. We follow "
        "both and the losses of the three networks from equal weights, and then vary "
        "what the paper leaves as an open problem: the scheme, and the variance of the "
        "weights.",
        (
            Finding("shifted_spectra/skips-shift-parameters"),
            Finding("shifted_spectra/average-shifts-parameters"),
            Finding("shifted_spectra/additions-raise-the-ratio"),
            Finding("shifted_spectra/skips-train-faster"),
            Finding("shifted_spectra/average-trains-faster"),
            Finding("shifted_spectra/skips-faster-initially"),
            Finding("shifted_spectra/average-faster-initially"),
            Finding("shifted_spectra/some-initialisation"),
            Finding("shifted_spectra/scores-see-less"),
            Finding("shifted_spectra/small-weights-want-skips"),
            Finding("shifted_spectra/small-weights-narrow-spectra"),
        ),
    ),
    Chapter(
        "An identity added to projections",
        "Where a ResNet changes its shape, its skip is a random 1×1 convolution $A$. "
        "Hypothesis 6.1 predicts that $I + A$, with $I$ an average pool scaled to "
        "singular values 1, trains faster, and the paper reports that it does so "
        "consistently, if modestly, at the same accuracy. We train both from the same "
        "weights on the same batches, at the paper's four rates, and count every run. "
        "By table 1 a few pairs should suffice at rate 0.1, where the losses in print "
        "are five deviations apart.",
        (
            Finding("image_tables/faster-at-the-best-rate"),
            Finding("image_tables/faster-at-first"),
            Finding("image_tables/consistently-faster"),
            Finding("image_tables/same-accuracy"),
            Finding("image_tables/order-of-final-losses"),
            Finding("image_tables/best-rate"),
            Finding("image_tables/original-diverges"),
            Finding("image_tables/modified-never-diverges"),
            Finding("image_tables/modified-less-stable"),
            Finding("image_tables/faster-in-tf32"),
            Finding("image_tables/bf16-costs-nothing"),
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
)
