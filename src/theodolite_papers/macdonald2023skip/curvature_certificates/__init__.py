r"""Sections 2 and 4: curvature and regularity from layers, certified.

A loss has a Lipschitz gradient if every layer and its derivatives are bounded and
Lipschitz, and constants of the whole follow from those of the layers. We make every
constant explicit, so that a network has a number $\beta$ that no Hessian may pass and a
number that the least eigenvalue of its tangent kernel may not fall below, and look for
networks and weights that break them. Formulas of the appendices meet automatic
differentiation.

MacDonald et al. (2023), On skip connections and normalisation layers in deep
optimisation, definitions 2.1 and 2.2, theorems 2.3, 2.4, 4.5 and 4.7, propositions 4.2,
4.3 and 4.6, corollary 4.4, examples A.1 to A.4, lemmas B.1 to B.5, equations 1 to 12
and 16 to 35. Cost: half a minute of processor time at QUICK, six minutes at PAPER.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    paper_size={"n_seeds": None, "steps": None},  # theorems: nothing is trained there
    drawings=(
        Drawing(
            "certified_and_true",
            "Means and standard deviations over networks of decimal logarithms. Left: "
            "certified smoothness over the largest Hessian norm of three points. "
            "Right: the least eigenvalue of the tangent kernel, and the part of its "
            "bound that is the first layer's, as all weights grow.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "The paper says that constants exist; ours are explicit: $|D^2P| \\leq 1.5 "
        "\\cdot 0.8^{5/2}/\\epsilon$ for both normalisations.",
        "Networks are small (three to five inputs, one to three residual blocks, "
        "$\\epsilon$ from 0.3 to 3), so that Hessians and kernels are dense; weights "
        "are drawn at sizes from 0.1 to 10, since 'everywhere' can only be sampled; "
        "bounds on curvature are climbed to from there, over weights and directions.",
        "Cross-entropy and square cost stand for the costs of corollary 4.4.",
        "Theorem 4.7 asks that branches' Jacobians stay below one at each point, and "
        "lemma B.4, which proves it, that they do by a margin $\\delta$ common to all: "
        "the networks here have that margin.",
    ),
)
