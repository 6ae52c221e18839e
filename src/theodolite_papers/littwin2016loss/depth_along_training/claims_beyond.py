"""Claims of ours on networks for images, on gradients, and on the law of Eq 16."""

from functools import partial

from theodolite.core import Choice, Claim, Test, below, beyond

from ..shared.trainings import grown
from .claims_tests import (
    GRADIENT,
    IMAGES,
    LAYER_SIZES,
    LAYERS,
    NORMED,
    OUTPUT,
    PLAIN,
    at_every_stage,
    begins_in,
    by_factor,
    by_scales,
    late,
    mediated,
    over_groups,
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
QUARTER = below(0.25, source="ours", why="half of half the depth")

SHALLOWER = "an ensemble that stays as deep as it began, or becomes shallower"
ALIGNED = "weights that align with one another at equal scales"
FIRST = "an ensemble that first becomes shallower"

images = partial(over_groups, families=IMAGES, parts=OUTPUT)
gradients = partial(over_groups, parts=GRADIENT)
both_kinds = partial(over_groups, families=LAYERS + IMAGES)


def _claim(
    name: str,
    statement: str,
    test: Test,
    rival: str,
    *choices: Choice,
    place: str,
    sizes: tuple[str, ...] | None = None,
) -> Claim:
    return beyond(
        name=name,
        place=place,
        statement=statement,
        test=test,
        rival=rival,
        choices=choices or (HALF,),
        sizes=sizes,
    )


of_images = partial(_claim, place="Beside section 4, for images")
of_gradients = partial(_claim, place="Beside section 4, for gradients")
ON_IMAGES = (
    of_images(
        "images-initially-below-half",
        "Networks for images, too, begin mostly below half their depth.",
        images(starts_mostly_below_half, parts=("output_below_half",), at_start=True),
        "half depth or more",
    ),
    of_images(
        "images-extremely-shallow",
        "Networks for images with batch normalisation begin extremely shallow, in "
        "their output and in early gradients.",
        over_groups(
            begins_in(QUARTER), norms=NORMED, parts=OUTPUT + GRADIENT, families=IMAGES
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
        images(at_every_stage),
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
        sizes=LAYER_SIZES,
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
        both_kinds(at_every_stage, parts=GRADIENT),
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
        sizes=LAYER_SIZES,
    ),
)
BEYOND = (*ON_IMAGES, *OF_GRADIENTS, *OF_COURSE)
