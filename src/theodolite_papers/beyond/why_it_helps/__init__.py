"""Beyond hypothesis 6.1: does I + A help because of spectra?

The paper's reason for adding $I$ to a projection is causal: spectra shift upwards,
hence training is faster. So we intervene on the same networks, from the same weights
and images: $I$ is scaled from 0 to 2, replaced by others that keep more than averages
or have random directions, and moved into the branch. If the reason is right, speed
follows the shift of the singular values, whatever made it.

Beyond MacDonald et al. (2023), On skip connections and normalisation layers in deep
optimisation, hypothesis 6.1 and equation 15: the added map is scaled, turned and moved,
and speed is set against the shift of the spectrum that each change makes. Cost: a third
of a minute of processor time at QUICK and two minutes at PAPER.
"""

from theodolite.core import Alive
from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    alive=Alive(by=("dataset", "variant", "trial"), loss="loss", over="step"),
    datasets=lambda config: config.datasets,
    drawings=(
        Drawing(
            "speed",
            "An intervention a point, against none: how much smaller the mean "
            "logarithm of the loss is, against the shift of the mean singular value "
            "at the start. Means and standard errors over trials.",
            figure.table,
            figure.draw,
        ),
    ),
    committed=Committed(
        CommittedRun.of_study(__name__, free=("n_seeds", "datasets")),
        ("quantity", "metric", "step"),
    ),
    departures=(
        "Images of 8 by 8 pixels have an architecture of their own: kernels of 3 by 3 "
        "in the first block, and a second block that halves the image.",
        "Spectra are taken before the first step, and those of the two blocks a sample "
        "at statistics of the batch.",
        "At the quick scale verdicts rest on a committed run of 12 trials a dataset "
        "with 32 images each; the run itself has 2 trials with 16.",
    ),
)
