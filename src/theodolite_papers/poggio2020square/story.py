"""The argument of the paper, step by step, and the verdicts that answer it.

The text asks questions and the verdicts answer them: no result is stated here.
"""

from theodolite.studies import Chapter, Finding

STORY = (
    Chapter(
        "A norm and a direction",
        "ReLU networks are homogeneous, so that a classifier is a norm $\\rho$ times a "
        "network of unit layers $V_k$. With normalisation the paper writes gradient "
        "flow of the square loss as one equation for each, with a multiplier that "
        "keeps the layers on the sphere. We differentiate real networks, and read the "
        "equations as printed.",
        (
            Finding("norm_flow/structural-lemma"),
            Finding("norm_flow/outputs-at-most-one"),
            Finding("norm_flow/flow-of-plain-weights"),
            Finding("norm_flow/flow-of-the-norm"),
            Finding("norm_flow/flow-of-the-weights"),
            Finding("norm_flow/gradients-by-weights"),
            Finding("norm_flow/decay-for-a-multiplier"),
            Finding("norm_flow/projected-twice"),
            Finding("norm_flow/sphere-repels"),
            Finding("norm_flow/descent-meets-the-flow"),
        ),
    ),
    Chapter(
        "Where the norm comes to rest",
        "At rest $\\rho$ is a quotient of sums over samples, which decay lowers. From "
        "small starts it is said to grow monotonically to there, to find small norms "
        "first, and never to rest below one. We let norms, units and networks rest, "
        "and look for exceptions.",
        (
            Finding("norm_flow/norm-at-rest"),
            Finding("norm_flow/decay-of-a-library"),
            Finding("norm_flow/norm-grows-monotonically"),
            Finding("norm_flow/smallest-norm-first"),
            Finding("norm_flow/norm-at-least-one"),
            Finding("norm_flow/norm-tells-outputs-of-zero-and-one"),
            Finding("norm_flow/rest-without-pull"),
            Finding("norm_flow/own-gradients-leave-the-norm"),
            Finding("norm_flow/noise-lowers-the-norm"),
            Finding("norm_flow/dimension-of-minimisers"),
            Finding("norm_flow/rest-at-kinks"),
        ),
    ),
    Chapter(
        "Linear classifiers, and what they remember",
        "One layer can be followed to its end. The paper writes its flow for the "
        "square and the exponential loss, argues that a map which does not expand has "
        "one fixed point, and that the end forgets the start with decay and not "
        "without. From the same equations it draws that every sample takes part, each "
        "at rest by itself, and that margins become equal. We solve for rests, "
        "integrate, and descend from both sides of zero.",
        (
            Finding("linear_flows/speeds-of-a-linear-network"),
            Finding("linear_flows/independent-with-decay"),
            Finding("linear_flows/dependent-without-decay"),
            Finding("linear_flows/data-can-decide"),
            Finding("linear_flows/one-step-expands"),
            Finding("linear_flows/small-weights-least-norm"),
            Finding("linear_flows/descent-meets-linear-flows"),
            Finding("linear_flows/contributions-are-positive"),
            Finding("linear_flows/sum-is-not-each"),
            Finding("linear_flows/rest-of-single-samples"),
            Finding("linear_flows/flow-of-the-exponential-loss"),
            Finding("linear_flows/margins-become-equal"),
        ),
    ),
    Chapter(
        "Without normalisation",
        "If no layer is normalised and all start alike, they grow alike, and the "
        "product of their norms obeys an equation of its own. The paper calls it "
        "logistic and argues that small starts and many layers keep norms small for "
        "long. We integrate it and descend on the norms of real layers.",
        (
            Finding("norm_flow/layers-grow-alike"),
            Finding("norm_flow/rate-of-squares"),
            Finding("norm_flow/depth-counted-twice"),
            Finding("norm_flow/samples-lost-count"),
            Finding("norm_flow/norm-of-layers"),
            Finding("norm_flow/growth-is-logistic"),
            Finding("norm_flow/small-starts-are-slow"),
            Finding("norm_flow/deep-is-slow"),
        ),
    ),
    Chapter(
        "What normalisation does to a gradient",
        "The flow stands for training with weight or batch normalisation. Appendix A "
        "derives the speeds under the one, and the Jacobian of the other with its mean "
        "neglected, and says which norms each controls. We differentiate the layers of "
        "a library, and ask what becomes of the bound on outputs in convolutions.",
        (
            Finding("normalised_layers/speeds-under-weight-norm"),
            Finding("normalised_layers/tangent-gradient-alike"),
            Finding("normalised_layers/length-is-kept"),
            Finding("normalised_layers/not-the-plain-dynamics"),
            Finding("normalised_layers/projection-left-out"),
            Finding("normalised_layers/mean-neglected"),
            Finding("normalised_layers/one-block-for-each-unit"),
            Finding("normalised_layers/projector-needs-the-batch"),
            Finding("normalised_layers/activations-are-controlled"),
            Finding("normalised_layers/each-row-by-itself"),
            Finding("normalised_layers/root-of-the-rows"),
            Finding("normalised_layers/convolutions-exceed-one"),
        ),
    ),
    Chapter(
        "Margins, norms and the expected error",
        "Among solutions that fit, those of small norm have wide margins, and a bound "
        "of Rademacher type grows with the norm: that is the paper's case for small "
        "norms. It leaves the constants open and doubts that the bound means much in "
        "practice. We put constants in, and evaluate both sides.",
        (
            Finding("margins_and_bounds/widest-is-shortest"),
            Finding("margins_and_bounds/classifying-is-not-interpolating"),
            Finding("margins_and_bounds/complexity-is-proportional"),
            Finding("margins_and_bounds/ramp-is-above"),
            Finding("margins_and_bounds/bound-holds"),
            Finding("margins_and_bounds/complexity-is-needed"),
            Finding("margins_and_bounds/smaller-norm-smaller-bound"),
            Finding("margins_and_bounds/bound-is-vacuous"),
        ),
    ),
    Chapter(
        "Is every layer its own gradient?",
        "Where training rests with weight decay, each layer is a weighted sum of the "
        "gradients of all samples' outputs. The paper goes on to each sample alone, "
        "$V_k f_n = \\partial f_n/\\partial V_k$, and calls that a strong constraint. "
        "We train linear and ReLU networks until they rest, by all samples and by "
        "single ones, and measure what is missing in each layer.",
        (
            Finding("stationary_layers/gradient-is-an-outer-product"),
            Finding("stationary_layers/sum-over-samples"),
            Finding("stationary_layers/every-sample"),
            Finding("stationary_layers/gates-can-be-dropped"),
            Finding("stationary_layers/output-at-rest"),
        ),
    ),
    Chapter(
        "Which matrices would do",
        "Appendix H looks for matrices that satisfy the constraint of linear networks: "
        "equal projections, from which recurrent networks would equal deep ones; "
        "orthogonal matrices; diagonal ones. We write them down, differentiate, and "
        "look at the matrices that training finds.",
        (
            Finding("stationary_layers/equal-projections"),
            Finding("stationary_layers/recurrent-is-forward"),
            Finding("stationary_layers/relu-recurrent-differs"),
            Finding("stationary_layers/orthogonal-matrices"),
            Finding("stationary_layers/random-is-orthogonal"),
            Finding("stationary_layers/training-orthogonalises"),
            Finding("stationary_layers/layers-lose-rank"),
            Finding("stationary_layers/diagonal-is-preserved"),
            Finding("stationary_layers/diagonal-weights"),
        ),
    ),
    Chapter(
        "Neural collapse of two classes",
        "Corollary 4 derives the four properties of neural collapse from the "
        "constraint on the last layer. We ask which of them can hold behind a ReLU "
        "with both classes present, which would hold for noise as well, and which are "
        "found.",
        (
            Finding("stationary_layers/features-are-the-last-layer"),
            Finding("stationary_layers/collapse-at-rest"),
            Finding("stationary_layers/means-are-opposite"),
            Finding("stationary_layers/last-layer-is-dual"),
            Finding("stationary_layers/nearest-centre"),
        ),
    ),
    Chapter(
        "Four layers and two classes",
        "Twelve figures follow small classifiers of photographs: with batch "
        "normalisation and weight decay, without decay, without both. The paper reads "
        "off them that norms grow from small starts, that decay makes training forget "
        "its start, and that margins become the inverse of the norm. The captions "
        "contradict themselves on layers, decay and starts, so that we train every "
        "reading.",
        (
            Finding("trained_norms/separable-early"),
            Finding("trained_norms/norm-grows-from-small-starts"),
            Finding("trained_norms/large-norms-shrink"),
            Finding("trained_norms/decay-forgets-the-start"),
            Finding("trained_norms/figure-1-has-decay"),
            Finding("trained_norms/others-remember"),
            Finding("trained_norms/one-run-is-typical"),
            Finding("trained_norms/start-is-not-zero"),
            Finding("trained_norms/ratio-at-rest"),
            Finding("trained_norms/loss-approaches-zero"),
            Finding("trained_norms/margins-are-the-inverse-norm"),
            Finding("trained_norms/margins-narrow"),
            Finding("trained_norms/outputs-far-below-one"),
            Finding("trained_norms/small-starts-generalise"),
            Finding("trained_norms/every-run-trains"),
            Finding("trained_norms/wide-layers-cannot-rest"),
        ),
    ),
    Chapter(
        "Small norms, wide margins, few errors?",
        "The paper's case rests on norms: those that decay or small starts make small "
        "are to have wide margins and few errors on new samples, and label noise is to "
        "do what decay does. It leaves open how much decay is enough. We train at many "
        "decays from many starts, find where the start is forgotten, and put noise on "
        "the labels.",
        (
            Finding("decay_and_margins/small-norm-wide-margin"),
            Finding("decay_and_margins/small-norm-small-error"),
            Finding("decay_and_margins/whatever-made-the-norm"),
            Finding("decay_and_margins/decay-keeps-margins-apart"),
            Finding("decay_and_margins/enough-decay-forgets"),
            Finding("decay_and_margins/enough-is-a-matter-of-time"),
            Finding("decay_and_margins/errors-forget-too"),
            Finding("decay_and_margins/noise-ends-interpolation"),
            Finding("decay_and_margins/noise-lowers-norms-in-training"),
            Finding("decay_and_margins/noise-raises-the-sum"),
            Finding("decay_and_margins/noise-betters-errors"),
            Finding("decay_and_margins/noise-does-not-forget"),
        ),
    ),
    Chapter(
        "Collapse at every norm, and the other loss",
        "What fits its samples under the square loss is said to have collapsed, "
        "whatever its norm, and cross-entropy to do the same. The square loss is said "
        "to be good sooner and to overfit later on. We measure the four properties on "
        "two, three and ten classes over all norms that decays and starts make, and "
        "follow errors on new samples under both losses.",
        (
            Finding("collapse_everywhere/features-collapse"),
            Finding("collapse_everywhere/means-form-a-simplex"),
            Finding("collapse_everywhere/heads-follow-means"),
            Finding("collapse_everywhere/nearest-means-decide"),
            Finding("collapse_everywhere/at-each-global-minimum"),
            Finding("collapse_everywhere/large-norms-collapse-less"),
            Finding("collapse_everywhere/cross-entropy-collapses-too"),
            Finding("collapse_everywhere/square-is-good-sooner"),
            Finding("collapse_everywhere/who-is-sooner-depends-on-the-start"),
            Finding("collapse_everywhere/square-overfits-late"),
            Finding("collapse_everywhere/stopping-helps-square-more"),
            Finding("collapse_everywhere/decay-keeps-from-overfitting"),
            Finding("collapse_everywhere/wrong-labels-overfit-both"),
            Finding("collapse_everywhere/wrong-labels-harm-square-more"),
            Finding("collapse_everywhere/decay-does-not-mend-labels"),
        ),
    ),
)
