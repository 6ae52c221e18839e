r"""Figures 1 to 12: norms and margins of classifiers along training.

Four layers learn two classes by the square loss: with batch normalisation and weight
decay, without decay, and without both, from the norms that the captions give. The norm
$\rho$, the outputs $f_n$ of the normalised network, $\sum y_n f_n/\sum f_n^2$ and the
margins of all samples are followed.

Poggio & Liao (2020), Generalization in deep network classifiers trained with the square
loss, figures 1 to 12 and what sections 1.2, 3 and 6.1 say of them. The claim in our
words: with batch normalisation and weight decay training forgets where it started, and
without it does not; norms grow from small starts to where the margin is their inverse.
Cost: half a minute of processor time at QUICK, some twenty minutes of a GPU at PAPER.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from . import figure
from .claims_tests import ALIVE

_RUN = CommittedRun.of_study(__name__)

STUDY = gather_study(
    __name__,
    revision=2,
    alive=ALIVE,
    committed=Committed(
        _RUN, ("quantity", "condition", "start", "epoch", "share"), on="CIFAR-10"
    )
    if _RUN.config()
    else None,
    paper_size={  # by all captions
        "convolutional_epochs": 1000,
        "medium_epochs": 1000,
        "medium_convolutional_epochs": 1000,
    },
    datasets=lambda config: (config.dataset,),
    splits=("train", "test"),
    drawings=(
        Drawing(
            "losses",
            "Figures 1, 6 and 10: the square loss of a run by epoch, from every start; "
            "dashed: on samples held out. Runs that diverged at once are not drawn.",
            figure.losses,
            figure.draw_losses,
        ),
        Drawing(
            "norms",
            "Figures 2, 7 and 11: the product of the Frobenius norms of all layers.",
            figure.norms,
            figure.draw_norms,
        ),
        Drawing(
            "zooms",
            "Figures 2 and 3 with their zooms, batch normalisation and weight decay: "
            "the first ten epochs of $\\rho$, and the mean of $|f_n|$.",
            figure.zooms,
            figure.draw_zooms,
        ),
        Drawing(
            "ratios",
            "Figure 4: $\\sum y_n f_n/\\sum f_n^2$ over $\\rho$; dashed: "
            "$1 + \\lambda/\\sum f_n^2$ at the same weights, where it rests by "
            "equation 7.",
            figure.ratios,
            figure.draw_ratios,
        ),
        Drawing(
            "margins",
            "Figures 5, 8 and 12: margins of all training samples at the end, sorted, "
            "over their mean magnitude.",
            figure.margins,
            figure.draw_margins,
        ),
        Drawing(
            "histograms",
            "Figure 9: $|f_n|$ over time, median, half and nine tenths of all samples.",
            figure.histograms,
            figure.draw_histograms,
        ),
    ),
    departures=(
        "The paper names neither the classes nor widths: airplanes and automobiles, "
        "256 units, or three 3 x 3 convolutions of 32 channels and stride 2 with a "
        "last one over the 4 x 4 pixels that are left. Of that width nothing can be "
        "trained with normalisation at rate 0.1, so that figures 1 to 5 have narrow "
        "networks of 32 units or 2 channels as well, and all figures some of 64 units "
        "or 4 channels, also at rate 0.01 and from other starts. Below the paper "
        "scale two digits of 8 x 8 pixels, 64 units or 8 channels.",
        "All captions have 1,000 epochs. At the paper scale convolutional networks "
        "have 500, those of 4 channels 300, and those of 64 units 740.",
        "Both readings are trained: dense and convolutional, and figure 1's setting "
        "with weight decay 0.01 and without. Normalised are all layers but the last, "
        "without scale or shift; all layers decay.",
        "Batches that would not be full are left out. Numbers along training are read "
        "off all training samples, by whose statistics batch norms then go, on samples "
        "held out too.",
    ),
)
