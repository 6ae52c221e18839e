"""Figure 1(e): the norm of the weights without batch normalisation.

Without batch normalisation, does the size $C$ of the weights grow, and steadily?
Residual networks of ten layers learn to tell 50 Gaussians apart, and every change of
their squared norm is split into its two orders.

Littwin & Wolf (2016), The Loss Surface of Residual Networks, section 4.2 and figure
1(e). The claim in our words: without batch normalisation the norm of the weights takes
the part of the scales and increases steadily. Cost: a quarter of a minute of processor
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
            "norm",
            "Left: norm of all layers' weights over its start, mean and standard "
            "deviation over networks. Right: what its square was changed by since the "
            "start, by the order of the change, of the larger start.",
            figure.table,
            figure.draw,
        ),
    ),
    alive=Alive(by=RUN, loss="train_loss", chance=math.log(PRESETS["paper"].classes)),
    departures=(
        "The paper gives neither task nor training: the same as for figure 1(d), plain "
        "SGD without weight decay; the readout's size at the start, the rate and the "
        "number of updates are axes.",
        "Starting weights have the paper's $C = 1/\\sqrt{n}$, and half of it, as the "
        "norm's course hangs on the start.",
        "The readout is left out of the norm.",
    ),
)
