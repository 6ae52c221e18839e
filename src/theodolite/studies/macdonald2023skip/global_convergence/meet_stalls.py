"""Networks of one unit whose branches keep still, at their certified step."""

from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import Row, stream
from theodolite.studies.macdonald2023skip.global_convergence.config import (
    BRANCH_NORM,
    COSTS,
    STALLS,
    Config,
)
from theodolite.studies.macdonald2023skip.global_convergence.predict import (
    stalled,
    stalled_rate,
)
from theodolite.studies.macdonald2023skip.shared.normalised_stack import (
    Loss,
    NormalisedStack,
    least_kernel,
    logistic,
    square,
)
from theodolite.studies.macdonald2023skip.shared.plain_descent import descend
from theodolite.studies.macdonald2023skip.shared.signed_rows import named
from theodolite.theory import StalledNetwork

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-14


def stalls(config: Config) -> list[Row]:
    """Descend every network that stalls, and one of them from normal starts."""
    rows: list[Row] = []
    for gate, where in STALLS:
        for cost in COSTS:
            for layers in config.layers:
                network = stalled(config, gate, cost, layers)
                rows += _from_where_it_stalls(config, network, where)
    return rows + _from_anywhere(config)


def _from_where_it_stalls(
    config: Config, network: StalledNetwork, where: str
) -> list[Row]:
    import torch

    start = _starts(config, network.layers, where)
    stack, loss = _network(config, network)
    rates = torch.full_like(start[0][:, 0, 0], stalled_rate(config, network))
    done = descend(loss, start, rates, config.marks, lambda w: least_kernel(stack, w))
    moved = torch.stack(
        [
            (a - b).abs().amax(dim=(1, 2))
            for a, b in zip(done.weights, start, strict=True)
        ]
    )
    labels: dict[str, Any] = {
        "gate": network.gate, "cost": network.cost, "layers": network.layers
    }  # fmt: skip
    rows: list[Row] = []
    for place, trial in enumerate(config.seeds):
        of = {"trial": trial, **labels}
        last = float(done.losses[-1][place])
        found = {"loss": last, "stalled_excess": last - network.infimum}
        rows += named(found | {"rise": done.rise[place]}, EPS, multiple=1.0, **of)
        rows += named({"branch_motion": moved[1:, place].max()}, 0.0, **of)
        law = network.excess(float(rates[0]), config.long)
        rows += named({"over_law": (last - network.stall) / law}, 1e-9, **of)
        for mark, losses, kernel in zip(
            config.marks, done.losses, done.noted, strict=True
        ):
            excess = float(losses[place]) - network.infimum
            read = {"kernel": kernel[place], "excess": excess}
            rows += named(read, EPS, step=mark, **of)
    return rows


def _network(config: Config, network: StalledNetwork) -> tuple[NormalisedStack, Loss]:
    import torch

    stack = NormalisedStack(
        inputs=torch.ones(1, 1, 1, dtype=torch.float64),
        gate=network.gate,
        branch_norm=BRANCH_NORM,
        epsilon=config.epsilon,
    )
    if network.cost == "logistic":
        return stack, lambda w: logistic(stack.outputs(w))
    target = torch.tensor(network.target, dtype=torch.float64)
    return stack, lambda w: square(stack.outputs(w), target)


def _starts(config: Config, layers: int, where: str) -> list["Tensor"]:
    """Return starts whose branches keep still.

    ``zero``: branches of zero. ``open``: a positive first weight, negative inner
    weights, outer ones anywhere.
    """
    import torch

    rng = stream(config.seed, "stalls", where, layers)
    drawn = rng.normal(size=(2 * layers - 1, config.n_seeds, 1, 1))
    if where == "zero":
        drawn[1:] = 0
    else:
        drawn[0], drawn[1::2] = np.abs(drawn[0]), -np.abs(drawn[1::2])
    return [torch.tensor(one) for one in drawn]


def _from_anywhere(config: Config) -> list[Row]:
    """Return which normal starts of the ramp's network end above its infimum."""
    import torch

    network = stalled(config, "ramp", "logistic", 2)
    rng = stream(config.seed, "anywhere")
    start = torch.tensor(rng.normal(size=(3, config.gaussians, 1, 1)))
    _, loss = _network(config, network)
    rate = torch.full_like(start[0][:, 0, 0], stalled_rate(config, network))
    done = descend(loss, list(start), rate, (config.long,))
    held = done.losses[-1] >= network.stall
    kept = (start[0] > 0) & (start[1] < 0)
    rows: list[Row] = []
    for trial in range(config.gaussians):
        found = {"held": held[trial], "in_open_set": kept[trial, 0, 0]}
        rows += named(found, 0.0, trial=trial, start="normal")
    return rows
