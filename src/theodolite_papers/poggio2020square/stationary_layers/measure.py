"""Networks brought to rest, and networks written down, by autodiff alone."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import Row, Rows, named_rows

from ..shared.kinks import least_sum_gaps, units_at_kinks
from ..shared.split_classes import two_digits
from ..shared.stacked_networks import (
    StackedNetworks,
    descend,
    draw,
    forward,
    objective,
    polish,
)
from .config import CONSTRUCTED, Config
from .measure_written import collapse, orthogonal_distance, projection_gap, written

if TYPE_CHECKING:
    from torch import Tensor


EPS = 1e-10
RATES = (3e-3, 1e-5)
# Steps by single samples are small and many: the gradient of one of N at a time.
SINGLE_RATES = (3e-2, 3e-4)
REACH = 1e-4  # of a layer's mean: descent slides along a kink by crossing it


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure the networks of a cell."""
    if cell["kind"] == CONSTRUCTED:
        return written(config)
    return trained(config, cell["kind"], cell["decay"])


def trained(config: Config, kind: str, decay: float) -> Rows:
    """Train networks of one kind and read them before and after."""
    import torch

    given, held = two_digits(config.samples), two_digits(10_000, split="test")
    x, y = torch.tensor(given.inputs), torch.tensor(given.labels)
    networks = draw(config.seeds, config.sizes, relu=kind != "linear")
    rows = _read(config, networks, x, y, decay, "start")
    _train(config, kind, networks, x, y, decay)
    rows += _read(config, networks, x, y, decay, "end")
    if kind != "single_samples":
        other = draw(config.seeds, config.sizes, relu=kind != "linear", tied=True)
        _train(config, kind, other, x, y, decay)
        rows += _recurrent(config, networks, other, torch.tensor(held.inputs))
        rows += _objectives(config, other, x, y, decay, "recurrent")
    return Rows({**row, "kind": kind, "decay": decay} for row in rows)


def _train(
    config: Config,
    kind: str,
    networks: StackedNetworks,
    x: "Tensor",
    y: "Tensor",
    decay: float,
) -> None:
    single = kind == "single_samples"
    descend(
        networks,
        x,
        y,
        decay=decay,
        steps=4 * config.steps if single else config.steps,
        rates=SINGLE_RATES if single else RATES,
        one_sample=single,
    )
    if kind == "linear":
        polish(networks, x, y, decay=decay, steps=config.polish)


def _read(
    config: Config,
    networks: StackedNetworks,
    x: "Tensor",
    y: "Tensor",
    decay: float,
    stage: str,
) -> list[Row]:
    """Read every network layer by layer."""
    layers = networks.directions()
    states = forward(layers, x, relu=networks.relu)
    jacobians = _jacobians(states[-1], layers)
    rows = _objectives(config, networks, x, y, decay, stage)
    for place, trial in enumerate(config.seeds):
        mine = [v[place].detach() for v in layers]
        seen = [state[place].detach() for state in states]
        scale = networks.scale[place].item()
        by_layer = [jacobian[:, place] for jacobian in jacobians]
        numbers = _of_network(mine, seen, by_layer, scale, y, relu=networks.relu)
        rows += [
            {"error": EPS, **row, "trial": trial, "stage": stage} for row in numbers
        ]
    return rows


def _jacobians(outputs: "Tensor", layers: "list[Tensor]") -> "tuple[Tensor, ...]":
    """Return the gradient of every sample's output by every layer, by autodiff."""
    import torch

    samples = outputs.shape[1]
    return torch.autograd.grad(
        outputs.sum(dim=0),
        layers,
        torch.eye(samples, dtype=outputs.dtype),
        is_grads_batched=True,
    )


def _of_network(
    layers: "list[Tensor]",
    states: "list[Tensor]",
    jacobians: "list[Tensor]",
    scale: float,
    y: "Tensor",
    *,
    relu: bool,
) -> list[Row]:
    f = states[-1]
    errors = scale * f - y
    shares = errors / (errors * f).sum()
    rows: list[Row] = []
    for place, (v, slopes) in enumerate(zip(layers, jacobians, strict=True), start=1):
        apart = (v * f[:, None, None] - slopes).flatten(1).norm(dim=1) / f.abs()
        summed = v - (shares[:, None, None] * slopes).sum(dim=0)
        values = np.linalg.svd(v.numpy(), compute_uv=False)
        numbers = {
            "sum_gap": summed.norm().item(),
            "sample_gap": (apart**2).mean().sqrt().item(),
            "stable_rank": float((values**2).sum() / values[0] ** 2),
        }
        if place < len(layers):
            numbers["orthogonal_distance"] = orthogonal_distance(v.numpy())
            numbers["projection_gap"] = projection_gap(v.numpy())
        rows += named_rows(numbers, EPS, layer=place)
        if place == len(layers):
            worse = max(apart[y * sign > 0].min().item() for sign in (-1, 1))
            rows.append({"quantity": "class_gap", "layer": place, "value": worse})
    rows += _alignments(layers)
    rows += collapse(states[-2].T.numpy(), layers[-1][0].numpy(), f.numpy(), y.numpy())
    rows += [
        {"quantity": "value_printed", "value": abs(scale * scale * _mean(f, y) - 1)},
        {"quantity": "value_corrected", "value": abs(scale * _mean(f, y) - 1)},
        {"quantity": "wrong", "value": float((f * y <= 0).double().mean())},
    ]
    return rows + (_gated(layers, states[:-1], shares) if relu else [])


def _mean(f: "Tensor", y: "Tensor") -> float:
    return (f * y).mean().item()


def _alignments(layers: "list[Tensor]") -> list[Row]:
    """Return the cosine of each pair of hidden layers, as vectors."""
    hidden = layers[:-1]
    return [
        {
            "quantity": "layer_cosine",
            "pair": f"{one + 1}, {two + 1}",
            "value": (hidden[one] * hidden[two]).sum().item(),
        }
        for two in range(len(hidden))
        for one in range(two)
    ]


def _gated(
    layers: "list[Tensor]", inputs: "list[Tensor]", shares: "Tensor"
) -> list[Row]:
    """Return the gap of the sum for slopes of one side, and for the best at kinks.

    As a control, as many units elsewhere are free to choose their slopes.
    """
    import torch

    before = [v @ b for v, b in zip(layers[:-1], inputs[:-1], strict=True)]
    kinks = units_at_kinks(before, reach=REACH)
    dice = torch.Generator().manual_seed(0)
    elsewhere = [
        marked.flatten()[torch.randperm(marked.numel(), generator=dice)].view_as(marked)
        for marked in kinks
    ]
    none = [torch.zeros_like(marked) for marked in kinks]
    rows: list[Row] = [{"quantity": "kinks", "value": sum(int(k.sum()) for k in kinks)}]
    for name, free in (("whole", none), ("gated", kinks), ("control", elsewhere)):
        gaps = least_sum_gaps(layers, inputs, shares, free)
        value = float(np.linalg.norm(gaps))
        rows.append({"quantity": f"{name}_sum_gap", "value": value})
    return rows


def _objectives(
    config: Config,
    networks: StackedNetworks,
    x: "Tensor",
    y: "Tensor",
    decay: float,
    stage: str,
) -> list[Row]:
    values = objective(networks, x, y, decay).detach()
    scales = networks.scale.detach()
    return [
        {"quantity": name, "trial": trial, "stage": stage, "value": value.item(),
         "error": EPS}
        for name, by_network in (("objective", values), ("scale", scales))
        for trial, value in zip(config.seeds, by_network, strict=True)
    ]  # fmt: skip


def _recurrent(
    config: Config,
    forward_only: StackedNetworks,
    recurrent: StackedNetworks,
    x: "Tensor",
) -> list[Row]:
    """Return how far outputs of the two kinds of network are apart on held-out data."""
    outputs = [
        (nets.scale[:, None] * forward(nets.normalised(), x, relu=nets.relu)[-1])
        .detach()
        .numpy()
        for nets in (forward_only, recurrent)
    ]
    away = np.linalg.norm(outputs[0] - outputs[1], axis=1)
    size = np.linalg.norm(outputs[0], axis=1)
    return [
        {"quantity": "function_distance", "trial": trial, "stage": "recurrent",
         "value": float(value), "error": EPS}
        for trial, value in zip(config.seeds, away / size, strict=True)
    ]  # fmt: skip
