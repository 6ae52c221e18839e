"""Claims of figures 1 to 12 and the text about them."""

import math

from theodolite.core import (
    Choice,
    Claim,
    Grade,
    ReadAs,
    Region,
    above,
    below,
    beyond,
    erratum,
    highest,
    inside,
    lowest,
    measured,
    meets,
    our_margin,
    readings,
    smallest,
)

from .claims_starts import (
    as_with_both,
    depends,
    forgets,
    larger_from_larger,
    remembers,
    usually_small,
)
from .claims_tests import (
    FOLDED,
    INTERPOLATED,
    LAST,
    NO_DECAY,
    NORMALISED,
    PRODUCT,
    SHOWN,
    each_start,
    factor_between,
    fall_of_small,
    interpolating,
    large_shrink,
    less,
    of,
    wide_diverge,
)
from .claims_tests import (
    WORDS as WORDS,
)

DIGITS = ("airplanes and automobiles, and widths, are ours: the captions name neither",)
DESCENT = (*DIGITS, "stochastic descent with momentum, where the text has the flow")
ENDS = Choice(
    what="the end: the mean over the last five epochs, of runs that are alive",
    why="mini-batches leave noise; dead runs are counted by themselves, and the "
    "largest start is the largest from which at least two runs are alive",
)
TWENTIETH, HORIZONTAL = "a twentieth from the label", "nearly a horizontal line"
NULL = Region(
    low=-1e-12, high=1e-12, low_open=False, high_open=False, source="rounding"
)

CLAIMS = (
    beyond(
        name="separable-early",
        place="Beside section 6.1, which assumes it",
        statement="From small starts average separability, $\\sum_n y_n f_n > 0$, is "
        "reached during the first iterations.",
        test=each_start(
            NORMALISED, "first_margin", above(0), read=lowest, smallest_only=True
        ),
        rival="outputs that point away from the labels on average",
        choices=(
            Choice(
                what="the first iterations: the first epoch, with normalisation",
                why="the remark is on the flow of normalised networks",
            ),
        ),
        departures=DIGITS,
    ),
    Claim(
        name="norm-grows-from-small-starts",
        place="Section 1.2, observation 1, figures 2, 7 and 11, first rows",
        statement="Under separability, if $\\rho$ is small at initialisation, it "
        "grows monotonically until a critical point is reached.",
        test=fall_of_small(
            below(
                0.5,
                source="ours",
                why="mini-batches move norms at rest by up to a third",
            )
        ),
        rival="a norm that overshoots and falls back",
        departures=DESCENT,
    ),
    Claim(
        name="large-norms-shrink",
        place="Section 3, figures 2, 7 and 11, last rows",
        statement="If $\\rho$ is large it decreases until a minimum is found.",
        test=readings(
            ReadAs(
                "the captions' large starts",
                "Large are the captions' largest starts, ρ the product of all norms.",
                "captions of figures 2, 7 and 11",
                large_shrink(PRODUCT, above_rest=False),
            ),
            *(
                ReadAs(
                    f"above the rest, {rho}",
                    "Large is above the norm at which small starts end, since the "
                    f"flow falls above its equilibrium; ρ as {rho}.",
                    "equations 5 and 7",
                    large_shrink(rho, above_rest=True),
                )
                for rho in (PRODUCT, LAST, FOLDED)
            ),
        ),
        rival="norms that grow from large starts as well",
        choices=(
            ENDS,
            Choice(
                what="networks with normalisation",
                why="without it appendix D says only that $\\rho$ may decrease",
            ),
        ),
        departures=(*DESCENT, "large by Eq 5 itself, at the start's $f$, was not read"),
    ),
    Claim(
        name="decay-forgets-the-start",
        place="Sections 3 and 6.1, figures 1 to 3",
        statement="With batch normalisation and weight decay training is rather "
        "independent of the initial conditions.",
        test=depends(lambda reading: forgets("bn_wd", reading)),
        rival="ends that keep the order of the starts",
        choices=(ENDS,),
        departures=DIGITS,
    ),
    Claim(
        name="others-remember",
        place="Sections 3 and 6.1, figures 7 and 11",
        statement="Without weight decay, and without both, training strongly depends "
        "on the initial conditions.",
        test=depends(remembers),
        rival="norms that end alike",
        choices=(ENDS,),
        departures=DIGITS,
    ),
    Claim(
        name="ratio-at-rest",
        place="Equation 7, figure 4",
        statement="At rest $\\sum_n y_n f_n / \\sum_n f_n^2$ is $\\rho$ times $1 + "
        "\\lambda/\\sum_n f_n^2$.",
        test=each_start(
            ("bn_wd",),
            "ratio_gap",
            our_margin(
                0.1,
                "a tenth is what one would see in a figure; the limit itself is within "
                "0.02 of 1, so that 1 is no rival",
            ),
        ),
        rival="norms that decay holds away from where they would rest",
        choices=(
            ENDS,
            Choice(
                what="$\\lambda = Nw/2$ for a library's decay $w$, and $f = g/\\rho_L$",
                why="the loss is a mean over $N$ samples, and half of the decay's "
                "gradient; $\\rho_L$ is what the paper's equations call $\\rho$",
            ),
        ),
        departures=DIGITS,
    ),
    beyond(
        name="margins-are-the-inverse-norm",
        place="Beside section 1.2, figures 8 and 12",
        statement="Networks that stop near zero square loss have nearly the same "
        "margin on all training samples, $1/\\rho$.",
        test=interpolating(
            NO_DECAY,
            (
                ("output_margin", lowest, above(0.95, source="ours", why=TWENTIETH)),
                ("output_margin", highest, below(1.05, source="ours", why=TWENTIETH)),
                ("late_spread", highest, below(0.1, source="ours", why=HORIZONTAL)),
            ),
        ),
        rival="margins that keep their spread",
        choices=(
            ENDS,
            Choice(
                what=f"runs with a mean squared residual below {INTERPOLATED}",
                why="the paper says it of exactly zero loss, where it is arithmetic",
            ),
        ),
        departures=DIGITS,
    ),
    beyond(
        name="margins-narrow",
        place="Beside figures 5, 8, 9 and 12",
        statement="The spread of the margins over their mean is less at the end than "
        "after ten epochs, under every condition.",
        test=less("late_spread", "early_spread"),
        rival="margins that widen as they grow",
        choices=(ENDS,),
    ),
    Claim(
        name="loss-approaches-zero",
        place="Observation 1, figures 6 and 10",
        statement="Under average separability, from small starts and without decay, "
        "the square loss approaches zero: all training data are interpolated.",
        test=each_start(
            NO_DECAY,
            "train_loss",
            below(
                math.log10(INTERPOLATED),
                source="ours",
                why="outputs within a tenth of their labels",
            ),
            log=True,
            smallest_only=True,
        ),
        rival="a loss that stays",
        choices=(ENDS,),
        departures=DESCENT,
    ),
    erratum(
        name="start-is-not-zero",
        place="Figure 7, caption",
        statement="The plot of $\\rho$ starts at zero, because the scaling factor of "
        "batch normalisation starts from 0.",
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
        grade=Grade.LOOSE,
    ),
    erratum(
        name="figure-1-has-decay",
        place="Figure 1, caption",
        statement="The networks of figure 1, which forget their start, are trained "
        "without weight decay.",
        printed="We use weight decay of 0.01. … No weight decay.",
        corrected="with a weight decay of 0.01, as section 3 has figures 1 to 5",
        test=forgets("bn_fast", PRODUCT),
        corrected_test=forgets("bn_wd", PRODUCT),
        rival="both settings forget, or neither",
        choices=(ENDS,),
    ),
    Claim(
        name="one-run-is-typical",
        place="Figure 6, caption",
        statement="A single run is typical for its settings.",
        test=readings(
            *(
                ReadAs(
                    name,
                    f"Runs of one setting end with {what} within a factor of 1.5.",
                    source,
                    each_start(
                        ("bn",),
                        quantity,
                        below(
                            math.log10(1.5),
                            source="ours",
                            why="runs would look alike in the figure",
                        ),
                        read=factor_between,
                    ),
                )
                for name, what, source, quantity in (
                    ("errors", "errors on new samples", "figure 6", "test_error"),
                    ("norms", "norms", "figure 7, of the same runs", "rho_end"),
                    ("outputs", "mean $|f_n|$", "figures 8 and 9", "mean_abs_f"),
                )
            )
        ),
        rival="runs of one setting that end far apart",
        choices=(ENDS,),
        departures=DIGITS,
    ),
    Claim(
        name="small-starts-generalise",
        place="Section 6.1, open problems",
        statement="Without decay, and without both, results are good provided that the "
        "initialisation is small.",
        test=readings(
            ReadAs(
                "better than from large starts",
                "Good is a lower test error than from the largest start.",
                "section 6.1: provided initialization is small",
                larger_from_larger(
                    NO_DECAY, above(0), lambda *kind: of("test_error", *kind), log=False
                ),
            ),
            ReadAs(
                "as with normalisation and decay",
                "Good is a test error that is at most 0.02 above that with both.",
                "section 6.1: still yields good results, also without both",
                as_with_both(NO_DECAY),
            ),
        ),
        rival="a test error that does not hang on the start",
        choices=(ENDS,),
        departures=DIGITS,
    ),
    Claim(
        name="outputs-far-below-one",
        place="Section 3",
        statement="Usually the largest output of a network of unit layers is far below "
        "1, and the least norm of a solution far above 1.",
        test=readings(
            *(
                ReadAs(name, what, source, usually_small(name))
                for name, what, source in (
                    (FOLDED, "All layers have norm 1.", "footnote 3: |f| at most 1"),
                    (LAST, "$f = g/\\rho_L$.", "section 2.3: ρ_L = ρ"),
                    (PRODUCT, "$f = g/\\rho$ of all layers.", "section 2.1, figure 2"),
                )
            )
        ),
        rival="outputs near the bound of 1",
        choices=(
            ENDS,
            Choice(
                what="usually: more than half of the networks of a condition; far: by "
                "a factor of ten",
                why="the paper gives no number",
            ),
        ),
        departures=DIGITS,
    ),
    beyond(
        name="every-run-trains",
        place="Beside figures 1, 6 and 10",
        statement="No run of the captions' settings diverges, loses all its outputs or "
        "fails to learn.",
        test=inside(
            smallest(measured("run_alive", lambda row: row["condition"] in SHOWN)),
            above(0.5, source="ours", why="1 for a run that trained, else 0"),
        ),
        rival="large starts without normalisation that blow up",
        all_runs=True,
    ),
    beyond(
        name="wide-layers-cannot-rest",
        place="Beside figures 1 to 5",
        statement="At the captions' rate $\\eta = 0.1$ and momentum $\\mu = 0.9$ no "
        "network trains whose normalised units make the last layer's curvature $1 + "
        "(n-1)/\\pi$ exceed $2(1+\\mu)/\\eta$: beyond 117 units, from any start.",
        test=wide_diverge,
        all_runs=True,
        rival="batch normalisation that makes any rate stable",
        choices=(
            Choice(
                what="curvature at the start, of independent normal units",
                why="it is known beforehand; units that agree curve more",
            ),
        ),
    ),
)
