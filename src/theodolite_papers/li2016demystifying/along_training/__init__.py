r"""Figures 5 and 6: eigenvalues, index and gradient along training.

A good start does not make an easy trip. Networks are trained by full-batch gradient
descent on whitened digits; at common levels of the loss the Hessian is taken, and its
largest magnitude, its 10th percentile and its fraction of negative eigenvalues (the
index) are interpolated for each run. Theory knows both ends. At zero weights a
2-shortcut network has the condition number of the data and index $1/2$. At an optimum
the Hessian is $J^T J$, whose rank is at most $d^2$ of $L\,d^2$ parameters, so that the
10th percentile goes to zero and the ratio to infinity, for every linear network of two
layers or more.

Li et al. (2016), Demystifying ResNet, figures 5 and 6, section 5.2 and appendix B.
Cost: about 20 s of processor time at QUICK, a quarter of an hour at PAPER, nearly all
of it eigenvalues of 1600 parameters.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    datasets=lambda config: (config.dataset,),
    drawings=(
        Drawing(
            "eigenvalues",
            "Largest magnitude (filled) and 10th percentile (hollow) of the "
            "eigenvalues at equal excess loss. Points: geometric mean over networks, "
            "bands one standard deviation of the logarithm.",
            figure.level_table(("largest", "small"), log=True),
            figure.draw_eigenvalues,
        ),
        Drawing(
            "ratio",
            "Ratio of the two at equal excess loss, one panel a depth. Training goes "
            "from left to right, and the ratio grows without bound.",
            figure.level_table(("ratio",), log=True),
            figure.draw_ratio,
        ),
        Drawing(
            "index",
            "Fraction of negative eigenvalues at equal excess loss, mean and standard "
            "deviation over networks. Dotted: ½, the value at zero weights.",
            figure.level_table(("index",), log=False),
            figure.draw_index,
        ),
        Drawing(
            "run",
            "One run of a 2-shortcut network: norm of the gradient and curvature along "
            "it, index. Dotted: the step at which the gradient is "
            "largest.",
            figure.run_table,
            figure.draw_run,
        ),
    ),
    committed=Committed(
        CommittedRun.of_study(__name__), ("quantity", "fraction", "step")
    ),
    departures=(
        "Hessians are taken at the first step at or below each level, not at every "
        "epoch, and interpolated between those states; the distance to the nearest "
        "state is the error.",
        "Levels are fractions of the excess over the optimal loss, since the prose is "
        "about what happens near it.",
        "The paper does not state rates: 0.05 for 2-shortcut, 0.01 for orthogonal and "
        "1-shortcut, 0.002 for Xavier weights.",
        "A second depth is a check that the paper does not make; its single run of "
        "figure 6 is made with several networks.",
        "At the quick scale verdicts rest on a committed run at paper scale (60,000 "
        "digits, 10 networks of each kind); the run itself has 3 2-shortcut and 3 "
        "orthogonal networks of depth 16.",
        "Beyond the first network of a kind Hessians come from weights and second "
        "moments, which is the same matrix.",
    ),
)
