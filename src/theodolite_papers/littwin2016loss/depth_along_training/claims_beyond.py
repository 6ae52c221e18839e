"""The same questions of gradients and of networks for images, and what foretells."""

from functools import partial

from theodolite.core import Choice, Claim, Test, above, beyond

from .claims_choices import (
    BY_INPUT,
    EARLY,
    HALF,
    MIDWAY,
    MOSTLY,
    QUARTER,
    REREAD,
    STAGES,
    UNDONE,
)
from .claims_tests import (
    GRADIENT,
    IMAGES,
    LAYERS,
    NORMED,
    OUTPUT,
    PLAIN,
    begins_in,
    by_factor,
    by_scales,
    deeper,
    deeper_and_deeper,
    mediated,
    over_groups,
    starts_in,
)

SHALLOWER = "an ensemble that stays as deep as it began, or becomes shallower"
ALIGNED = "weights that align with one another at equal scales"
FIRST = "an ensemble that first becomes shallower"

images = partial(over_groups, families=IMAGES)
gradients = partial(over_groups, parts=GRADIENT)


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
        images(starts_in(above(0.5)), parts=("output_below_half",)),
        "half depth or more",
        MOSTLY,
    ),
    of_images(
        "images-extremely-shallow",
        "Networks for images with batch normalisation begin extremely shallow, in "
        "their output and in early gradients.",
        images(begins_in(QUARTER, 3), norms=NORMED, parts=OUTPUT + GRADIENT),
        "a start near half depth",
        HALF,
        BY_INPUT,
        EARLY,
    ),
    of_images(
        "images-deeper-with-batch-norm",
        "Ensembles of networks for images with batch normalisation become deeper.",
        images(deeper, norms=NORMED),
        SHALLOWER,
    ),
    of_images(
        "images-deeper-without-norm",
        "Ensembles of networks for images without normalisation become deeper.",
        images(deeper, norms=PLAIN),
        SHALLOWER,
    ),
    of_images(
        "images-deeper-and-deeper",
        "Those of networks for images become deeper at every stage.",
        images(deeper_and_deeper),
        FIRST,
        HALF,
        STAGES,
    ),
    of_images(
        "images-scales-are-the-mechanism",
        "In networks for images, putting the scales back undoes more than half of the "
        "change.",
        images(mediated),
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
        gradients(by_factor),
        "gradients whose paths do not hang on scales",
        HALF,
        BY_INPUT,
        REREAD,
    ),
    of_gradients(
        "gradients-deeper-with-batch-norm",
        "As networks of both kinds train with batch normalisation, gradients come "
        "from deeper paths.",
        gradients(deeper, norms=NORMED, families=LAYERS + IMAGES),
        SHALLOWER,
        HALF,
        BY_INPUT,
    ),
    of_gradients(
        "gradients-deeper-without-norm",
        "So do those of networks of both kinds without normalisation.",
        gradients(deeper, norms=PLAIN, families=LAYERS + IMAGES),
        SHALLOWER,
        HALF,
        BY_INPUT,
    ),
    of_gradients(
        "gradients-deeper-and-deeper",
        "Gradients of networks of both kinds come from deeper paths at every stage.",
        gradients(deeper_and_deeper, families=LAYERS + IMAGES),
        FIRST,
        HALF,
        BY_INPUT,
        STAGES,
    ),
    of_gradients(
        "gradients-moved-by-scales",
        "For gradients of networks of both kinds, putting the scales back undoes more "
        "than half of the change.",
        gradients(mediated, families=LAYERS + IMAGES),
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
        over_groups(
            partial(deeper, late=True),
            parts=OUTPUT + GRADIENT,
            families=LAYERS + IMAGES,
        ),
        "ensembles that go on becoming shallower",
        HALF,
        BY_INPUT,
        MIDWAY,
        place="Beside section 4, claim 2",
    ),
    _claim(
        "gains-foretell-depth",
        "The law of equation 16, at the $\\beta$ that the measured gains of the "
        "branches lead to, gives the output's effective depth within a tenth of "
        "all branches, at the start and at the end of training.",
        over_groups(by_scales("gain_beta"), families=LAYERS + IMAGES),
        "paths that interfere, so that gains say little of depths",
        place="Beside equation 16",
    ),
    _claim(
        "paper-s-beta-foretells-depth",
        "So does $\\beta = \\rho n C/\\sqrt{\\Lambda}$ with $\\Lambda = n$, from "
        "measured weights, gates and scales, for fully connected networks.",
        over_groups(by_scales("scale_beta")),
        "a scale that hangs on more than the weights' size",
        place="Beside equation 16 and the end of section 3",
    ),
)
BEYOND = (*ON_IMAGES, *OF_GRADIENTS, *OF_COURSE)
