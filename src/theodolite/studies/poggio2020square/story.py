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
)
