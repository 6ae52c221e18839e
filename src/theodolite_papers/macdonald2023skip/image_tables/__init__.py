"""Table 1 and figures 3, 4: original and modified ResNets on CIFAR-10.

Hypothesis 6.1 says that skips with singular values 1 speed up training. PreAct-ResNet18
has three skips that are projections $A$. The modified one has $I + A$ there, with $I$
an average pool scaled to singular values 1. Both start at the same weights and see the
same batches; losses are compared epoch by epoch, and no run is left out.

MacDonald et al. (2023), On skip connections and normalisation layers in deep
optimisation, section 6.3 and appendix C. Cost: 10 s of processor time at QUICK; a
network at PAPER takes 84 s of an H200 when four share it.
"""

from theodolite.studies import Committed, Drawing, gather_study

from ..shared.image_config import ORIGINAL, image_cells
from ..shared.image_figure import CURVES
from ..shared.image_training import measure_cell
from ..shared.printed_tables import predict_table
from . import figure
from .config import PRESETS, RUN


def _committed_pairs() -> str:
    """Return a sentence on how many networks replace the paper's ten trials."""
    rows = RUN.rows().where(quantity="reached", added_identity=ORIGINAL)
    counts = [
        f"{len(pairs)} at {rate:g} in {precision}"
        for precision in rows.levels("precision")
        for rate in PRESETS["paper"].rates
        if len(pairs := rows.where(rate=rate, precision=precision))
    ]
    return f"The committed run has these pairs in place of ten: {', '.join(counts)}."


STUDY = gather_study(
    __name__,
    cells=image_cells,
    predict=predict_table(1, 2, 3),
    measure=measure_cell,
    datasets=lambda config: (config.dataset,),
    splits=("train", "test"),
    committed=Committed(RUN, ("quantity", "epoch"), on="CIFAR-10"),
    drawings=(
        CURVES,
        Drawing(
            "cells",
            "Training loss of the last epoch and test error, as table 1 prints them "
            "(hollow) and ours (filled), with standard deviations over networks. At "
            "rate 0.2 the printed means leave six diverged trials out, ours none.",
            figure.cell_table,
            figure.draw_cells,
        ),
    ),
    departures=(
        "The appendix does not give epochs, schedule, momentum and weight decay; the "
        "published script has 90 epochs, a rate times 0.2 after 30 and 60, no momentum "
        "and no decay. It mirrors images left and right, while the paper says "
        "vertically. Both are taken from the script.",
        "Each epoch leaves out the 80 images that do not fill a last batch; arithmetic "
        "is bf16 with weights in float32, and TF32 in a smaller arm; original and "
        "modified see the same batches, while the script goes on shuffling.",
        "The script tests 1,000 images at a time in training mode, so that batch "
        "normalisation uses the statistics of the test batch. Accuracies set beside "
        "the table are measured so; those by running statistics are given too.",
        f"{_committed_pairs()} Pairs at different rates have weights and "
        "batches of their own, so that all pairs are independent.",
        "The quick scale trains much narrower networks on 8×8 digits, so that it needs "
        "no files and no GPU.",
    ),
)
