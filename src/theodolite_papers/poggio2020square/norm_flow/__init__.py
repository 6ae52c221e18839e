r"""Gradient flow of the norm and of normalised layers.

A classifier $g = \rho f$ with unit layers follows $\dot\rho$ and $\dot V_k$ of Eqs 5
and 6. Flows are integrated with error control, on the sphere and across the kinks of
ReLUs, and met by gradient descent of the same networks as its step vanishes.

Poggio & Liao (2020), Generalization in deep network classifiers trained with the square
loss, sections 2 and 3, appendices B, D and E.1. The claim in our words: with normalised
layers the norm grows from a small start until it rests at $\\sum y f/(\\lambda + \\sum
f^2)$, small norms first. Cost: seconds at QUICK.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    revision=2,
    drawings=(
        Drawing(
            "unit_norms",
            "Norm of one ReLU unit that starts at an angle of 1.4 to its input, and "
            "the norm at which it would rest if outputs stayed as they are.",
            figure.unit_table,
            figure.draw_units,
        ),
        Drawing(
            "transients",
            "Left: growth by Eq 28, outputs held. Right: time to half of the rest; "
            "lines are quadrature, points gradient descent extrapolated to steps of "
            "length zero.",
            figure.transient_table,
            figure.draw_transients,
        ),
        Drawing(
            "kinks",
            "Residuals of Eq 8 where gradient descent of ReLU networks ends, as they "
            "are, and with the best share of the gradient of each ReLU at its kink.",
            figure.kink_table,
            figure.draw_kinks,
        ),
    ),
    departures=(
        "Losses are sums over samples, as in section 2.3; section 2.2 has means. Where "
        "Eqs 18 and 26 have means, so have we.",
        "The field is read at retracted weights, since the sphere repels where "
        "$\\nu < 0$.",
    ),
)
