"""Figure 9: CIFAR-10 error against depth, by shortcut depth.

Does it matter how many layers a shortcut skips? Pre-activation residual networks with
units of 1, 2, 3, 4, 6 and 12 layers have exactly the same parameters and start at the
same weights; only the identity paths differ. They are trained on the same batches and
compared pair by pair.

Li et al. (2016), Demystifying ResNet, figure 9 and section 5.3.2. Cost: about 20 s at
QUICK; the committed run at PAPER, 38 networks four at a time, took 12 minutes of an
H200.
"""

from theodolite.studies import Committed, Drawing, gather_study

from ..shared.cifar_config import RUN, training_cells
from ..shared.cifar_training import measure_cell
from . import config, figure

PAPER = config.PRESETS["paper"]


def _beyond() -> tuple[str, ...]:
    """Return a sentence on committed networks of other depths than the paper's."""
    rows = RUN.rows().where(quantity="parameters")
    rows = rows.where(lambda row: row["depth"] not in PAPER.depths)
    if not len(rows):
        return ()
    depths, epochs, shortcuts = (
        ", ".join(map(str, rows.levels(name)))
        for name in ("depth", "epochs", "shortcut")
    )
    return (
        f"The committed run also has networks of depth {depths}, with shortcut depths "
        f"{shortcuts}, one seed and {epochs} epochs only: they decide nothing, and the "
        "paper scale does not train them again.",
    )


STUDY = gather_study(
    __name__,
    cells=training_cells,
    measure=measure_cell,
    datasets=lambda config: (config.dataset,),
    splits=("train", "test"),
    committed=Committed(RUN, ("quantity", "epoch"), on="CIFAR-10"),
    revision=3,
    paper_size={"epochs": 200, "n_seeds": 10},
    drawings=(
        Drawing(
            "error",
            "Test error after the last epoch against depth, by layers a shortcut "
            "skips. Points: means over seeds; bars: one standard deviation.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        f"{PAPER.epochs} epochs in place of the default of the implementation that "
        "the paper used, the learning rate falling at the same fractions of training; "
        f"{PAPER.n_seeds} seeds in place of 10; depths "
        f"{', '.join(map(str, PAPER.depths))}, where the paper goes beyond 400 and "
        f"does not list its depths; {PAPER.precision} arithmetic with weights in "
        "float32.",
        "The paper does not give batch size, momentum and weight decay: 128 images, "
        "Nesterov's momentum 0.9 and decay 0.0001 are those of the implementation.",
        *_beyond(),
        "The identity path changes stages by dropping every second pixel and padding "
        "with zero channels, which has no parameters; the first stage starts with the "
        "normalisation of its own first unit.",
        "The quick scale trains much narrower networks of one stage on 8×8 digits, so "
        "that it needs no files and no GPU; verdicts there rest on the committed run "
        "at paper scale.",
    ),
)
