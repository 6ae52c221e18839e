"""Claims of lemmas 3 and 4."""

from theodolite.core import (
    ROUNDING,
    Claim,
    Grade,
    above,
    against,
    beyond,
    each,
    erratum,
    every,
    exact,
    inside,
    largest,
    measured,
    near,
)

from ..shared.reads import always

FIRST = measured("first_order")
ABOVE_ROUNDING = above(ROUNDING.high, source="rounding", why=ROUNDING.why)

WORDS = {
    "first_order": "order of the first derivative that survives",
    "no_unit": "derivative that meets no whole unit",
    "part": "derivative that meets a unit in part",
    "whole": "derivative that meets whole units",
    "shift_loss": "change of the loss as units move",
    "shift_partial": "change of a derivative as units move",
    "chain": "derivative that meets one whole unit",
    "swapped": "change of the loss as units change order",
}
CLAIMS = (
    erratum(
        name="lemma-3-whole-unit",
        grade=Grade.LOOSE,
        place="Lemma 3",
        statement="A derivative at zero along $N$ parameters is non-zero only if they "
        "meet every matrix of some unit; the lemma prints second derivatives, "
        "whatever $N$.",
        printed="$\\partial^2 L / \\partial w_1 \\cdots \\partial w_N$",
        corrected="$\\partial^N L / \\partial w_1 \\cdots \\partial w_N$: the first "
        "that survive are of order $n$",
        test=each("n", FIRST, lambda n: always(FIRST.at(n=n), near(2, 0))),
        corrected_test=every(
            exact(measured("no_unit"), rival=measured("chain")),
            each("n", FIRST, lambda n: always(FIRST.at(n=n), near(n, 0))),
        ),
        rival="a derivative of an incomplete unit",
    ),
    beyond(
        name="lemma-3-every-unit",
        place="Lemma 3, sharpened",
        statement="More than the lemma says: every unit that the parameters touch "
        "must be met in all of its matrices.",
        test=against(
            exact(measured("part")), inside(largest(measured("whole")), ABOVE_ROUNDING)
        ),
        rival="one whole unit being enough",
    ),
    Claim(
        name="lemma-4-translation",
        place="Lemma 4, Figure 11",
        statement="With all else zero, the loss as a function of two parameters "
        "depends on their units only through whether these are the same, and their "
        "order.",
        test=every(
            exact(measured("shift_loss"), rival=measured("swapped", n=1)),
            exact(measured("shift_partial")),
        ),
        rival="units in the other order",
    ),
)
