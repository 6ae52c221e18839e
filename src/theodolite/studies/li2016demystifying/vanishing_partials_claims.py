"""What lemmas 3 and 4 claim, judged from rows."""

from theodolite.core import Claim, Rows, Verdict, holds_if
from theodolite.studies.li2016demystifying.judging import EXACT, largest, smallest


def _lemma_three(predicted: Rows, measured: Rows) -> Verdict:
    missing, chain = largest(measured, "no_unit"), smallest(measured, "chain")
    return holds_if(
        missing.value < EXACT < 1e-6 < chain.value,
        {
            "largest derivative without a whole unit": missing,
            "least derivative through a whole unit once": chain,
        },
        holds="derivatives that miss a matrix of every unit vanish, those through each "
        "matrix of a unit do not",
        fails="a derivative without a whole unit survives, or one through it vanishes",
    )


def _every_unit(predicted: Rows, measured: Rows) -> Verdict:
    part, whole = largest(measured, "part"), largest(measured, "whole")
    return holds_if(
        part.value < EXACT < 1e-6 < whole.value,
        {
            "largest derivative that touches an incomplete unit": part,
            "largest derivative through whole units alone": whole,
        },
        holds="a derivative vanishes as soon as one unit that it touches is "
        "incomplete, even where another is whole",
        fails="a derivative survives although a unit that it touches is incomplete",
    )


def _lemma_four(predicted: Rows, measured: Rows) -> Verdict:
    loss, partial = largest(measured, "shift_loss"), largest(measured, "shift_partial")
    swapped = smallest(measured, "swapped", n=1)
    return holds_if(
        max(loss.value, partial.value) < EXACT < 1e-6 < swapped.value,
        {
            "relative change of the loss": loss,
            "change of second derivatives": partial,
            "least change of the loss when units swap, n = 1": swapped,
        },
        holds="loss and second derivatives stay when two matrices move to other units "
        "in the same order, and change when the order does",
        fails="moving two matrices between units changes the loss or its derivative",
    )


CLAIMS = (
    Claim(
        name="lemma-3-whole-unit",
        place="Lemma 3",
        statement=(
            "A mixed derivative at zero, of any order, is non-zero only if its "
            "parameters meet every matrix of some unit."
        ),
        check=_lemma_three,
        rival="a derivative of an incomplete unit",
    ),
    Claim(
        name="lemma-3-every-unit",
        place="Lemma 3, sharpened",
        statement=(
            "More than the lemma says: every unit that the parameters touch must be "
            "met in all of its matrices."
        ),
        check=_every_unit,
        rival="one whole unit being enough",
    ),
    Claim(
        name="lemma-4-translation",
        place="Lemma 4, Figure 11",
        statement=(
            "With all else zero, the loss as a function of two parameters depends on "
            "their units only through whether these are the same, and their order."
        ),
        check=_lemma_four,
        rival="units in the other order",
    ),
)
