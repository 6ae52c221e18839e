"""Table 3 and figure 6: original and modified ResNets on ImageNet.

PreAct-ResNet50 with momentum and weight decay. The quick scale trains small bottleneck
networks on digits to show that all of it runs; only networks trained on a folder of
images are judged.

MacDonald et al. (2023), On skip connections and normalisation layers in deep
optimisation, section 6.3 and appendix C: PreAct-ResNet50, momentum 0.9, weight decay
0.0001, batches of 256. Cost: seconds at QUICK; the paper scale wants the images, and
days of a GPU.
"""

from theodolite.studies import gather_study

from ..shared.image_config import image_cells
from ..shared.image_figure import CURVES, compare_table
from ..shared.image_training import measure_cell
from ..shared.printed_tables import predict_table

STUDY = gather_study(
    __name__,
    cells=image_cells,
    predict=predict_table(3),
    measure=measure_cell,
    compare=compare_table(3, "imagefolder"),
    datasets=lambda config: (config.dataset,),
    splits=("train", "test"),
    drawings=(CURVES,),
    departures=(
        "The published script names a network that does not take images of ImageNet's "
        "size: its classifier wants features of one pixel after a pool of 4×4, and 224 "
        "pixels leave 7×7. Ours has the stem of the usual ResNet-50, 7×7 with stride 2 "
        "and a maximum, and a mean over all pixels.",
        "Epochs and schedule, 90 and times 0.1 after 30 and 60, are those of PyTorch's "
        "example, which the appendix names. Crops are shifts by up to 16 pixels, "
        "without its change of scale.",
        "Images are a folder with train and test (ImageNet's val), brought to one size "
        "beforehand, and must fit into the device's memory: 1.3 million of 128×128 "
        "pixels take 63 GB. Until there is such a folder every claim on trained "
        "networks is open.",
    ),
)
