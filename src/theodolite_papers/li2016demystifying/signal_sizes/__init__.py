"""Section 4.1: output variances at the start, responses after training.

Why start at zero? He's initialisation keeps the variance of a signal along a branch;
with the shortcut, which brings the input unchanged, each unit about doubles it. Closed
forms follow the mean square of every pixel through the units. Batch normalisation makes
each branch add a constant instead. The same networks with the weights of their units at
zero add nothing. After training the deviation of what a branch adds is its response.

Li et al. (2016), Demystifying ResNet, section 4.1. Cost: about 10 s at QUICK.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    datasets=lambda config: (config.dataset,),
    splits=("train", "test"),
    committed=Committed(
        CommittedRun.of_study(__name__, free=("depths", "units")), ("quantity", "epoch")
    ),
    drawings=(
        Drawing(
            "signals",
            "Left: output variance of new networks against units, means and standard "
            "deviations over networks of the decimal logarithm; dashed: closed forms. "
            "Right: mean response of a branch after every epoch, by depth.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "Pre-activation units of two layers in one stage, at the start in double "
        "precision and, where there is normalisation, with the statistics of the "
        "batch. All on 8×8 digits, at the paper scale too: section 4.1 names neither "
        "networks nor data.",
        "A response is the deviation of a branch before it is added, with the "
        "statistics of a batch: in pre-activation units no normalisation follows the "
        "last convolution of a branch.",
        "At the quick scale verdicts rest on a committed run at paper scale, of width "
        "8 and 15 epochs. Both were chosen after shorter trials of width 4, which left "
        "the responses open; in one of a single epoch, read with running statistics, "
        "they seemed to rise with depth, and the batch's statistics have been read "
        "since.",
    ),
)
