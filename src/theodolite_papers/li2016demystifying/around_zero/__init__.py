"""Around zero: order of contact, biases, ReLU, and whether it is a minimum.

The loss moves only when all $n$ matrices of some unit move, so it leaves zero at order
$t^n$: zero is a stationary point of order $n-1$. The paper goes on to carry theorem 2
over to units with biases (Eq 3) and to ReLU, and calls zero a local minimum. Eq 3 does
not say whether its biases are parameters or constants: Hessians are measured under both
readings, those of ReLU networks at small weights, and the loss on both sides of zero.

Li et al. (2016), Demystifying ResNet, theorem 2.1, definition 4, assumption 3, Eq 3 and
the prose of sections 2 and 4. Cost: seconds.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    paper_size=None,  # a theorem
    drawings=(
        Drawing(
            "relu",
            "Largest eigenvalue and condition number of 2-shortcut ReLU networks at "
            "small random weights, each point a dataset and number of units, against "
            "what Eqs 9 and 26 give with slope ½. On the line they would agree.",
            figure.relu,
            figure.draw,
        ),
    ),
    departures=(
        "Random Gaussian inputs and targets.",
        "Eq 3 has ReLU; where weights and biases are zero it is measured with tanh, "
        "because automatic differentiation takes the slope of ReLU at 0 to be 0; flat "
        "directions are counted with ReLU at small weights as well, and constant "
        "biases are near ±1, where ReLU has a slope.",
    ),
)
