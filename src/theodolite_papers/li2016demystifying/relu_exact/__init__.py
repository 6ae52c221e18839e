r"""Activations: condition numbers of nonlinear networks near zero.

The measure is that of figure 4, $|\lambda|_{\max}/|\lambda|_{(0.1)}$ on whitened
digits, now of 2-shortcut networks with ReLU at mid and of 1-shortcut networks with
activations, at small weights. ReLU bends only at its kinks: with its gates frozen a
2-shortcut network is multilinear in its matrices, so its Hessian is a Gauss–Newton part
and a part that joins two different matrices through the error: exact at any weights.
Near zero it tends to blocks of half-space moments, one for each hidden unit. They are
independent draws, so a deeper network has more of them from the same distribution: its
bulk does not see depth, its extremes a little.

Li et al. (2016), Demystifying ResNet, abstract ("with or without nonlinearities"),
theorem 2 with assumption 3, section 5.3.1, which trains such networks. That small
weights see half-space moments, not Eq 9, is judged in ``around_zero``. Cost: about 15 s
at QUICK, minutes at PAPER.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    datasets=lambda config: (config.dataset,),
    committed=Committed(
        CommittedRun.of_study(__name__, free=("depths", "one_depths")), ("quantity",)
    ),
    revision=2,
    drawings=(
        Drawing(
            "activations",
            "Left: largest over tenth percentile of $|\\lambda|$ against depth, means "
            "and standard deviations over networks of the decimal logarithm; dashed: "
            "closed form at zero. Right: distance of the measured spectrum from that "
            "of half-space moments, as a fraction of the largest eigenvalue, against "
            "the size of the weights; dashed: slope 2.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "The paper plots condition numbers of linear networks only; here its measure "
        "and data are kept and activations added.",
        "1-shortcut networks have no mid position: activations stand before or after "
        "the matrix. They are measured on the first thousand digits.",
        "Beyond the depths measured by double backward, Hessians of 2-shortcut ReLU "
        "networks are the exact ones at the weights of the built network, which meet "
        "the measured ones to rounding.",
        "Hessians away from zero, which the paper does not have, are met on random "
        "Gaussian inputs and targets, in networks of width 4.",
        "At the quick scale verdicts rest on a committed run at paper scale; the run "
        "itself has fewer and shallower networks. How many networks the committed run "
        "has was set after a trial of twelve, whose spread was too large for the "
        "margin; the margin is that of figure 4.",
    ),
)
