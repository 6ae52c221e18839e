"""The argument of the paper, step by step, and the verdicts that answer it.

The text asks questions and the verdicts answer them: no result is stated here.
"""

from theodolite.studies import Chapter, Finding

STORY = (
    Chapter(
        "What is talked about",
        "Networks are chains of units; in an $n$-shortcut network the input of a unit "
        "is added to what its $n$ matrices make of it. Activations may stand before "
        "the matrices, between them or after them. Most experiments are on digits, "
        "whitened and cut to ten principal components, with full-batch gradient "
        "descent.",
        (Finding("initial_condition/conventions-unstated"),),
    ),
    Chapter(
        "Deep residual networks can do with small weights",
        "The paper starts from a remark: the deeper a residual network, the less each "
        "unit need do. Theorem 1 makes it exact: a chain of $R$ units "
        "$x + W_2\\,\\mathrm{ReLU}(W_1 x + b)$ maps any $m$ distinct unit vectors to "
        "their labels with matrices of norm $O(R^{-1/2})$, each unit walking one "
        "sample a little way past the others. We build that network and read its "
        "weights and its outputs.",
        (
            Finding("small_weights/interpolates-exactly"),
            Finding("small_weights/steps-suffice"),
            Finding("small_weights/norms-shrink"),
            Finding("small_weights/bracket-under-the-root", ("printed over",)),
            Finding("small_weights/labels-repeat", ("distinct", "samples")),
            Finding("small_weights/rounding-grows"),
        ),
    ),
    Chapter(
        "And training seems to find such weights",
        "He's weights, the paper says, make the output of a deep residual network "
        "large, and it asks for smaller ones. "
        "Figures 2 and 3 are the evidence that training does the same: mean Frobenius "
        "norms along training, smaller in deeper networks, for convolutional networks "
        "on images and for small 2-shortcut networks. From this the paper takes its "
        "licence to study the point where all weights are zero. By its words norms "
        "should fall with depth at every epoch, after 200 epochs as in shorter "
        "training of deeper networks; we train both.",
        (
            Finding("signal_sizes/variance-explodes"),
            Finding("signal_sizes/norm-solves-it-partly"),
            Finding("signal_sizes/deeper-smaller-responses"),
            Finding("weight_norms_cifar/deeper-smaller-at-the-end"),
            Finding("weight_norms_cifar/deeper-smaller-throughout"),
            Finding("weight_norms_cifar/training-ends-around-zero", ("norm at",)),
            Finding("weight_norms/norms-fall-with-depth"),
            Finding("weight_norms/training-ends-around-zero"),
            Finding("weight_norms/linear-optimum-is-singular"),
        ),
    ),
    Chapter(
        "Zero, for shortcuts of length 1, 2 and 3",
        "Theorem 2 is the heart of the paper. With shortcuts over $n \\geq 3$ matrices "
        "zero is flat to order $n - 1$, and hard to leave. With $n = 2$ it is a strict "
        "saddle whose Hessian has the condition number "
        "$\\sqrt{\\mathrm{cond}(M^T M)}$, $M = \\Sigma^{XX} - \\Sigma^{YX}$, at every "
        "depth. With $n = 1$ the Hessian is block Toeplitz and its condition number "
        "grows. We take all Hessians entry by entry, and follow the loss away from "
        "zero.",
        (
            Finding("around_zero/stationary-order", ("order at",)),
            Finding("hessian_at_zero/two-shortcut-condition"),
            Finding("hessian_at_zero/strict-saddle"),
            Finding("hessian_at_zero/degenerate-means-zero"),
            Finding("vanishing_partials/lemma-3-whole-unit"),
            Finding("around_zero/zero-is-a-saddle"),
            Finding("initial_condition/one-shortcut-grows"),
            Finding("initial_condition/one-shortcut-explodes"),
        ),
    ),
    Chapter(
        "Biases and ReLUs",
        "The theorem is stated for smooth activations and no biases, and then used for "
        "networks that have both: ReLU is to be replaced by its local polynomial at "
        "zero, with slope $1/2$. We measure the Hessians of such networks themselves, "
        "at zero, near it and along training.",
        (
            Finding("around_zero/biases-flatten"),
            Finding("around_zero/biases-couple-units"),
            Finding("around_zero/relu-half-space-moments", ("median",)),
            Finding("relu_exact/relu-decomposition"),
            Finding("relu_exact/relu-condition-invariant"),
            Finding("relu_exact/relu-extremes-spread"),
            Finding("relu_exact/one-shortcut-explodes-nonlinear"),
        ),
    ),
    Chapter(
        "Conditioning at the start, and the shortcut of length 1",
        "Figure 4 sets the four initialisations side by side: the ratio of the largest "
        "to the tenth percentile of $|\\lambda|$ against depth. The abstract draws the "
        "conclusion that a shortcut of length 1 is essentially none. We ask for which "
        "networks that is so.",
        (
            Finding("initial_condition/two-shortcut-constant"),
            Finding("initial_condition/xavier-explodes"),
            Finding("initial_condition/orthogonal-explodes"),
            Finding("initial_condition/one-shortcut-is-none"),
            Finding("equivalence/equivalence-ends"),
        ),
    ),
    Chapter(
        "Along training",
        "Does the advantage last? Figures 5 and 6 follow eigenvalues, the fraction of "
        "negative ones (the index) and the gradient down to low losses, at depth 16. "
        "The prose says that 2-shortcut networks are always better conditioned, that "
        "all end at similar condition numbers, and that the gradient peaks while the "
        "index drops.",
        (
            Finding("along_training/better-at-every-loss"),
            Finding("along_training/better-at-another-depth"),
            Finding("along_training/condition-numbers-meet"),
            Finding("along_training/ratio-diverges"),
            Finding("along_training/index-always-smaller"),
            Finding("along_training/gradient-peaks-as-index-drops"),
        ),
    ),
    Chapter(
        "What is reached in the end",
        "Figures 7 and 8 are the proof of the pudding: given its best learning rate, "
        "how low does a network of a given depth get in 1,000 steps, without and with "
        "ReLUs? Figure 9 asks the same of convolutional networks on CIFAR-10, for "
        "shortcuts of length 1 to 4 at equal numbers of parameters.",
        (
            Finding("final_losses_linear/two-shortcut-near-optimal"),
            Finding("final_losses_linear/two-shortcut-lowest"),
            Finding("final_losses_linear/xavier-fails"),
            Finding("final_losses_linear/three-shortcut-stuck"),
            Finding("final_losses_linear/two-shortcut-higher-rates"),
            Finding("final_losses_relu/two-shortcut-lowest-relu"),
            Finding("final_losses_relu/deeper-relu-is-better"),
            Finding("shortcut_depth_cifar/only-two-gains-beyond-400"),
            Finding("shortcut_depth_cifar/longer-than-four-worse"),
        ),
    ),
)
