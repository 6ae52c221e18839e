"""Figure 2: weight norms of residual networks along training, by depth.

How large are the weights of a trained residual network? The mean Frobenius norm of its
convolutions is taken at the start, where it follows from the initialisation, and after
every epoch. The paper argues that deeper networks have smaller weights, so that zero is
the point to study. Each seed gives a family of networks of all depths; the exponent of
the norm in depth is fitted family by family, and its error is over families.

Li et al. (2016), Demystifying ResNet, figure 2 and section 4.1. Cost: about 10 s at
QUICK; of PAPER, the committed run has depths 8, 20 and 38 with two seeds, which took 14
minutes of an H200. Depths 74 and 110 would take some 20 minutes more for each seed:
`theodolite run weight_norms_cifar --scale paper --data DIR` trains all.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from ..shared.cifar_config import training_cells
from ..shared.cifar_training import measure_cell
from . import config, figure

PAPER = config.PRESETS["paper"]
RUN = CommittedRun.of_study(__name__, free=("depths",))

STUDY = gather_study(
    __name__,
    cells=training_cells,
    measure=measure_cell,
    datasets=lambda config: (config.dataset,),
    splits=("train", "test"),
    committed=Committed(RUN, ("quantity", "epoch"), on="CIFAR-10"),
    revision=3,
    paper_size={"n_seeds": None},
    drawings=(
        Drawing(
            "norms",
            "Mean Frobenius norm of the convolutions against epochs, by depth, in the "
            "longest training. Bands: one standard deviation over seeds. Dotted: the "
            "learning rate falls to a tenth.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        f"The text does not list the paper's depths. The committed run has depths "
        f"{', '.join(map(str, RUN.config()['depths']))} at {PAPER.epochs} epochs, and "
        f"{RUN.config()['n_seeds']} seeds, where the paper does not say how many; "
        "depths 74 and 110 were not trained for so long. Three networks each of "
        "depths 38, 74 and 110, of 10 epochs with the learning rate falling at the "
        "same fractions of training, are a second reading.",
        f"{PAPER.precision} arithmetic with weights in float32.",
        "The mean is over the convolutions of the units: stem and classifier do not "
        "change with depth.",
        "Weight decay, which the text does not mention, is that of the implementation "
        "it used, 0.0001; it shrinks weights at every depth alike.",
        "The quick scale trains much narrower networks on 8×8 digits, so that it needs "
        "no files and no GPU; verdicts there rest on the committed run at paper scale.",
    ),
)
