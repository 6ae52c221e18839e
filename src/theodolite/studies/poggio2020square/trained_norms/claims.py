"""What figures 1 to 12 and the text about them say."""

from theodolite.core import (
    Choice,
    Claim,
    Kind,
    Region,
    above,
    against,
    alike,
    apart,
    below,
    every,
    inside,
    measured,
    predicted,
    smallest,
    span,
)
from theodolite.studies.poggio2020square.shared.rows import lowest
from theodolite.studies.poggio2020square.trained_norms.claims_tests import (
    LARGE,
    NO_DECAY,
    SHOWN,
    SMALL,
    forgets,
    in_families,
    less,
    of,
    remembers,
    runs_inside,
)
from theodolite.studies.poggio2020square.trained_norms.config import CONDITIONS

DECAYED = tuple(("bn_wd", start) for start in CONDITIONS["bn_wd"].starts)
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
ENDS = Choice(
    what="the end: the mean over the last five epochs, of runs that neither diverged "
    "nor lost all their outputs",
    why="mini-batches leave noise; runs that did not train are counted by themselves",
)
NULL = Region(
    low=-1e-12, high=1e-12, low_open=False, high_open=False, source="rounding"
)

CLAIMS = (
    Claim(
        name="separable-early",
        place="Section 6.1, remarks",
        statement=(
            "From small starts average separability, $\\sum_n y_n f_n > 0$, is reached "
            "during the first iterations."
        ),
        test=in_families(
            "first_margin",
            [
                lambda family, run=run: inside(
                    lowest(of("first_margin", run, family)), above(0)
                )
                for run in SMALL[:2]
            ],
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
        statement=(
            "If $\\rho$ is small at initialisation it grows monotonically until a "
            "critical point is reached."
        ),
        test=runs_inside(
            "rho_fall",
            SMALL,
            below(
                0.05,
                source="ours",
                why="falls from the highest reading by less are mini-batch noise",
            ),
        ),
        rival="a norm that overshoots and falls back",
        choices=(READINGS, RHO),
    ),
    Claim(
        name="large-norms-shrink",
        place="Section 3, figures 2, 7 and 11, last rows",
        statement="If $\\rho$ is large it decreases until a minimum is found.",
        test=less(("rho_end", LARGE), ("rho_start", LARGE), log=True),
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
        statement=(
            "With batch normalisation and weight decay training is rather independent "
            "of the initial conditions."
        ),
        test=forgets("bn_wd", SAME, TENTH),
        rival="ends that keep the order of the starts",
        choices=(READINGS, RHO, ENDS),
    ),
    Claim(
        name="others-remember",
        place="Sections 3 and 6.1, figures 7 and 11",
        statement=(
            "Without weight decay, and without both, training strongly depends on the "
            "initial conditions."
        ),
        test=remembers(
            ("bn", "plain"), 2.0, "a factor of two between ends is a strong dependence"
        ),
        rival="norms that end alike",
        choices=(READINGS, RHO, ENDS),
    ),
    Claim(
        name="ratio-at-rest",
        place="Equation 7, figure 4",
        statement=(
            "At rest $\\sum_n y_n f_n / \\sum_n f_n^2$ is $\\rho$ times "
            "$1 + \\lambda/\\sum_n f_n^2$."
        ),
        test=against(
            runs_inside(
                "ratio_gap", DECAYED, alike(0.02, "a fiftieth is mini-batch noise")
            ),
            runs_inside(
                "ratio",
                DECAYED,
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
        statement=(
            "Without decay the margin becomes the same for all training samples, "
            "$1/\\rho$."
        ),
        test=every(
            runs_inside(
                "output_margin",
                NO_DECAY,
                alike(0.05, "a twentieth from the label", centre=1.0),
            ),
            runs_inside(
                "late_spread",
                NO_DECAY,
                below(0.1, source="ours", why="nearly a horizontal line when sorted"),
            ),
        ),
        rival="margins that keep their spread",
        choices=(READINGS, ENDS),
    ),
    Claim(
        name="margins-narrow",
        place="Beside figures 5, 8, 9 and 12",
        kind=Kind.BEYOND,
        statement=(
            "The spread of the margins over their mean is less at the end than after "
            "ten epochs, under every condition."
        ),
        test=less(("late_spread", SHOWN), ("early_spread", SHOWN), log=True),
        rival="margins that widen as they grow",
        choices=(READINGS, ENDS),
    ),
    Claim(
        name="loss-approaches-zero",
        place="Observation 1, figures 6 and 10",
        statement=(
            "Without decay the square loss approaches zero: all training data are "
            "interpolated."
        ),
        test=runs_inside(
            "train_loss",
            NO_DECAY,
            below(0.01, source="ours", why="outputs within a tenth of their labels"),
        ),
        rival="a loss that stays",
        choices=(READINGS, ENDS),
    ),
    Claim(
        name="start-is-not-zero",
        place="Figure 7, caption",
        kind=Kind.ERRATUM,
        statement="The plot of $\\rho$ starts at zero.",
        printed=(
            "$\\rho(0) = 0$ despite an initialisation of $\\rho_k = 0$, because the "
            "scaling factor of batch normalisation starts from 0"
        ),
        corrected=(
            "figure 6's caption has no scaling factors (affine=False) and "
            "$\\rho_k = 0.1$ or $5$: $\\rho(0) = \\rho_k^4$, that is $10^{-4}$ or $625$"
        ),
        test=in_families(
            "rho_start",
            [
                lambda family, start=start: inside(
                    smallest(of("rho_start", ("bn", start), family)), NULL
                )
                for start in CONDITIONS["bn"].starts
            ],
        ),
        corrected_test=inside(
            apart(
                predicted("rho_start"), measured("rho_start"), ("condition", "start")
            ),
            below(1e-4, source="rounding", why="weights in single precision"),
        ),
    ),
    Claim(
        name="figure-1-has-decay",
        place="Figure 1, caption",
        kind=Kind.ERRATUM,
        statement=(
            "Figures 1 to 5 show training that is rather independent of its start."
        ),
        printed="No weight decay.",
        corrected="Weight decay of 0.01, as the same caption says before",
        test=forgets("bn_fast", SAME, TENTH),
        corrected_test=forgets("bn_wd", SAME, TENTH),
        choices=(READINGS, RHO, ENDS),
    ),
    Claim(
        name="one-run-is-typical",
        place="Figure 6, caption",
        statement="A single run is typical for its settings.",
        test=in_families(
            "rho_end",
            [
                lambda family, start=start: inside(
                    span(of("rho_end", ("bn", start), family)),
                    below(
                        0.2,
                        source="ours",
                        why="all runs would look alike in the figure",
                    ),
                )
                for start in CONDITIONS["bn"].starts
            ],
        ),
        rival="runs of one setting that end far apart",
        choices=(READINGS, RHO, ENDS),
    ),
    Claim(
        name="small-starts-generalise",
        place="Section 6.1, open problems",
        statement=(
            "Without decay, and without both, results are good provided that the "
            "initialisation is small."
        ),
        test=less(("test_error", SMALL[1:]), ("test_error", LARGE[1:]), log=False),
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
        statement=(
            "The largest output of a normalised network is far below 1, so that the "
            "least norm of a solution is far above 1."
        ),
        test=every(
            runs_inside(
                "largest_f", SHOWN, below(0.1, source="ours", why="far below 1")
            ),
            runs_inside("rho_end", SHOWN, above(10, source="ours", why="far above 1")),
        ),
        rival="outputs near the bound of 1",
        choices=(READINGS, RHO, ENDS),
    ),
    Claim(
        name="every-run-trains",
        place="Beside figures 1, 6 and 10",
        kind=Kind.BEYOND,
        statement=(
            "No run of the captions' settings diverges or loses all its outputs."
        ),
        test=in_families(
            "alive",
            [
                lambda family, run=run: inside(
                    smallest(of("alive", run, family)),
                    above(0.5, source="ours", why="1 for a run that trained, else 0"),
                )
                for run in SHOWN
            ],
        ),
        rival="large starts without normalisation that blow up",
        choices=(READINGS,),
    ),
)
