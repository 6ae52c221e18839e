r"""Which networks train: a phase diagram, predicted at the start and measured.

Beyond Li et al. (2016), Demystifying ResNet, whose figures 7 and 8 fix the scale of
the initial weights and keep the best learning rate. Here depth, shortcut length,
initial scale and rate are all varied, and every run ends in one of three phases: it
trains, it stays where it was, or it diverges. The Hessian and gradient at the start
predict the phase: gradient descent on the quadratic model of the loss.

Departures: see ``STUDY.departures``. Cost: about a minute of processor time at QUICK,
half an hour at PAPER.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite import networks, training
from theodolite.core import Blueprint, ConfigError, Row, Rows
from theodolite.studies.li2016demystifying import (
    phase_diagram_claims,
    phase_diagram_figure,
)
from theodolite.studies.li2016demystifying.phases import (
    DIVERGES,
    FAMILIES,
    KINDS,
    STUCK,
    TRAINS,
    phase_of,
)
from theodolite.studies.li2016demystifying.whitened import whitened
from theodolite.studies.study import Drawing, Study, StudyConfig
from theodolite.theory import (
    gradient_spectrum,
    linear_hessian,
    moments,
    relu_gradient,
    relu_hessian,
)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """The box of the diagram.

    Attributes:
        dataset: Named dataset, whitened.
        width: Principal components kept.
        samples: Every so many-th sample is kept, so that about these many remain.
        depths: Weight matrices, multiples of 6.
        scales: Factors on Xavier weights at the start; 1 is Xavier.
        low: Smallest rate, as a power of ten.
        high: Largest rate.
        per_decade: Rates a decade.
        steps: Updates of every run.
        families: ``linear`` and ``relu``, the activation between matrices of a unit.
    """

    dataset: str = "mnist5k"
    width: int = 10
    samples: int = 500
    depths: tuple[int, ...] = (6, 12, 24)
    scales: tuple[float, ...] = (0.01, 0.1, 0.3, 1.0)
    low: int = -3
    high: int = 1
    per_decade: int = 3
    steps: int = 300
    families: tuple[str, ...] = ("linear", "relu")

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(depth % 6 for depth in self.depths):
            raise ConfigError(
                f"depths {self.depths}: units of 1, 2 and 3 matrices want multiples "
                "of 6"
            )
        if any(name not in FAMILIES for name in self.families):
            raise ConfigError(f"families {self.families}: known are {FAMILIES}")

    @property
    def rates(self) -> list[float]:
        """Learning rates, the same decades and steps for every network."""
        count = (self.high - self.low) * self.per_decade + 1
        powers = self.low + np.arange(count) / self.per_decade
        return [float(f"{10.0**power:.6g}") for power in powers]


SMOKE = Config(
    dataset="digits",
    samples=100,
    depths=(6, 12),
    scales=(0.01, 1.0),
    per_decade=1,
    steps=60,
)
QUICK = Config(n_seeds=1)
PAPER = Config(
    n_seeds=10,
    samples=5000,
    depths=(6, 12, 24, 48),
    scales=(0.01, 0.03, 0.1, 0.3, 0.6, 1.0),
    per_decade=5,
    steps=1000,
)


def cells(config: Config) -> list[dict[str, Any]]:
    """One cell a network: family, kind, depth, initial scale and trial."""
    return [
        {"family": family, "kind": kind, "depth": depth, "scale": scale, "trial": seed}
        for depth in sorted(config.depths, reverse=True)
        for family in config.families
        for kind in KINDS
        for scale in config.scales
        for seed in config.seeds
    ]


def plan_of(config: Config, cell: Mapping[str, Any]) -> Blueprint:
    """Return the network of a cell."""
    return Blueprint(
        width=config.width,
        depth=cell["depth"],
        mid="identity" if cell["family"] == "linear" else "relu",
        init="small",
        init_scale=cell["scale"],
        **KINDS[cell["kind"]],
    )


def data_of(config: Config) -> tuple[np.ndarray, np.ndarray]:
    """Return whitened samples, thinned evenly; whitened before, so nearly white."""
    x, y = whitened(config.dataset, config.width)
    stride = max(len(x) // config.samples, 1)
    return x[::stride], y[::stride]


def predict(config: Config) -> Rows:
    """Phases from loss, gradient and Hessian at the start, for every network."""
    x, y = data_of(config)
    best = moments(x, y).optimal_loss()
    return Rows(
        row for cell in cells(config) for row in _predicted(config, cell, x, y, best)
    )


def _predicted(
    config: Config, cell: Mapping[str, Any], x: np.ndarray, y: np.ndarray, best: float
) -> Iterator[Row]:
    plan = plan_of(config, cell)
    weights = networks.draw_weights(plan, seed=cell["trial"])
    loss, slope = relu_gradient(plan, weights, x, y)
    if plan.linear or plan.shortcut == 1:
        hessian = linear_hessian(plan.with_(mid="identity"), weights, moments(x, y))
    else:
        hessian = relu_hessian(plan, weights, x, y)
    # The order of linear_hessian: column by column within a matrix.
    found = gradient_spectrum(hessian, slope.transpose(0, 2, 1).ravel())
    for rate in config.rates:
        end = loss + found.change(rate, config.steps)
        model = phase_of(end, start=loss, best=best)
        sharp = DIVERGES if rate * found.largest > 2 else TRAINS
        for name, phase in (("predicted", model), ("sharpness_only", sharp)):
            yield {**cell, "lr": rate, "quantity": name, "value": phase, "error": 0.0}


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train one network at every rate and say how each run ended."""
    x, y = data_of(config)
    plan = plan_of(config, cell)
    with _quietly():
        grid = training.train_grid(
            plan,
            (x, y),
            {"seed": [cell["trial"]], "lr": config.rates},
            steps=config.steps,
            record=training.AtSteps([0]),
            jobs=0,
        )
    best = moments(x, y).optimal_loss()
    start = float(grid.losses(lr=config.rates[0])[1][0])
    rows: list[Row] = []
    errors = grid.final_loss_error.ravel()
    for rate, end, error in zip(
        config.rates, grid.final_loss.ravel(), errors, strict=True
    ):
        phase = phase_of(float(end), start=start, best=best)
        rows.append({"lr": rate, "quantity": "measured", "value": phase, "error": 0.0})
        if np.isfinite(end):
            rows.append(
                {
                    "lr": rate,
                    "quantity": "final_loss",
                    "value": float(end),
                    "error": float(error),
                }
            )
    return Rows(rows)


@contextmanager
def _quietly() -> Iterator[None]:
    """Leave out the warnings that a rate loses every cell: here that is a result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", training.GridWarning)
        yield


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Share of runs in each phase, predicted beside measured."""
    rows: list[Row] = []
    for family in measured.levels("family"):
        for phase, name in ((TRAINS, "train"), (STUCK, "stay"), (DIVERGES, "diverge")):
            shares = [
                float(np.mean(rows_.where(quantity=q, family=family).values() == phase))
                for rows_, q in ((predicted, "predicted"), (measured, "measured"))
            ]
            count = len(measured.where(quantity="measured", family=family))
            share = shares[1]
            rows.append(
                {
                    "label": f"share of {family} networks that {name}",
                    "predicted": shares[0],
                    "measured": share,
                    "error": float(np.sqrt(share * (1 - share) / count)),
                }
            )
    return rows


STUDY = Study(
    title="Beyond the paper: which networks train, foretold at the first step",
    summary=(
        "Every run trains, stays where it started, or diverges. Gradient descent on "
        "the quadratic model $L_0 + g^\\top w + \\frac12 w^\\top H w$ of the start "
        "says which, with no training: a run diverges where the model does, trains "
        "where the model falls by nine tenths of what there is to gain, and stays "
        "otherwise."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=phase_diagram_claims.CLAIMS,
    drawings=(
        Drawing(
            "phases",
            "Each tile is a learning rate and an initial scale (1 is Xavier); its "
            "colour is how most runs ended: trained, stayed, diverged. A cross marks "
            "tiles where the quadratic model at the start foretold another phase. Rows "
            "are shortcut lengths, columns depths.",
            phase_diagram_figure.draw,
        ),
    ),
    revision=2,
    departures=(
        "Not in the paper, which trains at one initial scale.",
        "A tenth of the 5,000 digits and 300 steps at QUICK; all of them and 1,000 "
        "steps at PAPER.",
        "A ReLU network counts as trained at the same loss as a linear one: within a "
        "tenth of the way from its first loss to the least loss of a linear map.",
    ),
)
