"""Figure 7: optimal final losses and learning rates of linear networks against depth.

Li et al. (2016), Demystifying ResNet, figure 7, section 5.3.1 and appendix B. The
claim in our words: after 1,000 steps at its best learning rate, a 2-shortcut linear
network is close to the optimal loss at every depth, and it takes higher rates than the
others in deep networks; plain and other shortcut networks do worse, and Xavier ones
end near where they began.

Departures: see ``STUDY.departures``. Cost: about half a minute of processor time at
QUICK and a few minutes at PAPER: the samples enter by their moments alone.
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
    final_losses_linear_claims,
)
from theodolite.studies.li2016demystifying.final_losses_config import RateConfig
from theodolite.studies.li2016demystifying.final_losses_judging import Losses
from theodolite.studies.li2016demystifying.measuring import EPS
from theodolite.studies.study import Committed, Drawing, Study
from theodolite.theory import moments

RUN = CommittedRun(
    __package__ or "", "final_losses_linear", free=("depths", "networks")
)
NETWORKS = (
    "xavier",
    "orthogonal",
    "one_shortcut",
    "two_shortcut",
    "three_shortcut",
)
PAPER = RateConfig(
    n_seeds=10,
    dataset="mnist",
    networks=NETWORKS,
    depths=(4, 6, 12, 18, 24, 36, 48, 72, 96),
)
QUICK = RateConfig(
    n_seeds=6,
    networks=NETWORKS,
    depths=(6, 12, 24, 48, 96),
    rungs=5,
    lowest=-3,
    committed=RUN.digest(),
)
SMOKE = RateConfig(
    n_seeds=2,
    dataset="digits",
    networks=NETWORKS,
    depths=(6, 12, 18),
    steps=100,
    lowest=-3,
    rungs=3,
    committed=RUN.digest(),
)


def predict(config: RateConfig) -> Rows:
    """Return the optimal loss, and what lies above it at zero map and at the start."""
    data = moments(*final_losses_cells.inputs(config))
    best = data.optimal_loss()
    whole = float(np.trace(data.yy))
    identity = 0.5 * float(np.trace(data.xx - 2 * data.yx) + whole)
    found = {
        "optimal_loss": best,
        "zero_map_excess": whole / 2 - best,
        "start_excess": identity - best,
    }
    error = EPS * config.width * identity
    return Rows({"quantity": k, "value": v, "error": error} for k, v in found.items())


def measure(config: RateConfig, cell: Mapping[str, Any]) -> Rows:
    """Train one network at one depth over all rates and seeds."""
    return final_losses_cells.measure(config, cell, RUN)


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Optimal loss beside the final loss of 2-shortcut networks."""
    losses = Losses(*chosen(predicted, measured), "excess")
    return final_losses_cells.beside_optimum(
        losses, "optimal_loss", "final loss, 2-shortcut"
    )


_DRAWINGS = (
    Drawing(
        "final_losses",
        "Left: mean over networks of the logarithm of the excess over the optimal "
        "loss after training, at the rate with the least mean loss; bands one "
        "standard error. Dotted: a network that outputs zero. Right: that rate; "
        "bands are its spread over resampled seeds. Hollow: final losses at best "
        "and worst rate lie within a tenth, so that no rate is best.",
        final_losses_figure.draw,
    ),
    Drawing(
        "by_rate",
        "Mean excess against the learning rate at three depths, rates at which no "
        "run diverged; bands one standard error over networks.",
        final_losses_figure.draw_by_rate,
    ),
)


STUDY = Study(
    title="Figure 7: final losses and best learning rates of linear networks",
    summary=(
        "Given its best learning rate, how far does a linear network of a given depth "
        "get in 1,000 steps of gradient descent on whitened digits? The least loss is "
        "known exactly, $\\frac12(\\mathrm{tr}\\,\\Sigma^{YY} - \\mathrm{tr}\\,"
        "\\Sigma^{YX}(\\Sigma^{XX})^{-1}\\Sigma^{XY})$, so what is shown is the excess "
        "over it. Every network is trained from ten seeds at ten rates a decade over "
        "five decades; the rate with the least mean loss over seeds is the best one. A "
        "linear network sees the samples through their second moments alone, which is "
        "how tens of thousands of runs take minutes."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=lambda config: [*final_losses_cells.cells(config), *RUN.cells(config)],
    predict=predict,
    measure=measure,
    compare=compare,
    claims=tuple(map(judged, final_losses_linear_claims.CLAIMS)),
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
        "The paper gives neither depths nor rates: depths are multiples of 6, at which "
        "units of 1, 2 and 3 matrices all fit, and 4; rates are ten a decade from "
        "$10^{-4}$ to 10 (five a decade from $10^{-3}$ at the quick scale).",
        "Depth 2 is left out, since networks reach the optimum to rounding there.",
        "The paper gives no thresholds. Ours: deep is from 8 matrices up; close to "
        "optimal is within 1 % of the optimal loss; alike is within half a decade; "
        "basically the same at all rates is final losses within a tenth; a network "
        "that keeps 1 % of its first excess has trained, one that keeps 90 % is stuck, "
        "both at a rate of 0.1; a rate stays if its exponent is above −1/2, halfway to "
        "inverse proportion; a trend is three standard errors. Where the paper names "
        "no depths, all count.",
        "Networks are compared on the same seeds by sign flips. A claimed order fails "
        "where one gap has the other sign beyond chance, at 5 %; a gap that may be "
        "chance leaves it undecided. Rates are not compared where all of a network "
        "end basically alike.",
        "Shortcut networks start at a hundredth of Xavier weights: at exactly zero, "
        "units of two or more matrices have no gradient.",
        "The paper averages losses; here the mean is of their logarithm, since single "
        "networks spread over decades. The best rate is that of the mean loss, over "
        "rates at which no network diverges.",
        "The quick scale uses 5,000 digits, six networks and fewer depths; the paper "
        "scale all 60,000 digits and ten networks.",
    ),
)
