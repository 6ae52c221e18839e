"""Claims on theorem 5.1: where it fails, and under which hypotheses it holds."""

from functools import partial

from theodolite.core import (
    Choice,
    Claim,
    Number,
    PredictedAndMeasured,
    above,
    against,
    below,
    beyond,
    counted,
    erratum,
    every,
    inside,
    largest,
    largest_distance,
    lowest,
    mean,
    measured,
    near,
    our_margin,
    predicted,
    trend,
)

from ..shared.reads import most_over, never_above, never_below
from .claims_proof import ARRIVED, LAW, PROOF_CLAIMS, late

STILL = near(0, 0.0)
FALLS = below(
    1e-20, source="rounding", why="losses that have fallen to the rounding of outputs"
)
GENERIC = {"start": "unit", "multiple": 1.0}
two_layers = partial(beyond, place="Beside theorem 5.1, $L = 2$")
ONE_LAYER = ("trial", "start", "step")
CERTIFIED = Choice(
    what="the step is $1/\\beta$ with the certified $\\beta$ of the network",
    why="the theorem asks for some step below $2/\\beta$",
)
BEST = Choice(
    what="the infimum is the least limit found from all starts of a dataset, and "
    "limits within $10^{-4}$ of it reach it",
    why="it is no less than the infimum, so that what is lost is lost all the more; "
    "nearer limits are not told from ends that have not settled",
)
GUARANTEED = inside(
    most_over(
        predicted("guarantee"),
        measured("excess", layers=1, multiple=1.0),
        ONE_LAYER,
        ratio=True,
        name="loss above the infimum over its bound",
    ),
    below(1),
)
FITS = every(
    never_above("path_over_room", region=below(1), called="longest path over the ball"),
    never_below("fall_over_kernel", region=above(1), called="fall over its bound"),
    never_below("kernel_over_floor", region=above(1), called="kernel over its bound"),
)
STALLED = every(
    inside(largest(measured("branch_motion").called("motion of a branch")), STILL),
    never_above("over_law", multiple=8.0, layers=2, region=LAW),
    never_below("over_law", multiple=8.0, layers=2, region=LAW),
)


def _shares(both: PredictedAndMeasured) -> dict[str, Number]:
    """Return the share of runs that reach the infimum, by start and step."""
    rows = both.measured.where(quantity="reached")
    shares = {}
    for start in rows.levels("start"):
        for multiple in rows.levels("multiple"):
            name = f"{start} starts, {multiple:g} times the certified step"
            some = measured("reached", start=start, multiple=multiple)
            average = mean(some)(both)
            shares[name] = Number(average.value, average.error)
    return shares


WORDS = {
    "stalled_excess": "loss above the infimum at the end",
    "loss_floor": "lower bound of the loss",
    "over_law": "loss over its law",
    "kernel": "least eigenvalue of the kernel",
    "branch_motion": "motion of a branch",
    "turning_gap": "distance between turning first and normalising first",
}
CLAIMS = (
    erratum(
        name="theorem-5-1",
        place="Theorem 5.1",
        statement="Gradient descent on a normalised residual network with linearly "
        "independent data and any $C^1$ convex cost converges from any initialisation "
        "to a global minimum.",
        printed="'converges from **any** initialisation to a global minimum'",
        corrected="one layer: the infimum, at $t^{-1/2}$, from any start and for any "
        "data; more layers: a linear rate where first-layer weights stay bounded and "
        "the cost is PL; otherwise it can stall above the infimum, from single "
        "points, from open sets, and from normal starts of tanh networks",
        test=every(
            inside(largest(measured("stalled_excess", multiple=1.0)), ARRIVED),
            inside(
                largest(
                    measured("limit_above", multiple=1.0).called("limit above best")
                ),
                ARRIVED,
            ),
        ),
        corrected_test=every(GUARANTEED, FITS, STALLED),
        rival="descent so slow that it would arrive later",
        choices=(CERTIFIED,),
    ),
    Claim(
        name="every-step-descends",
        place="Proof of theorem 5.1, beginning",
        statement="For $\\eta < 2\\beta^{-1}$ the loss decreases with every step.",
        test=never_above(
            "rise", multiple=1.0, region=FALLS, called="rise of the loss in a step"
        ),
        rival="a bound that is not one",
        choices=(CERTIFIED,),
    ),
    Claim(
        name="kernel-never-singular",
        place="Proof of theorem 5.1, and theorem 4.7",
        statement="$\\lambda(DF) > 0$ at all parameters of a normalised residual "
        "network on linearly independent data.",
        test=against(
            every(
                inside(
                    most_over(
                        predicted("kernel_floor"),
                        measured("kernel", lambda row: "scale" in row),
                        ("trial", "scale"),
                        ratio=True,
                        least=True,
                        name="least eigenvalue over its bound",
                    ),
                    above(1),
                ),
                never_below("kernel", network="theorem", region=above(1e-9)),
            ),
            inside(
                largest(measured("kernel", network="rival").called("rival's kernel")),
                below(1e-12, source="rounding", why="a square of a rounded zero"),
            ),
        ),
        rival="no skip, a branch of norm 1.2 a matrix, or dependent data",
    ),
    erratum(
        name="first-case-needs-pl",
        place="Proof of theorem 5.1, first case",
        statement="While first-layer weights stay in a ball, gradient descent "
        "converges at a linear rate to a global minimum, for any $C^1$ convex cost.",
        printed="'so that gradient descent converges in this case at a linear rate'",
        corrected="theorem 2.4 needs a PL cost. With the square cost the rate is "
        "linear; with $(F - y)^4$ weights stay bounded and the loss falls like "
        "$t^{-2}$. Under cross-entropy the case is empty, since gradients of bounded "
        "outputs do not vanish",
        test=trend(
            measured("quartic", late).called("fourth power"),
            over="step",
            slope_in=below(
                -10, source="ours", why="a linear rate falls faster than any power"
            ),
            points=2,
        ),
        corrected_test=every(
            FITS,
            never_above(
                "fitted",
                multiple=64.0,
                region=below(
                    1e-3, source="ours", why="a thousandth, and falling as fast"
                ),
                called="loss left",
            ),
            trend(
                measured("quartic", late).called("fourth power"),
                over="step",
                slope_in=our_margin(0.2, "a tenth of the power", centre=-2.0),
                points=2,
            ),
            never_above(
                "quartic_weight",
                region=below(5, source="ours", why="they start near 1"),
                called="first-layer weight",
            ),
        ),
        rival="a rate that every convex cost has",
        choices=(
            Choice(
                what="square cost, targets of a network, starts $10^{-4}$ from it",
                why="there the length of the whole path is bounded beforehand, so that "
                "weights stay in the ball by proof",
            ),
        ),
    ),
    beyond(
        name="one-layer-reaches",
        place="Beside theorem 5.1, $L = 1$",
        statement="One layer reaches the infimum of cross-entropy from tiny, unit, "
        "huge and adversarial starts, within a bound that any start has.",
        test=GUARANTEED,
        rival="starts at the wrong corner that stay there",
    ),
    beyond(
        name="one-layer-rate",
        place="Beside theorem 5.1, $L = 1$",
        statement="One layer does so at the rate $\\frac14\\sqrt{\\epsilon/\\eta "
        "t}\\,\\sum|g_{ij}|^{1/2}$, not linearly, and follows its mirror flow.",
        test=every(
            *(
                inside(
                    mean(
                        measured("over_law", layers=1, start=start).called(
                            f"loss above the infimum over its law, {start}"
                        )
                    ),
                    our_margin(0.1, "late steps, read after finitely many", centre=1.0),
                )
                for start in ("tiny", "unit")
            ),
            trend(
                measured("excess", late, layers=1, start="tiny", multiple=1.0),
                over="step",
                slope_in=our_margin(
                    0.1, "a tenth of a power over two decades", centre=-0.5
                ),
            ),
            inside(
                largest_distance(
                    measured("excess", layers=1, multiple=1.0),
                    predicted("flow_excess"),
                    ONE_LAYER,
                    name="largest distance of descent from its flow",
                ),
                below(0.1, source="ours", why="steps of finite length"),
            ),
        ),
        rival="a linear rate",
    ),
    beyond(
        name="open-sets-stall",
        place="Beside theorem 5.1, $L = 2$ and $3$",
        statement="With a nonlinearity that vanishes on a half-line, even a smooth "
        "one, an open set of starts never reaches the infimum; of normal starts more "
        "than a quarter do not.",
        test=every(
            *(
                never_below(
                    "stalled_excess",
                    gate=gate,
                    region=above(
                        0.01, source="ours", why="nearer losses would pass for arriving"
                    ),
                )
                for gate in ("ramp", "bump")
            ),
            inside(largest(measured("branch_motion")), STILL),
            inside(
                counted(
                    measured("held"),
                    lambda row: row["value"] == 1,
                    name="share of normal starts that are held",
                ),
                above(0.25),
            ),
        ),
        rival="stalls from single points alone",
    ),
    two_layers(
        name="zero-branches-stay-one-layer",
        statement="Two layers whose branch starts at zero end at the infimum of one, "
        "above that of two.",
        test=every(
            inside(
                largest_distance(
                    predicted("infimum", layers=1),
                    measured("limit", start="still"),
                    ("trial",),
                    relative=False,
                ),
                below(1e-4, source="ours", why="ends settle to this"),
            ),
            never_below(
                "below_one_layer",
                region=above(1e-3, source="ours", why="ten times what ends settle to"),
                called="best below one layer",
            ),
        ),
        rival="branches that rounding sets in motion",
    ),
    two_layers(
        name="local-infima-at-infinity",
        statement="Tanh networks under cross-entropy have strict local infima at "
        "infinity, to which a share of normal starts is lost.",
        test=every(
            inside(mean(measured("lost", **GENERIC).called("share lost")), above(0)),
            never_below(
                "curvature_of_lost",
                region=above(0),
                called="least curvature where lost",
            ),
        ),
        rival="saddles, which normal starts pass",
        choices=(CERTIFIED, BEST),
    ),
    two_layers(
        name="most-normal-starts-reach",
        statement="Most normal starts of tanh networks reach the infimum at the "
        "certified step.",
        test=inside(
            mean(measured("reached", **GENERIC).called("share that reaches")),
            above(0.5),
        ),
        rival="a theorem that fails as a rule",
        choices=(CERTIFIED, BEST),
        asides=_shares,
    ),
    beyond(
        name="eight-times-the-step",
        place="Beside theorem 5.1",
        statement="At eight times the certified step the loss still falls at every "
        "step, from every start and in every network.",
        test=never_above(
            "rise", multiple=8.0, region=FALLS, called="rise of the loss in a step"
        ),
        rival="a certified step near the edge of stability",
    ),
    beyond(
        name="cross-entropy-stays-positive",
        place="Beside theorem 5.1",
        statement="Outputs of normalised networks are bounded, so the infimum of "
        "cross-entropy is positive: what lies at infinity is not its zero.",
        test=every(
            inside(lowest(predicted("loss_floor")), above(0)),
            inside(
                most_over(
                    predicted("loss_floor"),
                    measured("best"),
                    ("trial",),
                    ratio=True,
                    least=True,
                    name="best loss over its bound",
                ),
                above(1),
            ),
        ),
        rival="losses that tend to zero",
    ),
    *PROOF_CLAIMS,
)
