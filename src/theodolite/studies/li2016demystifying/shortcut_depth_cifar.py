"""Figure 9: test error on CIFAR-10 against depth, for shortcut depths 1 to 4.

Li et al. (2016), Demystifying ResNet, figure 9 and section 5.3.2. The claim in our
words: at a fixed number of parameters, and beyond depth 400, only units of two layers
profit from more depth.

Departures: see ``STUDY.departures``. Cost: about half a minute at QUICK; the
committed run at PAPER, 38 networks four at a time, took 12 minutes of an H200.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from theodolite.core import Row, Rows
from theodolite.studies.committed_first import judged
from theodolite.studies.committed_run import COMMITTED
from theodolite.studies.li2016demystifying import (
    shortcut_depth_cifar_claims,
    shortcut_depth_cifar_figure,
)
from theodolite.studies.li2016demystifying.cifar_judging import beside
from theodolite.studies.li2016demystifying.cifar_training import (
    RUN,
    SMALL,
    CifarConfig,
    committed_network,
    measure_cell,
    paper_config,
    plan_of,
    training_cells,
)
from theodolite.studies.study import Committed, Drawing, Study


@dataclass(frozen=True, kw_only=True)
class Config(CifarConfig):
    """Depths, shortcut depths and training of figure 9."""


SMOKE = Config(n_seeds=1, samples=320, depths=(14, 26), stages=1, epochs=1, **SMALL)
QUICK = Config(n_seeds=3, samples=960, depths=(38, 74), epochs=3, **SMALL)
PAPER = paper_config(Config)


def predict(config: Config) -> Rows:
    """Count the parameters of every network by formula."""
    rows = _counts(config, "trained", config.depths)
    if config.committed:
        depths = tuple(RUN.rows().levels("depth"))
        rows += _counts(PAPER, COMMITTED, depths)
    return Rows(rows)


def _counts(config: Config, source: str, depths: tuple[int, ...]) -> list[Row]:
    return [
        {
            "quantity": "parameters",
            "source": source,
            "depth": depth,
            "value": plan_of(config, {"depth": depth, "shortcut": 1}).parameters,
            "error": 0.0,
        }
        for depth in depths
    ]


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train one network and test it after every epoch."""
    return measure_cell(config, cell)


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Parameters by formula beside those counted."""
    return beside(predicted, measured, "parameters", "parameters")


def _beyond() -> tuple[str, ...]:
    """Say which committed networks are not of the paper scale's depths."""
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
        f"{shortcuts}, one seed and {epochs} epochs only: they are shown, they decide "
        "nothing, and the paper scale does not train them again.",
    )


STUDY = Study(
    title="Figure 9: CIFAR-10 error against depth, for shortcut depths 1 to 4",
    summary=(
        "Does it matter how many layers a shortcut skips? Pre-activation residual "
        "networks with units of 1, 2, 3 and 4 layers have exactly the same parameters "
        "and start at the same weights; only the identity paths differ. They are "
        "trained on the same batches and compared pair by pair. Verdicts are by "
        "Student's $t$ over seeds at the level of 5 %, shared among the comparisons "
        "of a claim; what the seeds cannot tell apart is undecided."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=training_cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=(
        *shortcut_depth_cifar_claims.BOTH,
        *(judged(claim, on="CIFAR-10") for claim in shortcut_depth_cifar_claims.CLAIMS),
    ),
    datasets=lambda config: (config.dataset,),
    splits=("train", "test"),
    committed=Committed(committed_network, ("quantity", "epoch")),
    revision=2,
    drawings=(
        Drawing(
            "error",
            "Test error after the last epoch against depth, by layers a shortcut "
            "skips. Points: means over seeds; bars: one standard deviation.",
            shortcut_depth_cifar_figure.draw,
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
        "The quick scale trains much narrower networks on 8×8 digits, so that it needs "
        "no files and no GPU; where rows of the paper scale are committed, verdicts "
        "are on those.",
    ),
)
