"""Printed statements on the weights that are wrong, and their corrections."""

import math

from theodolite.core import (
    Choice,
    Grade,
    PredictedAndMeasured,
    Quantity,
    Read,
    Test,
    erratum,
    every,
    exact,
    inside,
    known,
    largest,
    largest_distance,
    measured,
    near,
    predicted,
    smallest,
    span,
)

from ..shared.rows import MORE_THAN_ROUNDING, growth
from .config import NETWORK

NONE = near(0, 0)
QUOTIENT = near(0, 1e-10, source="rounding", why="quotients of sums of products")
SUMS = near(0, 1e-4, source="rounding", why="a difference of sums up to $10^9$")
ODD = measured("half_off_by", lambda row: row["depth"] % 2 == 1).called(
    "distance of p/2 from the maximisers, p odd"
)
EVEN = measured("half_off_by", lambda row: row["depth"] % 2 == 0).called(
    "distance of p/2 from the maximisers, p even"
)
EXPECTED = math.sqrt(NETWORK["inputs"] / NETWORK["unique"])


def _lines(expected: float, end: str) -> Read:
    """Read how far the quotient of the two lines of Eq 14 is from a number."""

    def read(both: PredictedAndMeasured) -> Quantity:
        two = both.predicted.where(quantity="line_two")
        gaps, errors = [], []
        for row in both.measured.where(quantity="line_one"):
            below_line = two.value(length=row["length"])
            gaps.append(abs(row["value"] / below_line - expected))
            errors.append(row["error"] / below_line)
        pick = max(gaps) if end == "largest" else min(gaps)
        name = f"{end} distance of line one over line two from {expected:.4g}"
        return known(name, pick, max(errors))

    return read


def _slopes(quantity: str) -> Test:
    """Judge whether derivatives by autodiff equal those of a formula."""
    gap = largest_distance(
        predicted(quantity), measured("slope"), ("depth", "length"), relative=False
    )
    return inside(gap, near(0, 1e-10, source="rounding", why="autodiff in doubles"))


def _first_term(both: PredictedAndMeasured) -> Quantity:
    """Read how far the first lines' quotient at length 1 is from that of all."""
    two = both.predicted.where(quantity="line_two")
    ratios, errors = {}, []
    for row in both.measured.where(quantity="line_one"):
        divisor = two.value(length=row["length"])
        ratios.setdefault(row["length"], []).append(row["value"] / divisor)
        errors.append(row["error"] / divisor)
    rest = [
        value for length, values in ratios.items() if length > 1 for value in values
    ]
    gap = max(abs(value / rest[0] - 1) for value in ratios.get(1, [math.nan]))
    return known("first term of line one over line two", gap, max(errors))


ERRATA = (
    erratum(
        name="sum-from-one",
        grade=Grade.LOOSE,
        place="Eq 14, second line",
        statement="The second line begins at $r = 2$ and equals the first.",
        printed="$z \\sum_{r=2}^p \\epsilon_r \\dots$, the first line from $r = 1$",
        corrected="$\\sum_{r=1}^p$, as in Eq 15; what is left out carries "
        "$\\epsilon_1^2$ of the variance, most of it where $\\beta$ is small",
        test=inside(
            largest(measured("first_share").called("share of the first term")),
            near(0, 1e-12, source="rounding", why="a share of whole numbers"),
        ),
        corrected_test=inside(_first_term, QUOTIENT),
        rival="a first term that weighs nothing",
    ),
    erratum(
        name="factor-of-the-lines",
        grade=Grade.LOOSE,
        place="Eq 14, second line",
        statement="The second line has the factor $z$.",
        printed="$z \\sum_r \\epsilon_r \\Lambda^{-(r-1)/2} \\dots$",
        corrected="$z\\sqrt{d/\\Lambda} \\sum_r \\epsilon_r \\Lambda^{-(r-1)/2} "
        "\\dots$",
        test=inside(_lines(1.0, "smallest"), QUOTIENT),
        corrected_test=inside(_lines(EXPECTED, "largest"), QUOTIENT),
        rival="$z$ alone, which is the same where $d = \\Lambda$",
    ),
    erratum(
        name="legendre-from-zero",
        grade=Grade.LOOSE,
        place="Proof of Theorem 2, Eq 37",
        statement="Legendre's polynomial gives the sum from $r = 1$.",
        printed="$\\sum_{r=1}^p \\binom{p}{r}^2\\beta^{2r} = (1-\\beta^2)^p "
        "P_p(\\frac{1+\\beta^2}{1-\\beta^2})$",
        corrected="the sum begins at $r = 0$, and is greater by 1",
        test=inside(
            smallest(
                measured("legendre_less_sum").called("polynomial less sum from 1")
            ),
            SUMS,
        ),
        corrected_test=inside(
            largest(
                measured("legendre_less_whole_sum").called("polynomial less sum from 0")
            ),
            SUMS,
        ),
        rival="the sum from 1",
    ),
    erratum(
        name="intervals-of-scale",
        grade=Grade.LOOSE,
        place="Proof of Lemma 4",
        statement="With $\\binom{p}{r}$ for simplicity, as the proof has it, the "
        "greatest weight at $\\beta = 1$ is at $p/2$.",
        printed="$\\arg\\max_r \\epsilon_r(1) = p/2$, and 'any value $1 \\geq k \\geq "
        "p$' by continuity",
        corrected="so for even $p$; for odd $p$ the two lengths around $p/2$ tie. With "
        "Eq 16 $\\arg\\max_r \\epsilon_r = k$, $1 \\leq k \\leq p$, exactly for "
        "$\\frac{k-1}{p-k+1} \\leq \\beta \\leq \\frac{k}{p-k}$, with ties at the "
        "ends, since the weights are log-concave; a whole number cannot be reached by "
        "continuity",
        test=inside(largest(ODD), NONE),
        corrected_test=every(
            inside(largest(EVEN), NONE),
            inside(smallest(ODD), near(0.5, 0)),
            inside(largest(ODD), near(0.5, 0)),
            *(
                inside(largest(measured(f"{where}_missed")), NONE)
                for where in ("inside", "ends", "outside")
            ),
        ),
        rival="$p/2$ itself at odd $p$ too",
        choices=(
            Choice(
                what="'at $p/2$' is that $p/2$ is among the lengths of greatest weight",
                why="the proof does not speak of ties or of odd $p$",
            ),
        ),
    ),
    erratum(
        name="normaliser-depends-on-scale",
        place="Section 4, above Eq 19; Eq 24 and the proof of Theorem 4 with Eq 16",
        statement="$\\partial\\epsilon_r/\\partial C = r\\,\\epsilon_r/C$.",
        printed="$\\partial\\epsilon_r/\\partial C = r\\,\\epsilon_r/C$",
        corrected="$\\partial\\epsilon_r/\\partial C = \\frac{\\epsilon_r}{C}(r - "
        "\\sum_s s\\,\\epsilon_s^2)$, since $z$ depends on $C$; as printed it holds of "
        "$z\\,\\epsilon_r$",
        test=_slopes("printed_slope"),
        corrected_test=_slopes("slope"),
        rival="weights that all grow with the scale",
    ),
    erratum(
        name="derivative-lacks-the-scale",
        grade=Grade.LOOSE,
        place="Eq 19",
        statement="$\\partial L/\\partial C = \\sum_r r\\,L_r$, $L_r$ of degree $r$.",
        printed="$\\partial L/\\partial C = \\sum_r r\\,L_r$",
        corrected="$\\partial L/\\partial C = \\frac{1}{C}\\sum_r r\\,L_r$",
        test=inside(
            smallest(measured("slope_gap").called("distance of ∂L/∂C from Σ r L_r")),
            near(0, 1e-10, source="rounding", why="autodiff in doubles"),
        ),
        corrected_test=exact(
            measured("slope_times_scale_gap").called("distance of C ∂L/∂C from Σ r L_r")
        ),
        rival="a factor of 1, which is right at $C = 1$ alone",
    ),
    erratum(
        name="wide-is-not-deep",
        grade=Grade.LOOSE,
        place="Section 3, below Eq 16",
        statement="$\\beta$ rises with the width $n$.",
        printed="'for wide networks, where $n$ and, therefore, $\\beta$ are large'",
        corrected="only if $C$ and $\\Lambda$ stay as they are; at the paper's own "
        "initialisation, $C = 1/\\sqrt{n}$ and $\\Lambda = n$, $\\beta$ is the same at "
        "every width",
        test=inside(
            growth(measured("beta", setting="paper"), "width"), MORE_THAN_ROUNDING
        ),
        corrected_test=every(
            inside(
                span(measured("beta", setting="paper")),
                near(0, 1e-10, source="rounding", why="products of three factors"),
            ),
            inside(
                growth(measured("beta", setting="fixed"), "width"), MORE_THAN_ROUNDING
            ),
        ),
        rival="$\\beta$ that rises with $n$ at that initialisation too",
        choices=(
            Choice(
                what="judged at $C = 1/\\sqrt{n}$ and $\\Lambda = n$",
                why="the sentence does not say what is held, and these are its own",
            ),
        ),
    ),
)
