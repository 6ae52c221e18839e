r"""The path ensemble of residual networks along training.

The paper asserts that the ensemble of networks that a residual network is starts
shallow and becomes deeper and deeper as scales grow, and shows scales alone. Here the
ensemble itself is followed: the energy that paths of each length give to output and
gradient, in networks with one scale a layer, with batch normalisation and with none.

Littwin & Wolf (2016), The Loss Surface of Residual Networks, abstract and section 4,
claims 1 to 3. The claim in our words: the ensemble starts below half depth and becomes
deeper as training goes on, because scales grow. The paper measures no ensemble; here it
is measured, path length by path length, in networks in training, beside the paper's own
$\beta$. Cost: a minute of processor time at QUICK. PAPER takes an hour of processor
time and a GPU: an H200 trains five convolutional networks of depth 20 in 3 minutes. Of
depths 38 and 56 the committed run has five seeds each, read at few steps; with
`theodolite run depth_along_training --scale paper --data DIR` one trains all ten.
docs/studies.md has the commands for what the committed run lacks.
"""

import math
from functools import partial

from theodolite.core import Alive, Row
from theodolite.studies import Committed, CommittedRun, Drawing, Exhibit, gather_study

from ..shared.layerwise_config import LONG, SHORT
from . import figure
from .config import CLASSES, Config

SHOWN = (
    "Mean share of a network's branches that paths take, weighed by the energy that "
    "paths of each length give to the output (above) and to the gradient (below), "
    "against the step of training: mean and standard deviation over networks. Dotted: "
    "half depth."
)


def chance(row: Row) -> float:
    """Return the loss or error of a guess at the classes of a row's task."""
    classes = CLASSES.get(row["task"], math.inf)
    return 1 - 1 / classes if row["quantity"] == "test_error" else math.log(classes)


def _datasets(config: Config) -> tuple[str, ...]:
    named = (*config.tasks, *config.image_tasks)
    return tuple(dict.fromkeys(name for name in named if name != "gaussians"))


STUDY = gather_study(
    __name__,
    datasets=_datasets,
    splits=("train", "test"),
    committed=Committed(
        CommittedRun.of_study(__name__),
        ("quantity", "step", "factor"),
        on="Gaussians, MNIST and CIFAR-10",
    ),
    alive=Alive(
        by=figure.RUN, loss=("train_loss", "test_loss", "test_error"), chance=chance
    ),
    exhibits=(Exhibit("path_ensembles", figure.exhibit),),
    drawings=(
        Drawing(
            "depth_layers",
            f"{SHOWN} Fully connected networks, by readout and rate.",
            partial(figure.table, "layerwise", SHORT),
            figure.draw,
        ),
        Drawing(
            "depth_layers_long",
            f"{SHOWN} Fully connected networks trained for longer.",
            partial(figure.table, "layerwise", LONG),
            figure.draw,
        ),
        Drawing(
            "depth_images",
            f"{SHOWN} Convolutional networks.",
            partial(figure.table, "images", LONG),
            figure.draw,
        ),
    ),
    departures=(
        "The paper follows no ensemble. Ours freezes the gates at the true forward "
        "pass, holds the norms' statistics at those of one training batch, and counts "
        "the branches that a path from the inputs takes, as equation 8 does; what "
        "biases and shifts of norms add to the output is left out. Gradients are by "
        "the input of the first branch, while the paper's are by the weights.",
        "Fully connected networks have the layers of equation 20 and a readout; those "
        "without normalisation start at half the usual weights, so that they train. "
        "Plain SGD, no weight decay. The size of the readout at the start, the rate "
        "and the number of updates are axes on Gaussians with ten layers. The "
        "committed trainings have ten seeds.",
        "Convolutional networks are pre-activation networks with units of two layers, "
        "trained with Nesterov's momentum 0.9 and decay 0.0001 on images as they are; "
        "without normalisation, the last convolution of a unit starts divided by the "
        "root of the number of units, and the rate is five times smaller. Whether "
        "scales and shifts of norms decay, and the size of the readout at the start, "
        "are axes at depth 20; the committed run has neither norms without decay nor a "
        "small readout there. Of depth 20 it has ten seeds, of 38 and 56 five each, "
        "read at early steps and the last, as five of depth 20 without normalisation "
        "are.",
    ),
)
