r"""Figure 1(d): scales of batch normalisation along training.

Do the scales $\lambda_l$ grow as a residual network trains? Networks of ten layers with
one scale a layer, as in equation 20, and with ordinary batch normalisation learn to
tell 50 Gaussians apart; before training, the sizes of their layers are followed through
the depth.

Littwin & Wolf (2016), The Loss Surface of Residual Networks, section 4.1, equation 20
and figure 1(d). The claim in our words: the scales start at one and grow steadily as
the network trains, the first layer's in its own way. Cost: half a minute of processor
time at QUICK.
"""

import math

from theodolite.core import Alive
from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from . import figure
from .config import PRESETS, RUN

STUDY = gather_study(
    __name__,
    committed=Committed(CommittedRun.of_study(__name__), ("quantity", "step", "layer")),
    drawings=(
        Drawing(
            "scales",
            "Magnitude of the scales against the layer at several steps of training: "
            "mean over networks and its standard error; a column per readout and rate.",
            figure.table,
            figure.draw,
        ),
        Drawing(
            "sizes",
            "Mean square of a unit against the layer before training, all scales 1. "
            "Dashed: the limit of wide networks, and the recursion as printed.",
            figure.sizes,
            figure.draw_sizes,
        ),
    ),
    alive=Alive(by=RUN, loss="train_loss", chance=math.log(PRESETS["paper"].classes)),
    departures=(
        "The paper gives neither the Gaussians nor the training: here 50 dimensions, "
        "unit variance, means of norm 8, plain SGD on batches of 128, no weight decay, "
        "cross-entropy of a linear readout. The size of the readout at the start, the "
        "rate and the number of updates are axes.",
        "$\\sigma_l$ is the batch's, and differentiated through, as batch "
        "normalisation does.",
        "The readout has no scale and is not counted as a layer.",
    ),
)
