r"""Neural collapse at every norm, and the square loss beside cross-entropy.

Do features of two, three and ten classes collapse under the square loss, as with
cross-entropy, and does the norm $\rho$ at the end matter? Decays from none up and two
starts make norms of many orders of magnitude. Which of the two losses is good sooner,
and which overfits if training goes on?

Poggio & Liao (2020), Generalization in deep network classifiers trained with the square
loss: sections 5 and 6.1, appendix G. The claim in our words: networks that fit their
samples under the square loss have collapsed, whatever their norm; they are good sooner
than under cross-entropy and overfit later on. Cost: a quarter of a minute of processor
time at QUICK; at PAPER 400 networks of 80 epochs on 10,000 images, a minute of a GPU.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from . import figure
from .claims import ALIVE

_RUN = CommittedRun.of_study(__name__)

STUDY = gather_study(
    __name__,
    revision=2,
    alive=ALIVE,
    committed=Committed(
        _RUN,
        ("quantity", "loss", "decay", "start", "rate", "epoch", "stage", "reading"),
        on="CIFAR-10",
    )
    if _RUN.config()
    else None,
    paper_size={"epochs": 1000},  # of the trainings that the captions describe
    datasets=lambda config: (config.dataset,),
    drawings=(
        Drawing(
            "collapse_by_norm",
            "The four properties of neural collapse at the end of training with the "
            "square loss, a point a decay and start; 0 is complete. Dashed: untrained. "
            "Means of two classes are opposite about their middle whatever they are, "
            "so that they have no NC2. Bars: one deviation over trials.",
            figure.collapse,
            figure.draw_collapse,
        ),
        Drawing(
            "losses_over_time",
            "Errors on new samples of the largest group of classes, without decay. "
            "Bands: one standard error over trials.",
            figure.curves,
            figure.draw_curves,
        ),
    ),
    departures=(
        "Below the paper scale classes of `mnist5k`, averaged to 7 x 7 pixels, some "
        "256 of them to train on, and narrow layers stand for CIFAR-10, and trainings "
        "are shorter.",
        "Layers are dense and without biases, the last one too; batch norms have no "
        "scale and shift. NC3 is of the head's rows about their mean.",
        "Flipped labels and further rates are ours. At the paper scale layers have 64 "
        "units, 10,000 images are trained on for 80 epochs, and all trials have the "
        "same. The captions of figures 1 to 12 have 1,000 epochs.",
    ),
)
