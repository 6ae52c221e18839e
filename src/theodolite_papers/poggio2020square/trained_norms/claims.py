"""Claims of figures 1 to 12 and the text about them."""

from theodolite.core import (
    Choice,
    Claim,
    Region,
    above,
    against,
    below,
    beyond,
    erratum,
    every,
    inside,
    lowest,
    measured,
    meets,
    our_margin,
    smallest,
    span,
)

from .claims_tests import (
    NO_DECAY,
    SHOWN,
    each_start,
    factor,
    forgets,
    larger_from_larger,
    less,
    wide_diverge,
)

TENTH = "a tenth is what one would see in a figure whose axis spans decades"
SAME = 1.1
READINGS = Choice(
    what="both readings of the captions, dense and convolutional networks",
    why="titles say ConvNet, and the captions of figures 1 and 10 say fully connected",
)
RHO = Choice(
    what="$\\rho$ is the product of the Frobenius norms of all four layers",
    why="section 2.1 defines it so, and figure 2 is headed Rho from All Layers; with "
    "batch normalisation the output feels the last layer's alone",
)
FOLDED = Choice(
    what="$\\rho$ is the product of the norms with batch normalisation folded in",
    why="only then are the layers of $f$ of norm 1, and its outputs bounded by 1",
)
ENDS = Choice(
    what="the end: the mean over the last five epochs, of runs that neither diverged "
    "nor lost all their outputs",
    why="mini-batches leave noise; runs that did not train are counted by themselves, "
    "and the largest start is the largest from which at least two runs trained",
)
NULL = Region(
    low=-1e-12, high=1e-12, low_open=False, high_open=False, source="rounding"
)

CLAIMS = (
    Claim(
        name="separable-early",
        place="Section 6.1, remarks",
        statement="From small starts average separability, $\\sum_n y_n f_n > 0$, is "
        "reached during the first iterations.",
        test=each_start(
            SHOWN[:2], "first_margin", above(0), read=lowest, smallest_only=True
        ),
        rival="outputs that point away from the labels on average",
        choices=(
            READINGS,
            Choice(
                what="the first iterations: the first epoch, with normalisation",
                why="the remark is on the flow of normalised networks",
            ),
        ),
    ),
    Claim(
        name="norm-grows-from-small-starts",
        place="Section 1.2, observation 1, figures 2, 7 and 11, first rows",
        statement="If $\\rho$ is small at initialisation it grows monotonically until "
        "a critical point is reached.",
        test=each_start(
            SHOWN,
            "rho_fall",
            below(
                0.05,
                source="ours",
                why="falls from the highest reading by less are mini-batch noise",
            ),
            smallest_only=True,
        ),
        rival="a norm that overshoots and falls back",
        choices=(READINGS, RHO),
    ),
    Claim(
        name="large-norms-shrink",
        place="Section 3, figures 2, 7 and 11, last rows",
        statement="If $\\rho$ is large it decreases until a minimum is found.",
        test=less("rho_end", "rho_start", largest_only=True),
        rival="norms that grow from large starts as well",
        choices=(
            READINGS,
            RHO,
            ENDS,
            Choice(what="large: the captions' largest starts", why="they call them so"),
        ),
    ),
    Claim(
        name="decay-forgets-the-start",
        place="Sections 3 and 6.1, figures 2 and 3",
        statement="With batch normalisation and weight decay training is rather "
        "independent of the initial conditions.",
        test=forgets("bn_wd", SAME, TENTH),
        rival="ends that keep the order of the starts",
        choices=(READINGS, RHO, ENDS),
    ),
    Claim(
        name="others-remember",
        place="Sections 3 and 6.1, figures 7 and 11",
        statement="Without weight decay, and without both, training strongly depends "
        "on the initial conditions.",
        test=larger_from_larger(
            "rho_end",
            NO_DECAY,
            factor(2, "a factor of two between ends is a strong dependence"),
            log=True,
        ),
        rival="norms that end alike",
        choices=(READINGS, RHO, ENDS),
    ),
    Claim(
        name="ratio-at-rest",
        place="Equation 7, figure 4",
        statement="At rest $\\sum_n y_n f_n / \\sum_n f_n^2$ is $\\rho$ times $1 + "
        "\\lambda/\\sum_n f_n^2$.",
        test=against(
            each_start(
                ("bn_wd",),
                "ratio_gap",
                our_margin(0.02, "a fiftieth is mini-batch noise"),
            ),
            each_start(
                ("bn_wd",),
                "ratio",
                above(1.02, source="ours", why="further from 1 than that noise"),
            ),
        ),
        rival="a ratio of 1, as without decay",
        choices=(
            READINGS,
            ENDS,
            Choice(
                what="$\\lambda = Nw/2$ for a library's decay $w$, and $f = g/\\rho_L$",
                why="the loss is a mean over $N$ samples, and half of the decay's "
                "gradient; $\\rho_L$ is what the paper's equations call $\\rho$",
            ),
        ),
    ),
    Claim(
        name="margins-are-the-inverse-norm",
        place="Sections 1.2 and 2.3.1, figures 8 and 12",
        statement="Without decay the margin becomes the same for all training samples, "
        "$1/\\rho$.",
        test=every(
            each_start(
                NO_DECAY,
                "output_margin",
                our_margin(0.05, "a twentieth from the label", centre=1.0),
            ),
            each_start(
                NO_DECAY,
                "late_spread",
                below(0.1, source="ours", why="nearly a horizontal line when sorted"),
            ),
        ),
        rival="margins that keep their spread",
        choices=(READINGS, ENDS),
    ),
    beyond(
        name="margins-narrow",
        place="Beside figures 5, 8, 9 and 12",
        statement="The spread of the margins over their mean is less at the end than "
        "after ten epochs, under every condition.",
        test=less("late_spread", "early_spread"),
        rival="margins that widen as they grow",
        choices=(READINGS, ENDS),
    ),
    Claim(
        name="loss-approaches-zero",
        place="Observation 1, figures 6 and 10",
        statement="Without decay the square loss approaches zero: all training data "
        "are interpolated.",
        test=each_start(
            NO_DECAY,
            "train_loss",
            below(0.01, source="ours", why="outputs within a tenth of their labels"),
        ),
        rival="a loss that stays",
        choices=(READINGS, ENDS),
    ),
    erratum(
        name="start-is-not-zero",
        place="Figure 7, caption",
        statement="The plot of $\\rho$ starts at zero.",
        printed="$\\rho(0) = 0$ despite an initialisation of $\\rho_k = 0$, because "
        "the scaling factor of batch normalisation starts from 0",
        corrected="figure 6's caption has no scaling factors (affine=False) and "
        "$\\rho_k = 0.1$ or $5$: $\\rho(0) = \\rho_k^4$, that is $10^{-4}$ or $625$",
        test=each_start(("bn",), "rho_start", NULL, read=smallest),
        corrected_test=meets(
            "rho_start",
            ("condition", "start"),
            below(1e-4, source="rounding", why="weights in single precision"),
        ),
        rival="a start at zero, from which nothing moves",
    ),
    erratum(
        name="figure-1-has-decay",
        place="Figure 1, caption",
        statement="Figures 1 to 5 show training that is rather independent of its "
        "start.",
        printed="No weight decay.",
        corrected="Weight decay of 0.01, as the same caption says before",
        test=forgets("bn_fast", SAME, TENTH),
        corrected_test=forgets("bn_wd", SAME, TENTH),
        rival="both settings forget, or neither",
        choices=(READINGS, RHO, ENDS),
    ),
    Claim(
        name="one-run-is-typical",
        place="Figure 6, caption",
        statement="A single run is typical for its settings.",
        test=each_start(
            ("bn",),
            "rho_end",
            below(0.2, source="ours", why="all runs would look alike in the figure"),
            read=span,
        ),
        rival="runs of one setting that end far apart",
        choices=(READINGS, RHO, ENDS),
    ),
    Claim(
        name="small-starts-generalise",
        place="Section 6.1, open problems",
        statement="Without decay, and without both, results are good provided that the "
        "initialisation is small.",
        test=larger_from_larger("test_error", NO_DECAY, above(0), log=False),
        rival="a test error that does not hang on the start",
        choices=(
            READINGS,
            ENDS,
            Choice(
                what="good: a lower test error than from the largest start",
                why="the paper names no error",
            ),
        ),
    ),
    Claim(
        name="outputs-far-below-one",
        place="Section 3",
        statement="The largest output of a normalised network is far below 1, so that "
        "the least norm of a solution is far above 1.",
        test=every(
            each_start(
                SHOWN, "largest_f", below(0.1, source="ours", why="far below 1")
            ),
            each_start(
                SHOWN, "folded_rho", above(10, source="ours", why="far above 1")
            ),
        ),
        rival="outputs near the bound of 1",
        choices=(READINGS, FOLDED, ENDS),
    ),
    beyond(
        name="every-run-trains",
        place="Beside figures 1, 6 and 10",
        statement="No run of the captions' settings diverges or loses all its outputs.",
        test=inside(
            smallest(measured("alive", lambda row: row["condition"] in SHOWN)),
            above(0.5, source="ours", why="1 for a run that trained, else 0"),
        ),
        rival="large starts without normalisation that blow up",
        choices=(READINGS,),
    ),
    beyond(
        name="wide-layers-cannot-rest",
        place="Beside figures 1 to 5",
        statement="At the captions' rate $\\eta = 0.1$ and momentum $\\mu = 0.9$ no "
        "network trains whose normalised units make the last layer's curvature $1 + "
        "(n-1)/\\pi$ exceed $2(1+\\mu)/\\eta$: beyond 117 units, from any start.",
        test=wide_diverge,
        rival="batch normalisation that makes any rate stable",
        choices=(
            Choice(
                what="curvature at the start, of independent normal units",
                why="it is known beforehand; units that agree curve more",
            ),
        ),
    ),
)
