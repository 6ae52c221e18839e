r"""Eq 31, figure 1(f), theorem 5: numbers of critical points.

The paper takes from the theory of spin glasses that the mean number of critical points
of index $k$ grows like $e^{\Lambda\theta_k}$, and asks how $\theta_k$ depends on the
mixture of path lengths. We follow the exact means from dimension 2 to that limit, by
the formula of Kac and Rice and the eigenvalues of random matrices, and find all
critical points of sampled glasses by Newton's method from many starts, where the Euler
characteristic of the sphere tells whether one is missing.

Littwin & Wolf (2016), The Loss Surface of Residual Networks, section 5 and the proof of
theorem 5 (Eqs 30 to 33 and 46 to 48). The claim in our words: the mean number of
critical points of low index grows exponentially in dimension, at a rate that rises as
the ensemble of a residual network gets deeper and is largest for the plain network.
Cost: 16 seconds of processor time at QUICK; about ten minutes at PAPER, most of it in
counts at dimension 5.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    paper_size=None,  # the paper counts none
    drawings=(
        Drawing(
            "figure_1f",
            "Figure 1(f): the exponent of Eq 31 against the scale of a branch, of "
            "residual networks of several depths without paths of length 1. Dashed: "
            "plain networks of the same depths.",
            figure.curves,
            figure.draw_curves,
        ),
        Drawing(
            "counts",
            "Critical points of sampled glasses, mean and standard error. Dashed: "
            "exact means. Crosses: $e^{\\Lambda\\theta}$ of Eq 31, taken for a number.",
            figure.counts,
            figure.draw_counts,
        ),
        Drawing(
            "approach",
            "How far the exact means of single orders are from the limit of Eq 31.",
            figure.approach,
            figure.draw_approach,
        ),
    ),
    departures=(
        "Figure 1(f) names no depth and no range: depths of 3 to 100 and scales of "
        "0.01 to 10 are used.",
        "Counts are of dimensions 2 to 5, where all critical points can be found; the "
        "limit is followed by exact means of dimensions up to 320 (640 at the paper "
        "scale).",
    ),
)
