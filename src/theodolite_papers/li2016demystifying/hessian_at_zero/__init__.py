r"""The Hessian at zero: structure and condition for n = 1, 2, 3 and up.

Where all weights of an $n$-shortcut network are zero it is the identity map. For $n=2$
its Hessian is one $d^2 \times d^2$ block $A$ and its transpose, repeated in every unit,
with eigenvalues $\pm$ the singular values of $M=\Sigma^{XX}-\Sigma^{YX}$, whatever the
depth; for $n=1$ all units couple; for $n \geq 3$ the Hessian vanishes. Each closed form
is compared with the Hessian of a real network, measured by double backward, and data
are made on which $M$ is singular or zero.

Li et al. (2016), Demystifying ResNet, theorem 2, Eqs 8–10 and 21–32, definitions 1, 2
and 5, figures 1 and 11. Cost: seconds at QUICK.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    paper_size=None,  # a theorem
    drawings=(
        Drawing(
            "unit",
            "Figure 1: a unit of a 2-shortcut network, with the three places of "
            "activations. Matrices are parameters, the upper arrow is the shortcut.",
            figure.unit,
            figure.draw_unit,
        ),
        Drawing(
            "hessian",
            "Entries of the Hessian at zero for three units of width 2, closed form "
            "above and measured below: shortcuts of length 1, 2 and 3. Lines separate "
            "weight matrices.",
            figure.picture,
            figure.draw,
        ),
    ),
    departures=(
        "Random Gaussian inputs and targets, since the theorem is for any data.",
        "Double precision and small widths, so that every entry can be compared.",
    ),
)
