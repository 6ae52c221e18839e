"""What the definitions are judged on."""

from theodolite.core import Claim, Rows, Verdict, holds_if
from theodolite.studies.li2016demystifying.judging import EXACT, largest, smallest


def _network(predicted: Rows, measured: Rows) -> Verdict:
    gap = largest(measured, "output")
    rival = smallest(measured, "output_without_skip")
    wanted = {row["n"]: row["value"] for row in predicted.where(quantity="parameters")}
    counts = all(
        row["value"] == wanted[row["n"]]
        for row in measured.where(quantity="parameters")
    )
    numbers = {
        "largest gap to the formula": gap,
        "smallest gap to the chain without shortcuts": rival,
    }
    return holds_if(
        gap.value < EXACT < rival.value and counts,
        numbers,
        holds="networks are the formula to rounding, with as many parameters",
        fails="a network is not what the formula says",
    )


def _positions(predicted: Rows, measured: Rows) -> Verdict:
    gap = largest(measured, "output")
    rival = smallest(measured, "output_elsewhere")
    numbers = {
        "largest gap, activation where it is drawn": gap,
        "smallest gap, activation moved on by one place": rival,
    }
    return holds_if(
        gap.value < EXACT < rival.value,
        numbers,
        holds="each activation acts where figure 1 draws it, and nowhere else",
        fails="an activation acts elsewhere than drawn",
    )


def _data(predicted: Rows, measured: Rows) -> Verdict:
    numbers = {
        "largest gap of second moments to the identity": largest(
            measured, "whiteness_gap"
        ),
        "largest mean of a component": largest(measured, "mean"),
        "largest gap of a label's norm to 1": largest(measured, "label_norm_gap"),
    }
    return holds_if(
        all(number.value < EXACT for number in numbers.values()),
        numbers,
        holds="inputs are centred and white, labels one-hot",
        fails="inputs are not white, or labels not one-hot",
    )


CLAIMS = (
    Claim(
        name="shortcut-network",
        place="Definitions 1 and 2, Eqs 1 and 2",
        statement="An $n$-shortcut network is a chain of units "
        "$x + \\sigma_{post}(W_n\\,\\sigma_{mid}(\\cdots W_1\\,\\sigma_{pre}(x)))$ "
        "with $nRd^2$ parameters.",
        check=_network,
        rival="the chain without shortcuts",
    ),
    Claim(
        name="positions",
        place="Figure 1",
        statement="Activations stand before the first matrix, between matrices and "
        "after the last.",
        check=_positions,
        rival="the activation one place further on",
    ),
    Claim(
        name="whitened-digits",
        place="Appendix B",
        statement="Digits whitened to ten components have $\\Sigma^{XX} = I$ and mean "
        "zero, and one-hot labels.",
        check=_data,
        rival="division by $m-1$, or no centring, which leaves a gap of $1/m$ or more",
    ),
)
