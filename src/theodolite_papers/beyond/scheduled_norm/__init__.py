r"""Section 6.1: norms on a schedule.

Can the norm $\rho(t)$ be controlled apart from the directions $V_k$ so that training
leads to good solutions from any start? An optimiser that keeps directions on spheres is
compared with batch norm and weight decay: held-out error, margins, and what different
starts lead to.

Poggio & Liao (2020), Generalization in deep network classifiers trained with the square
loss, section 6.1, first remark: "Suppose we control $\rho_k$ independently of $V_k$ and
of equation 28: can we find $\rho(t)$ schedules leading more reliably to good solutions
independently of initial conditions?" Directions move on spheres by
``training.SphereSGD``. Cost: seconds at QUICK, about ten minutes of a core at PAPER.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    committed=Committed(
        CommittedRun.of_study(__name__), ("quantity", "setting", "start", "share")
    ),
    datasets=lambda config: ("digits", "mnist5k"),
    drawings=(
        Drawing(
            "methods",
            "Means over splits with their standard errors, at the settings that each "
            "split chose. Left: held-out error. Middle: share of held-out samples on "
            "which networks from two starts differ. Right: margins over the product of "
            "norms, batch norms folded in.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "Two digits and ten of the sets digits and mnist5k stand for CIFAR-10; a tenth "
        "to a half of the samples are trained on, so that errors can be told apart.",
        "Four dense layers without biases, the mean over samples of the square loss; "
        "batch norms have no gains, and statistics of all training samples at the end.",
        "Where batch norms follow, rows of weights start with norm one on spheres.",
    ),
)
