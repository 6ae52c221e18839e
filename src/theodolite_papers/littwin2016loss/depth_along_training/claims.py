"""Claims of the abstract and section 4 on the path ensemble during training."""

from collections.abc import Callable
from functools import partial
from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    ReadAs,
    Region,
    Test,
    below,
    beyond,
    our_margin,
    readings,
)

from ..shared.trainings import grown
from .claims_driving import becomes_dominant, by_split, loss_before_depth, scales_grow
from .claims_tests import (
    GRADIENT,
    IMAGES,
    LAYERS,
    NORMED,
    OUTPUT,
    PLAIN,
    Make,
    begins_in,
    by_factor,
    by_scales,
    deeper_and_deeper,
    exponent_asides,
    follows,
    late,
    mediated,
    over_groups,
    starts_in,
    starts_mostly_below_half,
)

HALF = Choice(
    what="depth: the share of the depth that theorem 1 gives at the measured $\\beta$ "
    "of Eq 16, and the mean share of a network's branches that paths take, weighed by "
    "the energy that paths of this length give to the output, or to the gradient",
    why="the paper measures no ensemble; half depth is then a share of one half",
)
BY_INPUT = Choice(
    what="the gradient is that of the loss by the input of the first branch",
    why="the paper's is by the weights, for which no length of a path is single: a "
    "weight lies on paths of nearly all lengths",
)
EARLY = Choice(
    what="early: the start and readings up to ten updates",
    why="the paper says early in training and gives no number",
)
UNDONE = Choice(
    what="main: putting the scales back leaves the depth nearer to its start than to "
    "its end, so that more than half of the change is undone",
    why="a main mechanism does more than all others together",
)
REREAD = Choice(
    what="scales are those of the norms, or without norms the weights of the branches; "
    "weights stay, gates and the norms' deviations are read again",
    why="a network with other scales has other deviations, as it would in training",
)
KIND = Choice(
    what="on the paper's own kind of network: fully connected, a skip a layer, with a "
    "readout; for images there is a claim apart",
    why="equations 7 and 20 are of these, and the paper extrapolates to others",
)
# Ensembles that the paper draws or calls shallow.
SHALLOW = {
    "a tenth of the depth": (0.1, "figure 1(a)", "the ensemble of figure 1(a)"),
    "a quarter": (0.25, "ours", "half of half the depth"),
    "a third": (1 / 3, "figure 1(b)", "the ensemble of figure 1(b)"),
}


def extremely_shallow(make: Callable[[Region], Make], **which: Any) -> Test:
    """Judge networks by every share of the depth that a reader may call extreme."""
    return readings(
        *(
            ReadAs(
                f"below {name}",
                f"Extremely shallow is less than {name}.",
                source,
                over_groups(make(below(share, source="ours", why=why)), **which),
            )
            for name, (share, source, why) in SHALLOW.items()
        )
    )


SHALLOWER = "an ensemble that stays as deep as it began, or becomes shallower"
ALIGNED = "weights that align with one another at equal scales"
FIRST = "an ensemble that first becomes shallower"

images = partial(over_groups, families=IMAGES, parts=OUTPUT)
gradients = partial(over_groups, parts=GRADIENT)
both_kinds = partial(over_groups, families=LAYERS + IMAGES)


def _claim(
    name: str, statement: str, test: Test, rival: str, *choices: Choice, place: str
) -> Claim:
    return beyond(
        name=name,
        place=place,
        statement=statement,
        test=test,
        rival=rival,
        choices=choices or (HALF,),
    )


of_images = partial(_claim, place="Beside section 4, for images")
of_gradients = partial(_claim, place="Beside section 4, for gradients")
ON_IMAGES = (
    of_images(
        "images-initially-below-half",
        "Networks for images, too, begin mostly below half their depth.",
        images(starts_mostly_below_half, parts=("output_below_half",)),
        "half depth or more",
    ),
    of_images(
        "images-extremely-shallow",
        "Networks for images with batch normalisation begin extremely shallow, in "
        "their output and in early gradients.",
        extremely_shallow(
            begins_in, norms=NORMED, parts=OUTPUT + GRADIENT, families=IMAGES
        ),
        "a start near half depth",
        HALF,
        BY_INPUT,
        EARLY,
    ),
    of_images(
        "images-deeper-with-batch-norm",
        "Ensembles of networks for images with batch normalisation become deeper.",
        images(grown, norms=NORMED),
        SHALLOWER,
    ),
    of_images(
        "images-deeper-without-norm",
        "Ensembles of networks for images without normalisation become deeper.",
        images(grown, norms=PLAIN),
        SHALLOWER,
    ),
    of_images(
        "images-deeper-and-deeper",
        "Those of networks for images become deeper at every stage.",
        images(deeper_and_deeper),
        FIRST,
        HALF,
    ),
    of_images(
        "images-scales-are-the-mechanism",
        "In networks for images, putting the scales back undoes more than half of the "
        "change.",
        images(mediated, named="reset_{}"),
        ALIGNED,
        HALF,
        UNDONE,
        REREAD,
    ),
)
OF_GRADIENTS = (
    of_gradients(
        "gradients-follow-scales",
        "With larger scales gradients, too, come from deeper paths.",
        gradients(by_factor, named="scaled_{}"),
        "gradients whose paths do not hang on scales",
        HALF,
        BY_INPUT,
        REREAD,
    ),
    of_gradients(
        "gradients-deeper-with-batch-norm",
        "As networks of both kinds train with batch normalisation, gradients come "
        "from deeper paths.",
        both_kinds(grown, norms=NORMED, parts=GRADIENT, quarters=True),
        SHALLOWER,
        HALF,
        BY_INPUT,
    ),
    of_gradients(
        "gradients-deeper-without-norm",
        "So do those of networks of both kinds without normalisation.",
        both_kinds(grown, norms=PLAIN, parts=GRADIENT, quarters=True),
        SHALLOWER,
        HALF,
        BY_INPUT,
    ),
    of_gradients(
        "gradients-deeper-and-deeper",
        "Gradients of networks of both kinds come from deeper paths at every stage.",
        both_kinds(deeper_and_deeper, parts=GRADIENT, evenly=True),
        FIRST,
        HALF,
        BY_INPUT,
    ),
    of_gradients(
        "gradients-moved-by-scales",
        "For gradients of networks of both kinds, putting the scales back undoes more "
        "than half of the change.",
        both_kinds(mediated, parts=GRADIENT, named="reset_{}"),
        ALIGNED,
        HALF,
        BY_INPUT,
        UNDONE,
        REREAD,
    ),
)
OF_COURSE = (
    _claim(
        "deeper-late",
        "Past its first phase every ensemble becomes deeper, in output and gradient: "
        "at the end of training more than midway.",
        both_kinds(late, parts=OUTPUT + GRADIENT, of_all=True),
        "ensembles that go on becoming shallower",
        HALF,
        BY_INPUT,
        place="Beside section 4, claim 2",
    ),
    _claim(
        "gains-foretell-depth",
        "The law of equation 16, at the $\\beta$ that the measured gains of the "
        "branches lead to, gives the output's effective depth within a tenth of "
        "all branches, at the start and at the end of training.",
        both_kinds(by_scales("gain_beta"), parts=OUTPUT),
        "paths that interfere, so that gains say little of depths",
        place="Beside equation 16",
    ),
    _claim(
        "paper-s-beta-foretells-depth",
        "So does $\\beta = \\rho n C/\\sqrt{\\Lambda}$ with $\\Lambda = n$, from "
        "measured weights, gates and scales, for fully connected networks.",
        over_groups(by_scales("scale_beta"), parts=OUTPUT),
        "a scale that hangs on more than the weights' size",
        place="Beside equation 16 and the end of section 3",
    ),
)
BEYOND = (*ON_IMAGES, *OF_GRADIENTS, *OF_COURSE)
PROPORTIONAL = our_margin(
    0.25, "a doubled scale then multiplies $\\beta$ by 1.7 to 2.4", centre=1.0
)


CLAIMS = (
    Claim(
        name="initially-below-half",
        place="Abstract, section 1, section 3",
        statement="Initially the ensemble is mostly at depths lower than half the "
        "network's depth.",
        test=over_groups(
            starts_mostly_below_half, parts=("paper_depth", "output_below_half")
        ),
        rival="half depth, as a binomial of equal paths has, or more",
        choices=(HALF, KIND),
    ),
    Claim(
        name="unit-scales-extremely-shallow",
        place="Section 4, claim 3",
        statement="With batch normalisation the start $\\lambda = 1$ involves "
        "extremely shallow nets.",
        test=extremely_shallow(starts_in, norms=NORMED),
        rival="a start near half depth",
        choices=(HALF, KIND),
    ),
    Claim(
        name="early-gradients-shallow",
        place="Section 4.1",
        statement="With batch normalisation, gradients from early in training "
        "originate from extremely shallow paths.",
        test=extremely_shallow(begins_in, norms=NORMED, parts=GRADIENT),
        rival="gradients from paths near half depth",
        choices=(HALF, BY_INPUT, EARLY, KIND),
    ),
    Claim(
        name="scales-control-depth",
        place="Section 4, claim 1; lemma 4",
        statement="The distribution of depths is controlled by the scaling parameter: "
        "with all branches' scales halved or doubled the ensemble is shallower or "
        "deeper.",
        test=over_groups(by_factor, named="scaled_{}"),
        rival="depths that hang on the direction of the weights alone",
        choices=(HALF, REREAD, KIND),
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
                    over_groups(follows(PROPORTIONAL), norms=NORMED, named=quantity),
                )
                for name, what, source, quantity in (
                    (
                        "deviations held",
                        "$\\sigma_l$ keep their values.",
                        "equation 21 and theorem 3, which hold them",
                        "fixed_{}",
                    ),
                    (
                        "deviations read again",
                        "$\\sigma_l$ are those of the layers with the new scales.",
                        "equation 20; section 4.1, where they set the depth",
                        "scaled_{}",
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
        statement="The ensemble becomes deeper and deeper: at every stage of training "
        "more than at the one before.",
        test=over_groups(deeper_and_deeper, quarters=True, evenly=True),
        rival="an ensemble that first becomes shallower",
        choices=(HALF, KIND),
    ),
    Claim(
        name="scales-are-the-mechanism",
        place="Abstract; section 1",
        statement="The scaling is the main mechanism behind the change of depth: with "
        "all scales of a trained network put back to their start, more than half of "
        "the change is undone.",
        test=over_groups(mediated, named="reset_{}"),
        rival="weights that align with one another at equal scales",
        choices=(HALF, UNDONE, REREAD, KIND),
    ),
    Claim(
        name="deep-gradients-dominate",
        place="Section 4.2, after theorem 3",
        statement="As training progresses and shallow paths reach their minimum, the "
        "gradient $g_p$ of deeper paths becomes dominant: it ends longer than $g_m$, "
        "and its share grows.",
        test=by_split("such gradients", becomes_dominant),
        rival="a gradient that shallow paths dominate to the end",
        choices=(KIND,),
    ),
    Claim(
        name="scales-grow-under-deep-gradients",
        place="Section 4.2, after theorem 3",
        statement="$|\\lambda_l|$ of layers with a skip increases while the gradient "
        "of deeper paths is dominant.",
        test=by_split("dominant deep gradients", scales_grow),
        rival="scales that shrink although deep paths pull more",
        choices=(KIND,),
    ),
    Claim(
        name="loss-is-low-before-depth",
        place="Section 5, below Eq 31",
        statement="By the time the ensemble is deep enough the loss is already low.",
        test=loss_before_depth,
        rival="an ensemble that becomes deeper first, while the loss is high",
        choices=(HALF, KIND),
    ),
    *BEYOND,
)
