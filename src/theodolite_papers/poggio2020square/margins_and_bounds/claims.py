"""Claims of the paper on margins, norms and bounds on the expected error."""

from theodolite.core import (
    Choice,
    Claim,
    Grade,
    Number,
    PredictedAndMeasured,
    Region,
    above,
    against,
    below,
    between,
    beyond,
    counted,
    erratum,
    every,
    highest,
    inside,
    lowest,
    mean,
    measured,
    meets,
    trend,
)

SOLVED = below(1e-5, source="rounding", why="searches that stop at twelve digits")
AT_LEAST_ZERO = Region(low=0.0, low_open=False)
TRIALS = ("trial",)
HELD = Choice(
    what="held-out digits stand for the expected error",
    why="it cannot be computed; some 70 digits estimate it to about 0.05",
)


def _needed(both: PredictedAndMeasured) -> dict[str, Number]:
    rows = both.measured.where(quantity="samples_needed")
    return {
        f"samples needed, {name}": Number(float(value))
        for name, value in (
            ("least", rows.values().min()),
            ("most", rows.values().max()),
        )
    }


WORDS = {
    "widest_margin": "widest margin of unit weights",
    "shortest_norm": "norm of the shortest weights that classify",
    "largest_output": "output times label",
    "interpolating_norm": "norm of the shortest weights that interpolate",
    "complexity": "Rademacher complexity",
    "ramp_least_excess": "ramp loss less the 0-1 error of a sample",
    "uniform_bound": "bound on the deviation, for all networks of the norm",
    "scale": "norm",
    "fixed_bound": "bound for networks of the norm",
    "bound": "bound for networks of any norm",
    "held_error": "error on held-out samples",
}
CLAIMS = (
    Claim(
        name="widest-is-shortest",
        place="Lemma 2",
        statement="The widest margin of unit weights belongs to the shortest weights "
        "with margins of at least 1: one is the inverse of the other's norm.",
        test=every(
            meets(name, TRIALS, SOLVED) for name in ("widest_margin", "shortest_norm")
        ),
        rival="the shortest weights that meet every label exactly",
        choices=(
            Choice(
                what="linear classifiers",
                why="both problems are convex there, so that each has one answer",
            ),
        ),
    ),
    Claim(
        name="classifying-is-not-interpolating",
        place="Appendix C, equations 24 and 25, observation 4",
        statement="The shortest weights that classify with margin 1 do not, in "
        "general, interpolate: some outputs are beyond their labels, and the shortest "
        "weights that interpolate are longer, for some points, and never shorter.",
        test=every(
            inside(
                lowest(measured("least_output").called("least output times label")),
                Region(low=1 - 1e-5, high=1 + 1e-5, source="rounding"),
            ),
            inside(
                highest(measured("largest_output")),
                above(
                    1.01,
                    source="ours",
                    why="beyond the label by more than a search leaves open",
                ),
            ),
            meets("interpolating_norm", TRIALS, SOLVED),
            inside(
                highest(measured("excess_norm").called("interpolating less shortest")),
                above(0.01, source="ours", why="more than a search leaves open"),
            ),
            inside(
                lowest(measured("excess_norm").called("interpolating less shortest")),
                above(-1e-5, source="rounding", why=SOLVED.why),
            ),
        ),
        rival="labels that all points can meet at no cost",
    ),
    Claim(
        name="complexity-is-proportional",
        place="Equation 42",
        statement="The Rademacher complexity of networks of norm $\\rho$ is $\\rho$ "
        "times that of normalised ones.",
        test=meets(
            "complexity",
            ("norm", "trial"),
            below(0.01, source="rounding", why="directions on a grid"),
        ),
        rival="another power of the norm",
        choices=(
            Choice(
                what="two layers, inputs in the plane, all signs listed",
                why="there the complexity can be computed exactly",
            ),
        ),
    ),
    erratum(
        name="ramp-is-above",
        place="Appendix F, before equation 42",
        statement="The ramp loss of positive margin is above the 0-1 error.",
        printed="$\\ell_0 < \\ell_\\gamma$ for $\\gamma > 0$",
        corrected="$\\ell_0 \\le \\ell_\\gamma$: equal at margins below 0 and above "
        "$\\gamma$",
        test=inside(lowest(measured("ramp_least_excess")), above(0)),
        corrected_test=inside(lowest(measured("ramp_least_excess")), AT_LEAST_ZERO),
        rival="a loss that is below the error somewhere",
        grade=Grade.LOOSE,
    ),
    Claim(
        name="bound-holds",
        place="Observation 3, equations 10, 41, 43 and 45",
        statement="The expected error is at most the empirical ramp loss plus a "
        "constant times $\\rho\\,R_N$ plus a term of order "
        "$\\sqrt{\\ln(1/\\delta)/N}$.",
        test=against(
            every(
                inside(highest(measured("uniform_bound")), below(1)),
                inside(
                    counted(
                        measured("share_of_bound"),
                        lambda row: row["value"] + row["error"] <= 1,
                        name="share of draws whose largest deviation is in the bound",
                    ),
                    above(0.95, source="paper", why="$\\delta$ is 0.05"),
                ),
            ),
            inside(
                counted(
                    measured("share_of_bound"),
                    lambda row: row["value"] <= 0.1,
                    name="share of draws in a tenth of the bound",
                ),
                below(0.95, source="ours", why="the bound is not idle"),
            ),
        ),
        rival="deviations so small that any bound holds",
        choices=(
            Choice(
                what="two layers of norm 3 on 200 points of the circle with random "
                "labels, searched for the largest deviation",
                why="there the bound is below 1 and the expected loss is known; for "
                "trained networks it is above 1 and says nothing",
            ),
            Choice(
                what="constants $2/\\gamma$ and 3, $\\ln(2/\\delta)$",
                why="the paper leaves them open, and an empirical complexity needs "
                "these",
            ),
        ),
        sizes=("draws",),
    ),
    beyond(
        name="complexity-is-needed",
        place="Beside equation 41",
        statement="The constant of the complexity is at most $2/\\gamma$, and the term "
        "is not idle: the largest deviation is a fair share of it on average.",
        test=inside(
            mean(
                measured("share_of_complexity").called(
                    "largest deviation over the complexity"
                )
            ),
            between(0.1, 2, source="ours", why="from a tenth to what symmetry allows"),
        ),
        rival="a deviation that concentration alone explains",
        sizes=("draws",),
    ),
    Claim(
        name="smaller-norm-smaller-bound",
        place="Observation 3, equations 43 and 44; lemma 1, item 1",
        statement="For the same network and data, trained to smaller $\\rho$, margins "
        "are larger and the bound is smaller.",
        test=every(
            trend(
                measured("scale"),
                over="decay",
                slope_in=below(0),
                name="exponent of the norm in the decay",
            ),
            trend(
                measured("mean_margin"),
                over="decay",
                slope_in=above(0),
                name="exponent of the mean margin in the decay",
            ),
            trend(
                measured("fixed_bound"),
                over="decay",
                slope_in=below(0),
                name="exponent of the bound in the decay",
            ),
        ),
        rival="a ramp loss that rises by more than the norm falls",
        choices=(
            Choice(
                what="weight decay makes the norms",
                why="the paper compares interpolating solutions; these are near it",
            ),
        ),
    ),
    beyond(
        name="bound-is-vacuous",
        place="Beside appendix F",
        statement="The bound says nothing: for every trained network it is above 1, "
        "which any error is below.",
        test=every(
            inside(lowest(measured("bound")), above(1)),
            inside(lowest(measured("fixed_bound")), above(1)),
            inside(
                mean(measured("held_error")),
                below(0.5, source="ours", why="networks that have learnt something"),
            ),
        ),
        rival="a norm so small that the bound tells something",
        asides=_needed,
        choices=(HELD,),
    ),
)
