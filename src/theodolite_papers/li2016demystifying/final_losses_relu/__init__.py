"""Figure 8: final losses and best learning rates with ReLUs at mid positions.

The same question as for linear networks, with a ReLU between the two matrices of every
unit, and in plain networks at the same places: after every odd matrix, so that networks
of one depth have as many ReLUs. The optimal loss is not known and differs from depth to
depth, so what is shown is the final loss itself. A few seeds look for the best rate on
a coarse grid; then all seeds are trained at ten rates a decade around it, and further
while the optimum moves, until it lies inside.

Li et al. (2016), Demystifying ResNet, figure 8, section 5.3.1 and appendix B. Cost:
about 15 seconds of processor time at QUICK; six minutes of an H200 at PAPER.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from ..shared.final_losses import figure
from ..shared.final_losses.search import measure

STUDY = gather_study(
    __name__,
    measure=measure,
    compare=figure.compare,
    datasets=lambda config: (config.dataset,),
    committed=Committed(
        CommittedRun.of_study(__name__, free=("depths", "networks")),
        ("quantity", "trial", "rate"),
    ),
    drawings=(
        Drawing(
            "final_losses",
            "Left: mean over networks of the logarithm of the final loss, at the rate "
            "with the least mean loss; bands one standard error. Dotted: a network "
            "that outputs zero. Right: that rate; bands are its spread over resampled "
            "seeds. Hollow: final losses at best and worst rate lie within a tenth, "
            "so that no rate is best. Dash-dotted: networks the paper leaves out, "
            "since they have none (1-shortcut) or other numbers of ReLUs "
            "(3-shortcut).",
            figure.by_depth,
            figure.draw,
        ),
        Drawing(
            "by_rate",
            "Mean final loss against the learning rate at three depths, rates at which "
            "no run diverged; bands one standard error over networks.",
            figure.by_rate,
            figure.draw_by_rate,
        ),
    ),
    departures=(
        "Appendix B puts the ReLUs of plain networks where those of 2-shortcut ones "
        "are, which is read as after every odd matrix.",
        "The paper leaves out 1- and 3-shortcut networks, whose numbers of ReLUs "
        "differ from those of the others at the same depth. They are drawn here "
        "beside the others and enter no claim: units of one matrix have no middle, so "
        "1-shortcut networks are linear; units of three matrices have two ReLUs.",
        "The paper gives neither depths nor rates: even depths up to 64; rates ten a "
        "decade around the optimum, searched for between $10^{-4}$ and 10.",
        "Networks are compared on the same seeds, and seeds are averaged over depths "
        "before they are compared: weights of one seed are shared between depths. A "
        "network's own best rate is known to one step of the rates tried.",
        "Shortcut networks start at a hundredth of Xavier weights: at exactly zero, "
        "units of two or more matrices have no gradient.",
        "The paper averages losses; here the mean is of their logarithm. The best rate "
        "is that of the mean loss, over rates at which no network diverges.",
        "Training is in single precision. The quick scale uses 300 of 5,000 digits, "
        "five networks, four rates a decade, depths up to 32 and no networks beside; "
        "verdicts rest on a committed run at the paper scale, on all 60,000 digits, "
        "with ten networks and depths up to 64, on a GPU.",
    ),
)
