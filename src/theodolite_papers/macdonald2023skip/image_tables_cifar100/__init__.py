"""Table 2 and figure 5: original and modified ResNets on CIFAR-100.

MacDonald et al. (2023), On skip connections and normalisation layers in deep
optimisation, section 6.3 and appendix C. Table 2's rows are what ``image_tables``
examines in print; here its networks can be trained, at rates that do differ.

Departures: as of table 1. Cost: seconds at QUICK; a network at PAPER takes about 80 s
of an H200 when four share it.
"""

from theodolite.studies import Drawing, Study

from ..shared.image_comparison import compare_table, curve_table
from ..shared.image_config import image_cells
from ..shared.image_figure import draw_curves
from ..shared.image_predict import predict_table
from ..shared.image_training import measure_cell
from .claims import CLAIMS
from .config import PRESETS

STUDY = Study(
    title="Table 2 and figure 5: original and modified ResNets on CIFAR-100",
    summary=(
        "The networks and the training of table 1 with a hundred classes. The quick "
        "scale trains small networks on digits to show that all of it runs; only "
        "networks trained on CIFAR-100 are judged."
    ),
    presets=PRESETS,
    cells=image_cells,
    predict=predict_table(2),
    measure=measure_cell,
    compare=compare_table(2, "cifar100"),
    claims=CLAIMS,
    datasets=lambda config: (config.dataset,),
    splits=("train", "test"),
    drawings=(
        Drawing(
            "curves",
            "Training loss, a mean over each epoch, of original and modified networks "
            "by learning rate: geometric means over networks, one standard deviation "
            "shaded; in brackets their number. A network that diverged goes on at the "
            "loss of chance.",
            curve_table,
            draw_curves,
        ),
    ),
    departures=(
        "As of table 1: what the appendix does not give is of the published script, "
        "but for the rate, which the script fixes at 0.1 for every row.",
        "CIFAR-100 does not come with the package: pass its folder by --data and run "
        "the paper scale. Until then every claim is open.",
    ),
)
