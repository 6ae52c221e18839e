"""Figure 3: norms of the weights along training, by depth.

How far does a 2-shortcut network travel from zero? The measure is the mean Frobenius
norm of its matrices along full-batch gradient descent on whitened digits, from a
hundredth of Xavier weights. Theory says that all depths leave zero alike, along the
singular vectors of $M$, and that a network of $R$ units needs norms of order
$R^{-1/2}$: each unit does a share $1/R$ of the work, with two matrices. Networks are
trained at rates up to those that lose them.

Li et al. (2016), Demystifying ResNet, figure 3, section 4.1 and appendix B. Cost: about
15 s of processor time at QUICK; at PAPER five minutes for linear networks, and three
hours for ReLU networks, or ten minutes of a GPU.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    datasets=lambda config: (config.dataset,),
    drawings=(
        Drawing(
            "norms",
            "Mean Frobenius norm of the weight matrices along training, at the highest "
            "rate at which no network diverges. Lines: mean over networks, bands one "
            "standard deviation. Dashed: growth near zero, the same at every depth.",
            figure.norms_table,
            figure.draw_norms,
        ),
        Drawing(
            "scaling",
            "Mean norm at the end of training against the number of residual units, "
            "each depth at its best rate; both axes are logarithmic. Hollow: the best "
            "rate is the last tried, so that it is not known. Dashed: $R^{-1/2}$ "
            "through the last point.",
            figure.scaling_table,
            figure.draw_scaling,
        ),
    ),
    committed=Committed(
        CommittedRun.of_study(__name__, free=("depths",)),
        ("quantity", "trial", "lr", "step"),
    ),
    departures=(
        "The paper gives neither depths nor rates: depths 4 to 64 are trained at rates "
        "from 0.1 up to 12.8. Depths are compared at one rate, the highest at which no "
        "network diverges; their own best rates are a check beyond the paper.",
        "At the quick scale verdicts rest on a committed run at paper scale (60,000 "
        "digits, 10 networks a depth and rate); the run itself has 4, on 5,000 digits, "
        "of which ReLU networks see every tenth.",
        "Zero initialisation means a hundredth of Xavier weights, as in section 4.1: "
        "at exactly zero the gradient vanishes.",
    ),
)
