"""Shortcuts of length 1 and no shortcuts: where they are the same.

The paper calls a shortcut of length 1 essentially equivalent to none. For linear
networks that has an exact form: $I + V$ is just another matrix, and a plain network
with orthogonal weights is a 1-shortcut network at zero in other coordinates, labels
included. Hessians, spectra and whole training runs are compared there, and condition
numbers where Xavier weights or an activation take the coordinates away. Beside it,
Hessians at zero of the networks of Eq 1, whose shortcuts are any matrices.

Li et al. (2016), Demystifying ResNet, abstract and section 5: shortcuts of length 1 are
"essentially equivalent" to none, and train like orthogonal initialisation. Cost:
seconds at QUICK, minutes at PAPER.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    paper_size=None,  # theorems: trained networks of the paper are other studies
    drawings=(
        Drawing(
            "equivalence",
            "Left: loss along gradient descent of linear networks; a plain orthogonal "
            "network (line) and a 1-shortcut network at zero with turned labels (dots) "
            "are one curve. Middle and right: condition numbers of plain networks and "
            "of 1-shortcut networks at zero, without activation and with a ReLU before "
            "each matrix, with one standard deviation over networks; above 10,000 "
            "those with ReLU count as 10,000.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "Random Gaussian inputs and targets. Shortcuts of Eq 1 are random orthogonal "
        "and Gaussian matrices; units have two or three matrices.",
        "A unit of one matrix has no mid position, so activations stand before or "
        "after it.",
        "Condition numbers above 10,000 of plain networks with an activation count as "
        "10,000, the least that is known of them: with ReLU they are often infinite.",
    ),
)
