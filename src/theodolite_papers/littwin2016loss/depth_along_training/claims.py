"""Claims of the abstract and section 4 on the path ensemble during training."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from theodolite.core import Choice, Claim, ReadAs, Region, Test, our_margin, readings

from ..shared.trainings import ONE_WIDTH, grown
from .claims_beyond import BEYOND, BY_INPUT, EARLY, HALF, QUARTER, REREAD, UNDONE
from .claims_driving import (
    RISE,
    becomes_dominant,
    by_split,
    loss_before_depth,
    scales_grow,
)
from .claims_tests import (
    BOTH,
    GRADIENT,
    LAYER_SIZES,
    NORMED,
    OUTPUT,
    PLAIN,
    Make,
    begins_in,
    begins_shallower_than_plain,
    by_factor,
    deeper_and_deeper,
    exponent_asides,
    follows,
    mediated,
    over_groups,
    shallower_than_plain,
    starts_in,
    starts_mostly_below_half,
)

KIND = Choice(
    what="on the paper's own kind of network: fully connected, a skip a layer, with a "
    "readout; for images there is a claim apart",
    why="equations 7 and 20 are of these, and the paper extrapolates to others",
)
NO_TENTH = Choice(
    what="extremely shallow: below a quarter, or shallower than without normalisation; "
    "not below a tenth, as figure 1(a) is",
    why="energies that grow by one a layer (section 4.1) give paths $(H_p - 1)/(p - "
    "1)$ of the branches: 0.21 at 10 layers, 0.14 at 20, below a tenth from 32 on; "
    "figure 1(b), a third, is nowhere called shallow",
)
TEN_LAYERS = ("figure 1(a) to (c) has 100 layers, these networks 10 and 20",)
SPLIT_BY_LENGTH = (
    "a skip a layer, and paths split by length: in section 4.2 there is one skip",
)


def extremely_shallow(
    make: Callable[[Region], Make], against_plain: Make, **which: Any
) -> Test:
    """Judge networks by a share of the depth, and beside those without norms."""
    return readings(
        ReadAs(
            "below a quarter",
            "Extremely shallow is less than a quarter of the depth.",
            "ours: less than half is called shallow, and this extremely so",
            over_groups(make(QUARTER), **which),
        ),
        ReadAs(
            "shallower than without normalisation",
            "Paths are shorter than those of the network without normalisation.",
            "section 4.1: effectively reduces the influence of deeper paths",
            over_groups(against_plain, **which),
        ),
    )


PROPORTIONAL = our_margin(
    0.25, "a doubled scale then multiplies $\\beta$ by 1.7 to 2.4", centre=1.0
)


OF_PAPER = (
    Claim(
        name="initially-below-half",
        place="Abstract, section 1, section 3",
        statement="Initially the ensemble is mostly at depths lower than half the "
        "network's depth.",
        test=over_groups(
            starts_mostly_below_half,
            parts=("output_below_half", "paper_depth"),
            at_start=True,
        ),
        rival="half depth, as a binomial of equal paths has, or more",
        choices=(HALF, KIND),
    ),
    Claim(
        name="unit-scales-extremely-shallow",
        place="Section 4, claim 3",
        statement="With batch normalisation the start $\\lambda = 1$ involves "
        "extremely shallow nets.",
        test=extremely_shallow(
            starts_in, shallower_than_plain, norms=NORMED, at_start=True
        ),
        rival="a start near half depth",
        choices=(HALF, KIND, NO_TENTH),
        departures=TEN_LAYERS,
    ),
    Claim(
        name="early-gradients-shallow",
        place="Section 4.1",
        statement="With batch normalisation, gradients from early in training "
        "originate from extremely shallow paths.",
        test=extremely_shallow(
            begins_in, begins_shallower_than_plain, norms=NORMED, parts=GRADIENT
        ),
        rival="gradients from paths near half depth",
        choices=(HALF, BY_INPUT, EARLY, KIND, NO_TENTH),
        departures=TEN_LAYERS,
    ),
    Claim(
        name="scales-control-depth",
        place="Section 4, claim 1; lemma 4",
        statement="The distribution of depths is controlled by the scaling parameter: "
        "with all branches' scales halved or doubled the ensemble is shallower or "
        "deeper.",
        test=over_groups(by_factor, named="scaled_{}", parts=OUTPUT),
        rival="depths that hang on the direction of the weights alone",
        choices=(
            REREAD,
            KIND,
            Choice(
                what="the output's depth alone; to any depth is lemma 4, judged apart",
                why="$\\beta$ of Eq 16 is proportional to $C$ by definition",
            ),
        ),
    ),
    Claim(
        name="scale-is-lambda",
        place="Section 4, claim 3",
        statement="In networks with batch normalisation $C$ is directly embodied as "
        "the scale $\\lambda$: $\\beta$, which is proportional to $C$, is so to "
        "$\\lambda$.",
        test=readings(
            *(
                ReadAs(
                    name,
                    what,
                    source,
                    over_groups(
                        follows(PROPORTIONAL), norms=NORMED, named=quantity, parts=parts
                    ),
                )
                for name, what, source, quantity, parts in (
                    (
                        "deviations read again",
                        "$\\sigma_l$ are those of the layers with the new scales.",
                        "equation 20; section 4.1, where they set the depth",
                        "scaled_{}",
                        BOTH,
                    ),
                    (
                        "deviations held",
                        "$\\sigma_l$ keep their values; the output is read, since "
                        "$\\beta$ of Eq 16 is then proportional by definition.",
                        "equation 21 and theorem 3, which hold them",
                        "fixed_{}",
                        OUTPUT,
                    ),
                )
            )
        ),
        rival="deviations that grow with the scales and take most of it back",
        choices=(HALF, KIND),
        asides=exponent_asides(NORMED + PLAIN, "scaled_output_depth"),
    ),
    Claim(
        name="deeper-with-batch-norm",
        place="Abstract; section 4, claims 2 and 3",
        statement="As training progresses the ensemble of a network with batch "
        "normalisation becomes deeper.",
        test=over_groups(grown, norms=NORMED, quarters=True),
        rival="an ensemble that stays as deep as it began, or becomes shallower",
        choices=(HALF, KIND),
    ),
    Claim(
        name="deeper-without-norm",
        place="Section 4, claim 2; section 4.2",
        statement="So does that of a network without batch normalisation, as $C$ "
        "grows.",
        test=over_groups(grown, norms=PLAIN, quarters=True),
        rival="an ensemble that stays as deep as it began, or becomes shallower",
        choices=(HALF, KIND),
    ),
    Claim(
        name="deeper-and-deeper",
        place="Abstract; section 4, claim 2",
        statement="As training progresses the ensemble becomes deeper and deeper.",
        test=deeper_and_deeper(),
        rival="an ensemble that first becomes shallower",
        choices=(HALF, KIND),
        departures=ONE_WIDTH,
    ),
    Claim(
        name="scales-are-the-mechanism",
        place="Abstract; section 1",
        statement="The main mechanism that controls the change of depth is the "
        "scaling.",
        test=over_groups(mediated, named="reset_{}"),
        rival="weights that align with one another at equal scales",
        choices=(HALF, UNDONE, REREAD, KIND),
        departures=(*ONE_WIDTH, "no training with its scales held"),
    ),
    Claim(
        name="deep-gradients-dominate",
        place="Section 4.2, after theorem 3",
        statement="As shallow paths reach a local minimum, the gradient $g_p$ of "
        "deeper paths becomes dominant over $g_m$.",
        test=by_split("such gradients", becomes_dominant),
        rival="a gradient that shallow paths dominate to the end",
        choices=(
            KIND,
            Choice(
                what="dominant: longer than $g_m$ at the end of training",
                why="theorem 3 assumes it so; the text says when, not whether",
            ),
        ),
        departures=SPLIT_BY_LENGTH,
    ),
    Claim(
        name="scales-grow-under-deep-gradients",
        place="Section 4.2, after theorem 3",
        statement="$|\\lambda_l|$ of a layer with a skip increases when the gradient "
        "of deeper paths becomes dominant.",
        test=by_split("dominant deep gradients", scales_grow),
        rival="scales that shrink although deep paths pull more",
        choices=(KIND,),
        departures=(
            *SPLIT_BY_LENGTH,
            "scales are not at rest, as theorem 3 assumes",
        ),
    ),
    Claim(
        name="loss-is-low-before-depth",
        place="Section 5, below Eq 31",
        statement="By the time the ensemble is deep enough the loss is already low.",
        test=loss_before_depth,
        rival="an ensemble that becomes deeper first, while the loss is high",
        choices=(
            HALF,
            KIND,
            Choice(
                what="deep enough: half of the rise in depth, of networks whose depth "
                f"rises by {RISE:g} of all branches; others have no such time and are "
                "no reading, whatever their loss",
                why="the paper says by the time, and gives no depth",
            ),
        ),
    ),
)
CLAIMS = (*(replace(claim, sizes=LAYER_SIZES) for claim in OF_PAPER), *BEYOND)
