"""ReLU at mid: the exact Hessian at any weights, and what is left of it near zero.

Li et al. (2016), Demystifying ResNet, theorem 2.2 with assumption 3, the abstract's
"with or without nonlinearities", and section 5.3.1, which trains such networks. The
claim in our words: what theorem 2 says of 2-shortcut networks at zero carries over to
ReLU. Away from its kinks ReLU has no curvature, so the Hessian is known exactly at
any weights, and one can look. That small weights see half-space moments, not Eq 9, is
judged in ``around_zero``.

Departures: see ``STUDY.departures``. Cost: seconds at QUICK, minutes at PAPER.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Blueprint, ConfigError, Row, Rows, condition_of
from theodolite.studies.li2016demystifying import relu_exact_claims, relu_exact_figure
from theodolite.studies.li2016demystifying.measuring import (
    EPS,
    gap,
    measured_hessian,
    named,
    random_data,
)
from theodolite.studies.study import Drawing, Study, StudyConfig
from theodolite.theory import (
    column_major,
    linear_hessian,
    moments,
    relu_hessian,
    relu_hessian_parts,
    relu_spectrum_near_zero,
)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random problems of one width; the data are the first seed's throughout.

    Attributes:
        units: Units of the networks measured at random and trained weights.
        scales: Factors on Xavier weights.
        small: Factors at which the limit at zero is approached.
        steps: Steps of gradient descent after which weights are looked at.
        rate: Its learning rate.
        depths: Units for which the spectrum near zero is drawn.
        draws: Networks a depth.
        timed: Units of the network that is timed.
    """

    width: int = 4
    samples: int = 40
    units: tuple[int, ...] = (1, 3)
    scales: tuple[float, ...] = (0.01, 0.3, 1.0)
    small: tuple[float, ...] = (0.1, 0.03, 0.01, 0.003)
    steps: tuple[int, ...] = (10, 100)
    rate: float = 0.05
    depths: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    draws: int = 40
    timed: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.depths) < 3 or self.draws < 2:
            raise ConfigError(
                f"depths {self.depths} with {self.draws} draws: a trend with an error "
                "wants three depths and two draws"
            )


SMOKE = Config(
    n_seeds=1,
    units=(1, 2),
    scales=(0.01, 1.0),
    steps=(10,),
    draws=24,
    depths=(1, 2, 4, 8, 16),
    timed=2,
)
QUICK = Config(n_seeds=3)
PAPER = Config(n_seeds=10, width=10, samples=200, units=(1, 2, 4), draws=100, timed=8)


def plan_of(config: Config, units: int, mid: str = "relu") -> Blueprint:
    """Return the 2-shortcut network of a number of units."""
    return Blueprint(width=config.width, depth=2 * units, mid=mid, init="xavier")


def dataset(config: Config) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and targets of all cells."""
    return random_data(config.seed, samples=config.samples, width=config.width)


def cells(config: Config) -> list[dict[str, Any]]:
    """One cell a task and network; one for the clock."""
    tasks = ("random", "trained", "limit")
    found = [{"task": task, "trial": seed} for task in tasks for seed in config.seeds]
    return [*found, {"task": "clock", "trial": config.seed}]


def predict(config: Config) -> Rows:
    """Spectra of small random weights, from half-space moments, depth by depth."""
    x, y = dataset(config)
    rows: list[Row] = []
    for units in config.depths:
        plan = plan_of(config, units)
        for draw in range(config.draws):
            first = networks.draw_weights(plan, seed=1000 * units + draw)[::2]
            size = np.abs(relu_spectrum_near_zero(first, x, y))
            found = {
                "mean": size.mean(),
                "mean_square": np.mean(size**2),
                "largest": size.max(),
                "condition": condition_of(size, quantile=0.0).ratio,
                "ratio": condition_of(size).ratio,
            }
            rows += named(found, 1e-12, units=units, draw=draw)
    ceiling = np.mean(np.linalg.norm(x - y, axis=1) * np.linalg.norm(x, axis=1))
    return Rows([*rows, *named({"ceiling": ceiling}, 1e-12)])


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Run one task."""
    task = {"random": _random, "trained": _trained, "limit": _limit, "clock": _clock}
    return Rows(task[cell["task"]](config, cell["trial"]))


def _random(config: Config, trial: int) -> list[Row]:
    """Random weights of several sizes."""
    rows: list[Row] = []
    for units in config.units:
        for scale in config.scales:
            plan = plan_of(config, units)
            network = networks.build(plan, seed=trial, device=config.device)
            networks.set_weights(network, scale * networks.get_weights(network))
            rows += _meeting(config, network, units=units, state=f"{scale:g} Xavier")
    return rows


def _trained(config: Config, trial: int) -> list[Row]:
    """Weights along gradient descent, from half of Xavier."""
    import torch

    rows: list[Row] = []
    units = max(config.units)
    network = networks.build(plan_of(config, units), seed=trial, device=config.device)
    networks.set_weights(network, 0.5 * networks.get_weights(network))
    x, y = (torch.tensor(part, device=config.device) for part in dataset(config))
    loss = instruments.HalfSquareLoss()
    for step in range(1, max(config.steps) + 1):
        found = torch.autograd.grad(loss(network(x), y), list(network.parameters()))
        with torch.no_grad():
            for weight, slope in zip(network.parameters(), found, strict=True):
                weight.sub_(config.rate * slope)
        if step in config.steps:
            rows += _meeting(config, network, units=units, state=f"step {step}")
    return rows


def _meeting(config: Config, network: Any, **labels: Any) -> list[Row]:
    """Compare the exact Hessian of a network with autodiff, and with rivals."""
    x, y = dataset(config)
    plan, weights = network.blueprint, networks.get_weights(network)
    parts = relu_hessian_parts(plan, weights, x, y)
    matrix, reading = measured_hessian(network, x, y)
    newton = _measured_newton(network, x, y)
    scale = float(np.abs(matrix).max())
    smooth = networks.build(plan.with_(mid="tanh"), seed=0, device=config.device)
    networks.set_weights(smooth, weights)
    curved = measured_hessian(smooth, x, y)[0] - _measured_newton(smooth, x, y)
    open_gates = linear_hessian(plan.with_(mid="identity"), weights, moments(x, y))
    size = plan.width**2
    found = {
        "whole": gap(parts.whole, matrix, scale),
        "gauss_newton": gap(parts.gauss_newton, newton, scale),
        "without_residual": gap(parts.gauss_newton, matrix, scale),
        "open_gates": gap(open_gates, matrix, scale),
        "within": _within(matrix - newton, size) / scale,
        "within_tanh": _within(curved, size) / scale,
    }
    rows = named(found, EPS * len(matrix) + reading.asymmetry, **labels)
    return [*rows, *named({"margin": parts.margin}, EPS, **labels)]


def _measured_newton(network: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    import torch

    device = next(network.parameters()).device
    batch = tuple(torch.tensor(part, device=device) for part in (x, y))
    operator = instruments.GaussNewton(
        network, batch, loss=instruments.HalfSquareLoss(), norm_mode="eval"
    )
    order = column_major([tuple(p.shape) for p in network.parameters()])
    return operator.dense()[np.ix_(order, order)]


def _within(matrix: np.ndarray, size: int) -> float:
    """Return the largest entry of the blocks that join a layer with itself."""
    count = len(matrix) // size
    blocks = matrix.reshape(count, size, count, size)
    return max(float(np.abs(blocks[k, :, k]).max()) for k in range(count))


def _limit(config: Config, trial: int) -> list[Row]:
    """How fast the spectrum goes to that of half-space moments."""
    rows: list[Row] = []
    x, y = dataset(config)
    units = max(config.units)
    plan = plan_of(config, units)
    for small in config.small:
        network = networks.build(plan, seed=trial, device=config.device)
        networks.set_weights(network, small * networks.get_weights(network))
        matrix, _ = measured_hessian(network, x, y)
        values = np.linalg.eigvalsh(matrix)
        wanted = relu_spectrum_near_zero(networks.get_weights(network)[::2], x, y)
        scale = float(np.abs(values).max())
        found = {"limit_gap": gap(wanted, values, scale)}
        rows += named(found, EPS * len(matrix), units=units, scale=small)
    return rows


def _clock(config: Config, trial: int) -> list[Row]:
    """Processor time of double backward over that of the closed form."""
    x, y = dataset(config)
    plan = plan_of(config, config.timed)
    network = networks.build(plan, seed=trial, device=config.device)
    weights = networks.get_weights(network)
    ours = _seconds(lambda: relu_hessian(plan, weights, x, y))
    theirs = _seconds(lambda: measured_hessian(network, x, y))
    ratios = [
        slow / fast for slow, fast in zip(sorted(theirs), sorted(ours), strict=True)
    ]
    return named({"speed_ratio": ratios[0]}, float(np.ptp(ratios)), units=config.timed)


def _seconds(work: Callable[[], Any]) -> list[float]:
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return found


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """How far exact Hessians are from measured ones, which should be nothing."""
    rows: list[Row] = []
    for state in dict.fromkeys(measured.where(quantity="whole").column("state")):
        found = measured.where(quantity="whole", state=state)
        rows.append(
            {
                "label": f"largest deviation of the exact Hessian, weights at {state}",
                "predicted": 0.0,
                "measured": float(found.values().max()),
                "error": float(found.values("error").max()),
            }
        )
    return rows


STUDY = Study(
    title="ReLU at mid: the exact Hessian anywhere, and near zero",
    summary=(
        "ReLU bends only at its kinks. With its gates frozen a 2-shortcut network is "
        "multilinear in its matrices, so its Hessian is a Gauss–Newton part and a part "
        "that joins two different matrices through the error: exact at any weights. "
        "Near zero it tends to blocks of half-space moments, one for each hidden "
        "unit. They are independent draws, so a deeper network has more of them from "
        "the same distribution: its bulk does not see depth, its extremes do."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=relu_exact_claims.CLAIMS,
    drawings=(
        Drawing(
            "limit",
            "Left: distance of the measured spectrum from that of half-space moments, "
            "as a fraction of the largest eigenvalue, against the size of the weights; "
            "dashed: slope 2. Right: mean and largest magnitude of an eigenvalue near "
            "zero against the number of units, with one standard deviation over "
            "networks.",
            relu_exact_figure.draw,
        ),
    ),
    departures=(
        "Random Gaussian inputs and targets, and networks small enough for dense "
        "Hessians.",
        "The paper has no Hessians of ReLU networks away from zero: those are added.",
    ),
)
