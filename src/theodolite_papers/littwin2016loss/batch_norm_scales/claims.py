"""What section 4.1 and figure 1(d) claim of the scales of batch normalisation."""

from theodolite.core import (
    Choice,
    Claim,
    above,
    beyond,
    each,
    erratum,
    every,
    inside,
    mean,
    measured,
    our_margin,
    trend,
)

from .claims_tests import (
    WIDE,
    deviations,
    ends,
    every_layer_grown,
    first_differs,
    grown,
    higher_lines,
    scale,
    skipped,
    wide_increments,
)

PRINTED = each(
    "layer",
    measured("increment"),
    lambda layer: inside(
        mean(measured("increment", layer=layer)), our_margin(0.1, WIDE, centre=1.0)
    ),
)
LATE = Choice(
    what="late in training: from the third stage before the last on",
    why="theorem 3 speaks of scales at rest, which they are not at first",
)
APART = Choice(
    what="differently: at the end its scale is further from the mean of all others "
    "than that of any other layer is, network by network",
    why="any two layers differ; one stands out if it is the furthest from the rest",
)
SCALES = Choice(
    what="of ordinary batch normalisation, the mean magnitude over a layer's units",
    why="the paper has one number a layer",
)

CLAIMS = (
    erratum(
        name="squares-add-up",
        place="Section 4.1, after equation 20",
        statement=(
            "With $\\lambda_l = 1$ the mean square of a unit grows by one a layer."
        ),
        printed="$E[N_{l+1}(x)_j^2] = 1 + E[N_l(x)_j^2]$",
        corrected=(
            "ReLU outputs have a mean and $N_l \\geq 0$: "
            "$q' = q + q/(2\\sigma^2) + (2M/\\sigma)\\sqrt{q/2\\pi}$ with "
            "$q = E N_l^2$, $M = E N_l$, which grows faster and faster"
        ),
        test=PRINTED,
        corrected_test=wide_increments,
        rival="increments of $\\pi/(\\pi-1)$, without the product of the means",
    ),
    Claim(
        name="deviations-grow",
        place="Section 4.1",
        statement=(
            "At the start the deviation $\\sigma_l$ of the ReLU outputs increases with "
            "depth."
        ),
        test=trend(measured("deviation"), over="layer", slope_in=above(0)),
        rival="deviations that level off",
        choices=(
            Choice(
                what="increases: the slope of $\\log\\sigma_l$ over $\\log l$ over all "
                "layers",
                why="from one layer to the next it need not",
            ),
        ),
        asides=deviations,
    ),
    Claim(
        name="scales-grow",
        place="Section 1, section 4.2",
        statement=(
            "The scales $|\\lambda_l|$ grow as training progresses: that of every "
            "layer with a skip ends above its start."
        ),
        test=every_layer_grown("scalar", 0),
        rival="scales that end where they began, or lower",
        choices=(
            Choice(
                what="every layer, not their mean",
                why="the paper speaks of $|\\lambda_l|$ and plots it layer by layer",
            ),
        ),
        asides=ends("scalar"),
    ),
    beyond(
        name="scales-grow-on-average",
        place="Beside figure 1(d)",
        statement=(
            "Averaged over the layers with a skip the scales end above their start."
        ),
        test=grown(skipped("scalar"), "scalar"),
        rival="scales that end where they began, or lower",
    ),
    Claim(
        name="later-stages-higher",
        place="Figure 1(d), caption; section 4.2",
        statement=(
            "The increase is steady: later stages of training lie higher, each above "
            "the one before."
        ),
        test=higher_lines("scalar"),
        rival="scales that fall first and rise later",
        choices=(
            Choice(
                what="stages evenly spaced in the logarithm of the step, the first "
                "after one update; a line is the mean of its layers with a skip",
                why="the paper does not say at which steps its lines are drawn, and "
                "lines may cross in single layers",
            ),
        ),
    ),
    Claim(
        name="first-layer-differs",
        place="Section 4.2, figure 1(d)",
        statement=(
            "The first layer, which cannot be skipped, behaves differently from the "
            "other layers."
        ),
        test=first_differs("scalar"),
        rival="a scale that is no further from the rest than that of another layer",
        choices=(APART,),
        asides=ends("scalar"),
    ),
    Claim(
        name="unskipped-scale-grows",
        place="Section 4.2, after theorem 3",
        statement=(
            "$|\\lambda_l|$ increases for layers that have no skip: here the first."
        ),
        test=grown(scale("scalar", layer=1), "scalar"),
        rival="a first scale that shrinks",
    ),
    beyond(
        name="scales-grow-late",
        place="Beside figure 1(d)",
        statement="Late in training the scale of every layer with a skip grows.",
        test=every_layer_grown("scalar", -3),
        rival="some layers that still shrink",
        choices=(LATE,),
    ),
    beyond(
        name="standard-scales-grow",
        place="Beside figure 1(d)",
        statement=(
            "With ordinary batch normalisation the scales, averaged over the layers "
            "with a skip, end above their start, and late in training each one grows."
        ),
        test=every(grown(skipped("batch"), "batch"), every_layer_grown("batch", -3)),
        rival="scales that the shifts and the single units make needless",
        choices=(SCALES, LATE),
    ),
    beyond(
        name="standard-first-layer-differs",
        place="Beside figure 1(d)",
        statement=(
            "With ordinary batch normalisation, too, the first layer's scale ends "
            "further from the rest than that of any other layer."
        ),
        test=first_differs("batch"),
        rival="a scale that is no further from the rest than that of another layer",
        choices=(SCALES, APART),
        asides=ends("batch"),
    ),
)
