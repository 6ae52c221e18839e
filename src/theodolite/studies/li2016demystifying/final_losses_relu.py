"""Figure 8: optimal final losses and learning rates of ReLU-mid networks.

Li et al. (2016), Demystifying ResNet, figure 8, section 5.3.1 and appendix B. The
claim in our words: with ReLUs between the two matrices of every unit, 2-shortcut
networks reach losses that fall with depth, and take higher rates, while Xavier and
orthogonal networks with ReLUs at the same places fail with depth. The paper leaves out
1- and 3-shortcut networks, whose numbers of ReLUs differ; they are shown beside.

Departures: see ``STUDY.departures``. Cost: about a minute of processor time at QUICK;
six minutes of an H200 at PAPER.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Row, Rows
from theodolite.studies.committed_first import chosen, drawn, drawn_own, judged
from theodolite.studies.committed_run import CommittedRun
from theodolite.studies.li2016demystifying import (
    final_losses_cells,
    final_losses_figure,
    final_losses_relu_claims,
)
from theodolite.studies.li2016demystifying.final_losses_config import RateConfig
from theodolite.studies.li2016demystifying.final_losses_judging import Losses
from theodolite.studies.li2016demystifying.measuring import EPS
from theodolite.studies.study import Committed, Drawing, Study
from theodolite.theory import moments

RUN = CommittedRun(__package__ or "", "final_losses_relu", free=("depths", "networks"))
NETWORKS = ("xavier", "orthogonal", "two_shortcut")
# Not in the paper: units of one matrix have no ReLU, units of three have two.
BESIDE = ("one_shortcut", "three_shortcut")
PAPER = RateConfig(
    n_seeds=10,
    device="cuda",
    dataset="mnist",
    mid="relu",
    networks=NETWORKS,
    depths=(2, 4, 8, 16, 24, 32, 48, 64),
    beside=BESIDE,
    beside_depths=(6, 12, 24, 33, 48, 63),
    scouts=2,
    dtype="float32",
)
QUICK = RateConfig(
    n_seeds=6,
    samples=750,
    mid="relu",
    networks=NETWORKS,
    depths=(4, 8, 16, 32),
    beside=BESIDE,
    beside_depths=(6, 12, 24),
    lowest=-3,
    rungs=4,
    scouts=1,
    stride=2,
    reach=2,
    dtype="float32",
    committed=RUN.digest(),
)
SMOKE = RateConfig(
    n_seeds=2,
    dataset="digits",
    samples=200,
    mid="relu",
    networks=NETWORKS,
    depths=(2, 4, 8),
    steps=100,
    lowest=-2,
    rungs=3,
    scouts=1,
    stride=2,
    reach=2,
    committed=RUN.digest(),
)


def predict(config: RateConfig) -> Rows:
    """Return the loss of the best linear map and that of the zero map."""
    data = moments(*final_losses_cells.inputs(config))
    zero = float(np.trace(data.yy)) / 2
    found = {"linear_optimum": data.optimal_loss(), "zero_map_final_loss": zero}
    error = EPS * config.width * zero
    return Rows({"quantity": k, "value": v, "error": error} for k, v in found.items())


def measure(config: RateConfig, cell: Mapping[str, Any]) -> Rows:
    """Train one network at one depth over rates and seeds."""
    return final_losses_cells.measure(config, cell, RUN)


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Loss of the best linear map beside what 2-shortcut networks reach."""
    losses = Losses(*chosen(predicted, measured), "final_loss")
    return final_losses_cells.beside_optimum(
        losses, "linear_optimum", "best linear map and 2-shortcut ReLU"
    )


_DRAWINGS = (
    Drawing(
        "final_losses",
        "Left: mean over networks of the logarithm of the final loss, at the rate "
        "with the least mean loss; bands one standard error. Dotted: a network "
        "that outputs zero. Right: that rate; bands are its spread over resampled "
        "seeds. Hollow: final losses at best and worst rate lie within a tenth, "
        "so that no rate is best. Dashed: networks that the paper leaves out, "
        "since they have none (1-shortcut) or other numbers of ReLUs "
        "(3-shortcut).",
        final_losses_figure.draw,
    ),
    Drawing(
        "by_rate",
        "Mean final loss against the learning rate at three depths, rates at which "
        "no run diverged; bands one standard error over networks.",
        final_losses_figure.draw_by_rate,
    ),
)


STUDY = Study(
    title="Figure 8: final losses and best learning rates with ReLUs at mid positions",
    summary=(
        "The same question as for linear networks, with a ReLU between the two "
        "matrices of every unit, and in plain networks at the same places: after every "
        "odd matrix, so that networks of one depth have as many ReLUs. The optimal "
        "loss is not known and differs from depth to depth, so what is shown is the "
        "final loss itself. A few seeds look for the best rate on a coarse grid; then "
        "all seeds are trained at ten rates a decade around it, and further while the "
        "optimum moves, until it lies inside."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=lambda config: [*final_losses_cells.cells(config), *RUN.cells(config)],
    predict=predict,
    measure=measure,
    compare=compare,
    claims=tuple(map(judged, final_losses_relu_claims.CLAIMS)),
    datasets=lambda config: (config.dataset,),
    committed=Committed(RUN.of_cell, ("quantity", "trial", "rate")),
    drawings=(
        drawn(_DRAWINGS[0]),
        drawn_own(
            _DRAWINGS[0], "this_scale", "The same from the runs of this scale alone."
        ),
        drawn(_DRAWINGS[1]),
    ),
    departures=(
        "Appendix B puts the ReLUs of plain networks where those of 2-shortcut ones "
        "are, which is read as after every odd matrix.",
        "The paper leaves out 1- and 3-shortcut networks, whose numbers of ReLUs "
        "differ from those of the others at the same depth. They are drawn here "
        "beside the others and enter no claim: units of one matrix have no middle, so "
        "1-shortcut networks are linear; units of three matrices have two ReLUs.",
        "The paper gives neither depths nor rates: even depths up to 64; rates ten a "
        "decade around the optimum, searched for between $10^{-4}$ and 10.",
        "The paper gives no thresholds. Ours: deep is from 8 matrices up, as for "
        "linear networks; basically the same at all rates is final losses within a "
        "tenth; a trend is three standard errors. Where the paper names no depths, all "
        "count.",
        "Networks are compared on the same seeds by sign flips. A claimed order fails "
        "where one gap has the other sign beyond chance, at 5 %; a gap that may be "
        "chance leaves it undecided. Rates are not compared where all of a network "
        "end basically alike, "
        "as the paper does at depth 64.",
        "Shortcut networks start at a hundredth of Xavier weights: at exactly zero, "
        "units of two or more matrices have no gradient.",
        "The paper averages losses; here the mean is of their logarithm. The best rate "
        "is that of the mean loss, over rates at which no network diverges.",
        "Training is in single precision. The quick scale uses 750 of 5,000 digits, "
        "six networks, four rates a decade and depths up to 32 (24 for the networks "
        "beside); the paper scale all 60,000 digits, ten networks and depths up to 64, "
        "on a GPU.",
    ),
)
