"""The argument of the paper, step by step, and the verdicts that answer it.

The text asks questions and the verdicts answer them: no result is stated here.
"""

from theodolite.studies import Chapter, Finding

STORY = (
    Chapter(
        "A residual network is a sum over paths",
        "A path from an input to the output takes a layer or passes it by its skip. "
        "The paper writes the output as a sum over all paths, counts them by length, "
        "gathers equal products of weights under assumptions that it says do not hold, "
        "and puts a normal variable in front of each. We list every path of real "
        "networks and follow the chain step by step.",
        (
            Finding("path_counts/residual-output-is-paths"),
            Finding("path_counts/paths-by-length"),
            Finding("path_counts/inputs-are-shared"),
            Finding("path_counts/assumptions-do-not-hold"),
            Finding("path_counts/equal-products"),
            Finding("path_counts/second-moment-bounds"),
            Finding("path_counts/least-square-norm"),
            Finding("path_counts/least-value-is-exact"),
        ),
    ),
    Chapter(
        "What the chain leaves behind",
        "Two of its steps are choices. The normal variables are given the least "
        "variance that the assumptions allow, and later taken as independent; gates "
        "are coins that know nothing of the weights, which makes the losses affine. "
        "We ask what each choice implies, on networks for which it can be seen.",
        (
            Finding("path_counts/one-variable"),
            Finding("path_counts/largest-value-too"),
            Finding("path_counts/inputs-independent"),
            Finding("path_counts/output-has-a-sign"),
            Finding("path_weights/losses-are-not-affine"),
        ),
    ),
    Chapter(
        "Which lengths weigh most",
        "What remains of the network is one number, $\\beta = \\rho n C/"
        "\\sqrt{\\Lambda}$, and one law, $\\epsilon_r \\propto \\binom{p-1}{r-1}"
        "\\beta^r$. Theorems 1 and 2 say that deep networks put all their weight in a "
        "narrow band around a share of the depth, and lemma 4 that scale alone moves "
        "the band anywhere. At the usual start that would be less than half the depth. "
        "We compute the law exactly, and up to a million layers.",
        (
            Finding("path_weights/weights-of-the-network"),
            Finding("path_weights/peak-limit"),
            Finding("path_weights/tie-under-the-hypothesis"),
            Finding("path_weights/narrow-band"),
            Finding("path_weights/band-of-root-depth"),
            Finding("path_weights/mirror-turns-the-scale"),
            Finding("path_weights/every-length-attained"),
            Finding("path_weights/scale-shifts-the-ensemble"),
            Finding("path_weights/chance-is-the-scale"),
            Finding("path_weights/below-half-depth"),
            Finding("path_weights/multiplier-favours-depth"),
            Finding("path_weights/multiplier-with-normaliser"),
        ),
    ),
    Chapter(
        "What the paths of real networks weigh",
        "The law is that of a model, and the paper measures no network with it. With "
        "its gates as a forward pass sets them, a real network is a sum over paths "
        "too, and what those of each length contribute can be computed exactly. We do "
        "so for random networks at the paper's scale of weights and at twice the "
        "variance, set the energies beside Eq 16 and beside independent paths, and "
        "delete branches, from the network and from its frozen paths.",
        (
            Finding("measured_ensemble/beta-is-rho"),
            Finding("measured_ensemble/deeper-than-eq-16"),
            Finding("measured_ensemble/norms-overstate"),
            Finding("measured_ensemble/peak-below-half"),
            Finding("measured_ensemble/peak-below-half-untied"),
            Finding("measured_ensemble/scale-sets-depth"),
            Finding("measured_ensemble/narrow-band"),
            Finding("measured_ensemble/width-of-a-squared-binomial"),
            Finding("measured_ensemble/width-of-layers-is-no-matter"),
            Finding("measured_ensemble/gradient-deeper-than-output"),
            Finding("measured_ensemble/deletions-add-up"),
            Finding("measured_ensemble/gates-make-up"),
            Finding("measured_ensemble/no-branch-is-spare"),
        ),
    ),
    Chapter(
        "Formulas and proofs as printed",
        "The rest is of the letter: whether the two lines of Eq 14 are equal, what the "
        "sketch of theorem 2 leaves to the reader and which sum Legendre's polynomial "
        "is, what continuity can prove of a whole number in lemma 4, how weights "
        "change with scale before Eq 19 and losses in it, and whether width makes "
        "networks deep. Each is computed as printed and as we read it.",
        (
            Finding("path_weights/sum-from-one"),
            Finding("path_weights/factor-of-the-lines"),
            Finding("path_weights/legendre-from-zero"),
            Finding("path_weights/normaliser-asymptotic"),
            Finding("path_weights/ends-at-the-printed-scale"),
            Finding("path_weights/depth-less-one-suffices"),
            Finding("path_weights/intervals-of-scale"),
            Finding("path_weights/normaliser-depends-on-scale"),
            Finding("path_weights/derivative-lacks-the-scale"),
            Finding("path_weights/wide-is-not-deep"),
        ),
    ),
    Chapter(
        "What would drive scales to grow",
        "Why should the band move as a network trains? The paper takes one skip, so "
        "that the loss has two homogeneous parts, puts a scale or the size of the "
        "weights at rest, makes one step of the weights, and asks which way the scale "
        "turns: theorem 3 for $\\lambda_l$, theorem 4 for $C$. We bring random losses "
        "to such points and differentiate.",
        (
            Finding("two_degree_losses/unskipped-scales-grow"),
            Finding("two_degree_losses/growth-is-strict"),
            Finding("two_degree_losses/skipped-scales-grow"),
            Finding("two_degree_losses/deep-dominance-not-needed"),
            Finding("two_degree_losses/deviations-held"),
            Finding("two_degree_losses/norm-is-driven"),
            Finding("two_degree_losses/euler-of-the-parts"),
            Finding("two_degree_losses/deep-gradients-stretch"),
            Finding("two_degree_losses/shallow-gradients-stretch-too"),
            Finding("two_degree_losses/norm-grows-anyway"),
            Finding("two_degree_losses/sign-of-the-derivative"),
            Finding("two_degree_losses/gradient-left-out"),
            Finding("two_degree_losses/deep-square-twice"),
            Finding("two_degree_losses/inverse-size-turns"),
        ),
    ),
    Chapter(
        "Do scales grow?",
        "Figures 1(d) and 1(e) are the evidence: scales of batch normalisation by "
        "layer as a network of ten layers learns to tell 50 Gaussians apart, and the "
        "norm of the weights of one without. Neither task nor training is given "
        "beyond that. We train such networks from several seeds, with the one scale a "
        "layer of equation 20, with ordinary batch normalisation and without, at two "
        "sizes of the readout, two rates and over several numbers of updates; and "
        "before training we follow the sizes that section 4.1 derives.",
        (
            Finding("batch_norm_scales/squares-add-up"),
            Finding("batch_norm_scales/deviations-grow"),
            Finding("batch_norm_scales/scales-grow"),
            Finding("batch_norm_scales/later-stages-higher"),
            Finding("batch_norm_scales/first-layer-differs"),
            Finding("batch_norm_scales/unskipped-scale-grows"),
            Finding("batch_norm_scales/scales-grow-late"),
            Finding("weight_norm_growth/norm-grows"),
            Finding("weight_norm_growth/norm-grows-steadily"),
            Finding("weight_norm_growth/every-layer-grows"),
            Finding("weight_norm_growth/growth-is-first-order"),
        ),
    ),
    Chapter(
        "Does the ensemble get deeper?",
        "That growing scales make a deeper ensemble is the paper's main claim, and it "
        "is argued from the law of path lengths alone. The ensemble of a real network "
        "can be measured: with its gates held, what paths of each length give to the "
        "output and to the gradient. We follow it, and the paper's own $\\beta$, "
        "through training on Gaussians, digits and images, and ask how much of their "
        "course the scales explain, which gradients dominate and how low the loss is "
        "by then. By the paper's argument depth should grow in all these trainings, "
        "with norms and without, and fall back when scales are put back.",
        (
            Finding("depth_along_training/initially-below-half"),
            Finding("depth_along_training/unit-scales-extremely-shallow"),
            Finding("depth_along_training/early-gradients-shallow"),
            Finding("depth_along_training/scales-control-depth"),
            Finding("depth_along_training/scale-is-lambda"),
            Finding("depth_along_training/deeper-with-batch-norm"),
            Finding("depth_along_training/deeper-without-norm"),
            Finding("depth_along_training/deeper-and-deeper"),
            Finding("depth_along_training/scales-are-the-mechanism"),
            Finding("depth_along_training/deep-gradients-dominate"),
            Finding("depth_along_training/scales-grow-under-deep-gradients"),
            Finding("depth_along_training/loss-is-low-before-depth"),
        ),
    ),
    Chapter(
        "And in other networks, and for gradients?",
        "The paper extrapolates from fully connected networks to others, and speaks of "
        "gradients once. We ask the same of convolutional networks for images and of "
        "the gradient, whether ensembles become deeper at least late in training, and "
        "whether gains or the paper's own $\\beta$, measured, foretell the depth.",
        (
            Finding("depth_along_training/images-initially-below-half"),
            Finding("depth_along_training/images-extremely-shallow"),
            Finding("depth_along_training/images-deeper-with-batch-norm"),
            Finding("depth_along_training/images-deeper-without-norm"),
            Finding("depth_along_training/images-deeper-and-deeper"),
            Finding("depth_along_training/images-scales-are-the-mechanism"),
            Finding("depth_along_training/gradients-follow-scales"),
            Finding("depth_along_training/gradients-deeper-with-batch-norm"),
            Finding("depth_along_training/gradients-deeper-without-norm"),
            Finding("depth_along_training/gradients-deeper-and-deeper"),
            Finding("depth_along_training/gradients-moved-by-scales"),
            Finding("depth_along_training/deeper-late"),
            Finding("depth_along_training/gains-foretell-depth"),
            Finding("depth_along_training/paper-s-beta-foretells-depth"),
        ),
    ),
    Chapter(
        "A glass in place of the network",
        "With independent couplings what is left is a spin glass: a random polynomial "
        "on a sphere, in which orders of interaction are lengths of paths. Its energy "
        "is said to have the same variance whatever the mixture, and two numbers, $v'$ "
        "and $v''$, to carry the rest. We sample such energies and differentiate them.",
        (
            Finding("spin_glass_field/pure-field"),
            Finding("spin_glass_field/variance-free-of-mixture"),
            Finding("spin_glass_field/one-factor-short"),
            Finding("spin_glass_field/single-order-no-spread"),
            Finding("spin_glass_field/radial-variance"),
            Finding("spin_glass_field/covariance-by-overlap"),
        ),
    ),
    Chapter(
        "How many critical points",
        "In the limit of many weights the mean number of critical points of low index "
        "grows exponentially, at a rate that the mixture decides. The rate is said to "
        "rise as the ensemble gets deeper, and to be largest without skips. We follow "
        "exact means from two dimensions to the limit, and find all critical points "
        "of sampled glasses where they can be found.",
        (
            Finding("critical_points/eq-31"),
            Finding("critical_points/minima-too"),
            Finding("critical_points/slow-approach"),
            Finding("critical_points/order-one-must-go"),
            Finding("critical_points/figure-1f-rises"),
            Finding("critical_points/figure-1f-ends"),
            Finding("critical_points/theorem-5"),
            Finding("critical_points/mixtures-have-fewer"),
            Finding("critical_points/residual-has-fewer"),
            Finding("critical_points/eq-48"),
            Finding("critical_points/gap-to-plain"),
            Finding("critical_points/index-on-the-sphere"),
            Finding("critical_points/counts-meet-kac-rice"),
            Finding("critical_points/counts-within-a-tenth"),
            Finding("critical_points/minima-meet-kac-rice"),
            Finding("critical_points/counts-below-an-energy"),
            Finding("critical_points/counted-mixtures-have-fewer"),
            Finding("critical_points/counted-residual-has-fewer"),
            Finding("critical_points/finite-dimensions-rise"),
        ),
    ),
)
