r"""Eqs 5, 6, 26 to 29: the energy of a spherical spin glass.

The loss is modelled by $-\sum_r \epsilon_r \Lambda^{-(r-1)/2} \sum J^r_{i_1 \dots i_r}
\tilde w_{i_1} \cdots \tilde w_{i_r}$ on a sphere, with normal $J$. Many such energies
are sampled, exactly in law, and their values, gradients and Hessians at points of the
sphere are squared and averaged: the variance should be $\Lambda$ for every mixture, and
the numbers $v'$ and $v''$ of definition 3 should be what gradient and Hessian say.

Littwin & Wolf (2016), The Loss Surface of Residual Networks, Eqs 5, 6 and 26 to 29 and
definition 3. The claim in our words: on the sphere the energy is centred and normal,
its variance is the dimension whatever the mixture, and two numbers of the mixture say
how steep and how bent it is. Cost: seconds at QUICK, a minute at PAPER.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    paper_size=None,  # the paper samples no field
    drawings=(
        Drawing(
            "field",
            "Second moments of energy, gradient and Hessian over those of the closed "
            "form, by mixture; standard errors over trials. Hollow: the product of "
            "Eq 26 as printed, one factor short.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "Dimensions of 3 to 6 in place of a limit: all of these are exact at every "
        "dimension.",
        "The $\\Lambda^r$ couplings of Eq 5 enter as sums over equal monomials, which "
        "have the same law.",
    ),
)
