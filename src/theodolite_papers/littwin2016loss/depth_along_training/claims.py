"""What the abstract and section 4 assert of the ensemble of a network in training."""

from theodolite.core import Claim, above, our_margin

from .claims_beyond import BEYOND
from .claims_choices import (
    BY_INPUT,
    EARLY,
    HALF,
    KIND,
    MOSTLY,
    QUARTER,
    REREAD,
    STAGES,
    UNDONE,
)
from .claims_exponent import exponents_told, follows
from .claims_tests import (
    GRADIENT,
    NORMED,
    PLAIN,
    begins_in,
    by_factor,
    deeper,
    deeper_and_deeper,
    mediated,
    over_groups,
    starts_in,
)

PROPORTIONAL = our_margin(
    0.25, "a doubled scale then multiplies $\\beta$ by 1.7 to 2.4", centre=1.0
)

CLAIMS = (
    Claim(
        name="initially-below-half",
        place="Abstract, section 1, section 3",
        statement=(
            "Initially the ensemble is mostly at depths lower than half the network's "
            "depth."
        ),
        test=over_groups(starts_in(above(0.5)), parts=("output_below_half",)),
        rival="half depth, as a binomial of equal paths has, or more",
        choices=(MOSTLY, KIND),
    ),
    Claim(
        name="unit-scales-extremely-shallow",
        place="Section 4, claim 3",
        statement=(
            "With batch normalisation the start $\\lambda = 1$ involves extremely "
            "shallow nets."
        ),
        test=over_groups(starts_in(QUARTER), norms=NORMED),
        rival="a start near half depth",
        choices=(HALF, KIND),
    ),
    Claim(
        name="early-gradients-shallow",
        place="Section 4.1",
        statement=(
            "With batch normalisation, gradients from early in training originate from "
            "extremely shallow paths."
        ),
        test=over_groups(begins_in(QUARTER, 3), norms=NORMED, parts=GRADIENT),
        rival="gradients from paths near half depth",
        choices=(HALF, BY_INPUT, EARLY, KIND),
    ),
    Claim(
        name="scales-control-depth",
        place="Section 4, claim 1; lemma 4",
        statement=(
            "The distribution of depths is controlled by the scaling parameter: with "
            "all branches' scales halved or doubled the ensemble is shallower or "
            "deeper."
        ),
        test=over_groups(by_factor),
        rival="depths that hang on the direction of the weights alone",
        choices=(HALF, REREAD, KIND),
    ),
    Claim(
        name="scale-is-lambda",
        place="Section 4, claim 3",
        statement=(
            "In networks with batch normalisation $C$ is directly embodied as the "
            "scale $\\lambda$: $\\beta$, which is proportional to $C$, is so to "
            "$\\lambda$."
        ),
        test=over_groups(follows(PROPORTIONAL), norms=NORMED),
        rival="deviations that grow with the scales and take most of it back",
        choices=(HALF, REREAD, KIND),
        asides=exponents_told(NORMED + PLAIN, "output_depth"),
    ),
    Claim(
        name="deeper-with-batch-norm",
        place="Abstract; section 4, claims 2 and 3",
        statement=(
            "As training progresses the ensemble of a network with batch normalisation "
            "becomes deeper."
        ),
        test=over_groups(deeper, norms=NORMED),
        rival="an ensemble that stays as deep as it began, or becomes shallower",
        choices=(HALF, KIND),
    ),
    Claim(
        name="deeper-without-norm",
        place="Section 4, claim 2; section 4.2",
        statement=(
            "So does that of a network without batch normalisation, as $C$ grows."
        ),
        test=over_groups(deeper, norms=PLAIN),
        rival="an ensemble that stays as deep as it began, or becomes shallower",
        choices=(HALF, KIND),
    ),
    Claim(
        name="deeper-and-deeper",
        place="Abstract; section 4, claim 2",
        statement=(
            "The ensemble becomes deeper and deeper: at every stage of training more "
            "than at the one before."
        ),
        test=over_groups(deeper_and_deeper),
        rival="an ensemble that first becomes shallower",
        choices=(HALF, STAGES, KIND),
    ),
    Claim(
        name="scales-are-the-mechanism",
        place="Abstract; section 1",
        statement=(
            "The scaling is the main mechanism behind the change of depth: with all "
            "scales of a trained network put back to their start, more than half of "
            "the change is undone."
        ),
        test=over_groups(mediated),
        rival="weights that align with one another at equal scales",
        choices=(HALF, UNDONE, REREAD, KIND),
    ),
    *BEYOND,
)
