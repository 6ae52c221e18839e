"""What the paper argues, step by step, and which verdicts answer.

The prose asks and the verdicts answer: nothing here states a result.
"""

from theodolite.studies.story import Chapter, Finding

STORY = (
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
)
