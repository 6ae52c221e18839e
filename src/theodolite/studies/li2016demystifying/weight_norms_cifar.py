"""Figure 2: mean Frobenius norms of residual networks by depth, along training.

Li et al. (2016), Demystifying ResNet, figure 2 and section 4.1. The claim in our
words: the deeper a residual network, the smaller its weights, during and after
training; so zero is where very deep networks end.

Departures: see ``STUDY.departures``. Cost: about half a minute at QUICK; the
committed run at PAPER, these networks and those of figure 9, took 12 minutes of an
H200.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import Row, Rows
from theodolite.studies.committed_first import judged
from theodolite.studies.committed_run import COMMITTED
from theodolite.studies.li2016demystifying import (
    weight_norms_cifar_claims,
    weight_norms_cifar_figure,
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
    """Depths and training of figure 2; units of two layers, as in the paper."""

    shortcuts: tuple[int, ...] = (2,)


SMOKE = Config(n_seeds=2, samples=320, depths=(14, 26), stages=1, epochs=2, **SMALL)
QUICK = Config(n_seeds=3, samples=960, depths=(38, 74, 110), epochs=5, **SMALL)
PAPER = paper_config(Config, shortcuts=(2,))


def predict(config: Config) -> Rows:
    """Mean norms at the start: those of normal matrices of the layers' shapes."""
    rows = _initial(config, "trained", config.depths)
    if config.committed:
        kept = RUN.rows().where(shortcut=2)
        rows += _initial(PAPER, COMMITTED, tuple(kept.levels("depth")))
    return Rows(rows)


def _initial(config: Config, source: str, depths: tuple[int, ...]) -> list[Row]:
    r"""Return $E\lVert W\rVert_F = \sigma\,E\chi_k$ and its spread over networks.

    $\sigma^2 = 2/(9 c_{out})$ and $k = 9 c_{in} c_{out}$, so the norm is close to
    $\sqrt{2 c_{in}}$, and its variance to $\sigma^2/2$.
    """
    from scipy.special import gammaln

    rows: list[Row] = []
    for depth in depths:
        plan = plan_of(config, {"depth": depth, "shortcut": 2})
        into, out = np.array(plan.layer_channels, dtype=float).T
        k, sigma = 9 * into * out, np.sqrt(2 / (9 * out))
        chi = np.sqrt(2) * np.exp(gammaln((k + 1) / 2) - gammaln(k / 2))
        spread = np.sqrt((sigma**2 * (k - chi**2)).sum()) / len(k)
        labels = {"quantity": "norm", "source": source, "depth": depth, "epoch": 0}
        value = float((sigma * chi).mean())
        rows.append({**labels, "value": value, "error": float(spread)})
    return rows


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train one network and take its norms after every epoch."""
    return measure_cell(config, cell)


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Norms of He's initialisation beside those at the start."""
    return beside(predicted, measured, "norm", "mean norm at the start", epoch=0)


STUDY = Study(
    title="Figure 2: weight norms of residual networks along training, by depth",
    summary=(
        "How large are the weights of a trained residual network? The mean Frobenius "
        "norm of its convolutions is taken at the start, where it follows from the "
        "initialisation, and after every epoch. The paper argues that deeper networks "
        "have smaller weights, so that zero is the point to study. Each seed gives a "
        "family of networks of all depths; the exponent of the norm in depth is fitted "
        "family by family, and its error is over families."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=training_cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=(
        *weight_norms_cifar_claims.BOTH,
        *(judged(claim, on="CIFAR-10") for claim in weight_norms_cifar_claims.CLAIMS),
    ),
    datasets=lambda config: (config.dataset,),
    splits=("train", "test"),
    committed=Committed(committed_network, ("quantity", "epoch")),
    revision=2,
    drawings=(
        Drawing(
            "norms",
            "Mean Frobenius norm of the convolutions against epochs, by depth. Bands: "
            "one standard deviation over seeds. Dotted: the learning rate falls to a "
            "tenth.",
            weight_norms_cifar_figure.draw,
        ),
    ),
    departures=(
        f"{PAPER.epochs} epochs in place of 200, the learning rate falling at the same "
        f"fractions of training; depths {', '.join(map(str, PAPER.depths))}, since the "
        f"text does not list the paper's; {PAPER.n_seeds} seeds, where the paper "
        f"does not say how many; {PAPER.precision} arithmetic with weights in float32.",
        "The mean is over the convolutions of the units: stem and classifier do not "
        "change with depth.",
        "Weight decay, which the text does not mention, is that of the implementation "
        "it used, 0.0001; it shrinks weights at every depth alike.",
        "The quick scale trains much narrower networks on 8×8 digits, so that it needs "
        "no files and no GPU; where rows of the paper scale are committed, verdicts "
        "are on those.",
    ),
)
