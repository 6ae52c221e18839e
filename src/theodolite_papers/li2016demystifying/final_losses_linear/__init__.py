r"""Figure 7: final losses and best learning rates of linear networks.

Given its best learning rate, how far does a linear network of a given depth get in
1,000 steps of gradient descent on whitened digits? The least loss is known exactly,
$\frac12(\mathrm{tr}\,\Sigma^{YY} -
\mathrm{tr}\,\Sigma^{YX}(\Sigma^{XX})^{-1}\Sigma^{XY})$, so what is shown is the excess
over it. Every network is trained from ten seeds at ten rates a decade over five
decades; the rate with the least mean loss over seeds is the best one. A linear network
sees the samples through their second moments alone, which is how tens of thousands of
runs take minutes.

Li et al. (2016), Demystifying ResNet, figure 7, section 5.3.1 and appendix B. Cost:
about 12 seconds of processor time at QUICK and 200 at PAPER: the samples enter by their
moments alone.
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
            "Left: mean over networks of the logarithm of the excess over the optimal "
            "loss after training, at the rate with the least mean loss; bands one "
            "standard error. Dotted: a network that outputs zero. Right: that rate; "
            "bands are its spread over resampled seeds. Hollow: final losses at best "
            "and worst rate lie within a tenth, so that no rate is best.",
            figure.by_depth,
            figure.draw,
        ),
        Drawing(
            "by_rate",
            "Mean excess against the learning rate at three depths, rates at which no "
            "run diverged; bands one standard error over networks.",
            figure.by_rate,
            figure.draw_by_rate,
        ),
    ),
    departures=(
        "The paper gives neither depths nor rates: depths are multiples of 6, at which "
        "units of 1, 2 and 3 matrices all fit, and 4; rates are ten a decade from "
        "$10^{-4}$ to 10 (five a decade from $10^{-3}$ at the quick scale).",
        "Depth 2 is left out, since networks reach the optimum to rounding there.",
        "Networks are compared on the same seeds, and seeds are averaged over depths "
        "before they are compared: weights of one seed are shared between depths. A "
        "network's own best rate is known to one step of the rates tried.",
        "Shortcut networks start at a hundredth of Xavier weights: at exactly zero, "
        "units of two or more matrices have no gradient.",
        "The paper averages losses; here the mean is of their logarithm, since single "
        "networks spread over decades. The best rate is that of the mean loss, over "
        "rates at which no network diverges.",
        "The quick scale uses 5,000 digits, six networks and depths up to 48; verdicts "
        "rest on a committed run at the paper scale, on all 60,000 digits, with ten "
        "networks and depths up to 96.",
    ),
)
