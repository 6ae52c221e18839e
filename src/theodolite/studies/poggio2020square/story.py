"""What the paper argues, step by step, and which verdicts answer.

The prose asks and the verdicts answer: nothing here states a result.
"""

from theodolite.studies.story import Chapter, Finding

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
            Finding("norm_flow/flow-of-the-norm"),
            Finding("norm_flow/flow-of-the-weights"),
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
            Finding("norm_flow/rest-without-pull"),
            Finding("norm_flow/noise-lowers-the-norm"),
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
            Finding("normalised_layers/projector-needs-the-batch"),
            Finding("normalised_layers/activations-are-controlled"),
            Finding("normalised_layers/each-row-by-itself"),
            Finding("normalised_layers/root-of-the-rows"),
            Finding("normalised_layers/convolutions-exceed-one"),
        ),
    ),
)
