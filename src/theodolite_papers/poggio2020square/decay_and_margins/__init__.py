r"""Weight decay, starts and label noise: norms, margins and errors at the end.

Does a smaller norm $\rho$ at the end go with wider margins and fewer errors on new
samples? Does weight decay make training forget where it started, how much of it, and
does label noise do the same? Networks of four layers with batch norms learn two classes
from several starts at many decays and noises.

Poggio & Liao (2020), Generalization in deep network classifiers trained with the square
loss: observation 2, lemma 1, figures 1 to 9, appendix E.1, footnote 13. The claim in
our words: weight decay makes training forget its start and end at small norms, which
have wide margins and few errors; label noise does the same. Cost: a quarter of a minute
of processor time at QUICK; at PAPER 280 networks of 1,000 epochs on 10,000 images, some
two minutes of a GPU.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from . import figure
from .claims_norms import ALIVE

_RUN = CommittedRun.of_study(__name__)

STUDY = gather_study(
    __name__,
    revision=2,
    alive=ALIVE,
    committed=Committed(
        _RUN,
        (
            "quantity",
            "decay",
            "start",
            "noise",
            "epoch",
            "stage",
            "reading",
            "of",
            "over",
            "level",
        ),
        on="CIFAR-10",
    )
    if _RUN.config()
    else None,
    datasets=lambda config: (config.dataset,),
    drawings=(
        Drawing(
            "norms_and_errors",
            "Margins and errors on new samples beside the norm at the end, a point a "
            "decay and start, and the deviation of margins over their root mean "
            "square. Bars: one deviation over trials.",
            figure.norms,
            figure.draw_norms,
        ),
        Drawing(
            "starts_forgotten",
            "Left: the norm at the end by decay, from layers of several norms. Right: "
            "the decay at which the dependence on the start is halved, and is a fifth, "
            "by the length of training; dashed: its inverse. Bars: one deviation over "
            "trials.",
            figure.starts,
            figure.draw_starts,
        ),
        Drawing(
            "label_noise",
            "Without decay: the norm of the last layer and errors on new samples by "
            "the size of label noise. Bars: one deviation over trials.",
            figure.noise,
            figure.draw_noise,
        ),
    ),
    departures=(
        "Below the paper scale two digits of `mnist5k`, averaged to 7 x 7 pixels, 256 "
        "of them to train on, and narrow layers stand for CIFAR-10, and trainings are "
        "shorter.",
        "Layers are dense; batch norms have no scale and shift, and the last layer has "
        "none.",
        "All numbers are of batch norms with the statistics of all training samples. "
        "Norms swing where decay balances gradients: ends are averages over the last "
        "fifth of training.",
    ),
)
