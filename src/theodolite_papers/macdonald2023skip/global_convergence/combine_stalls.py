"""Networks of one unit whose branches do not move, at multiples of certified steps."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import Row, named_rows, stream
from theodolite.theory import StalledNetwork

from ..shared.normalised_stack import (
    Descended,
    NormalisedStack,
    descend,
    least_kernel,
    logistic,
    square,
)
from .config import BRANCH_NORM, COSTS, STALLS, Config
from .predict import stalled, stalled_rate

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-14
# This network is read during training in every trial, others in the first trial only.
CURVED = ("tanh", "logistic")


@dataclass(frozen=True)
class _Run:
    """A one-unit network, its start, and its step divided by the certified step."""

    network: StalledNetwork
    where: str
    multiple: float
    trial: int

    @property
    def labels(self) -> dict[str, Any]:
        one = self.network
        return {
            "trial": self.trial, "gate": one.gate, "cost": one.cost,
            "layers": one.layers, "where": self.where, "multiple": self.multiple,
        }  # fmt: skip


def stalls(config: Config) -> list[Row]:
    """Return rows of networks that start where a branch has no gradient.

    Networks with the same number of layers are trained in one batch.
    """
    rows: list[Row] = []
    for layers in config.layers:
        runs = list(_runs(config, layers))
        start = _starts(config, runs)
        done = _descended(config, runs, start)
        for place, run in enumerate(runs):
            rows += _rows(config, run, place, start, done)
    return rows


def _runs(config: Config, layers: int) -> Iterator[_Run]:
    """Yield the runs, sorted by gate; only the ramp has Gaussian starts."""
    for gate, where in STALLS:
        for cost in COSTS:
            network = stalled(config, gate, cost, layers)
            for multiple in config.multiples:
                for trial in config.seeds:
                    yield _Run(network, where, multiple, trial)
        if gate == "ramp" and layers == 2:
            network = stalled(config, gate, "logistic", layers)
            for trial in range(config.gaussians):
                yield _Run(network, "normal", config.multiples[-1], trial)


def _starts(config: Config, runs: list[_Run]) -> list["Tensor"]:
    """Return weights: the first, then inner and outer ones of each block.

    ``zero``: zero branches. ``open``: a positive first weight, negative inner weights,
    Gaussian outer ones. ``normal``: all Gaussian.
    """
    import torch

    drawn = []
    for run in runs:
        layers = run.network.layers
        rng = stream(config.seed, "stalls", run.where, layers, run.trial)
        w = rng.normal(size=2 * layers - 1)
        if run.where == "zero":
            w[1:] = 0
        elif run.where == "open":
            w[0], w[1::2] = abs(w[0]), -np.abs(w[1::2])
        drawn.append(w)
    return [torch.tensor(one)[:, None, None] for one in np.array(drawn).T]


def _descended(config: Config, runs: list[_Run], start: list["Tensor"]) -> Descended:
    import torch

    gates = [run.network.gate for run in runs]
    stack = NormalisedStack(
        inputs=torch.ones(1, 1, 1, dtype=torch.float64),
        gate=tuple((gate, gates.count(gate)) for gate in dict.fromkeys(gates)),
        branch_norm=BRANCH_NORM,
        epsilon=config.epsilon,
    )
    is_square = torch.tensor([run.network.cost == "square" for run in runs])
    targets = [run.network.target for run in runs]
    target = torch.tensor(targets, dtype=torch.float64)[:, None, None]
    certified = {one: stalled_rate(config, one) for one in {r.network for r in runs}}
    rates = [run.multiple * certified[run.network] for run in runs]

    def loss(weights: object) -> "Tensor":
        out = stack.outputs(weights)  # pyright: ignore
        return torch.where(is_square, square(out, target), logistic(out))

    return descend(
        loss,
        start,
        torch.tensor(rates, dtype=torch.float64),
        config.stall_marks,
        lambda w: least_kernel(stack, w),
    )


def _rows(
    config: Config, run: _Run, place: int, start: list["Tensor"], done: Descended
) -> list[Row]:
    network, of = run.network, run.labels
    last = float(done.losses[-1][place])
    if run.where == "normal":
        # Inside the open set of starts that never leave it, as shown in theory.
        held = bool(done.weights[0][place] > 0) and bool(done.weights[1][place] < 0)
        return named_rows({"held": held, "normal_loss": last}, 0.0, **of)
    rows = named_rows({"loss": last, "rise": done.rise[place]}, EPS, **of)
    rows += named_rows({"stalled_excess": last - network.infimum}, EPS, **of)
    ends = zip(done.weights[1:], start[1:], strict=True)
    moved = max(float((a - b)[place].abs().max()) for a, b in ends)
    rows += named_rows({"branch_motion": moved}, 0.0, **of)
    rate = run.multiple * stalled_rate(config, network)
    law = network.excess(rate, config.stalled)
    rows += named_rows({"over_law": (last - network.stall) / law}, 1e-9, **of)
    if run.trial != config.seed and (network.gate, network.cost) != CURVED:
        return rows
    for mark, losses, kernel in zip(
        config.stall_marks, done.losses, done.noted, strict=True
    ):
        excess = float(losses[place]) - network.infimum
        numbers = {"kernel": kernel[place], "excess": excess}
        rows += named_rows(numbers, EPS, step=mark, **of)
    return rows
