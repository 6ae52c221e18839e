"""The plain loop that stacked points are compared with, and what they train on."""

import numpy as np
import torch

from theodolite.core import ShortcutBlueprint
from theodolite.networks import build, get_weights, set_weights

CASES = tuple(
    ShortcutBlueprint(width=5, depth=6, shortcut=n, skip=skip, mid=mid, init="xavier")
    for n in (1, 2, 3)
    for skip in (True, False)
    for mid in ("identity", "relu")
)


def make(blueprint, samples=150, points=3):
    """Draw data and the weights of some points."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(samples, blueprint.width))
    y = x @ rng.normal(size=(blueprint.width,) * 2) + rng.normal(size=x.shape)
    drawn = [get_weights(build(blueprint, seed=seed)) for seed in range(points)]
    return (x, y), 0.7 * np.stack(drawn)


def rates_of(blueprint, steps, points=3):
    """Return rates that differ from point to point and fall from step to step."""
    base = 0.004 if blueprint.skip else 0.02
    return base * np.linspace(1, 1.5, points)[:, None] * np.linspace(1, 0.5, steps)


def settings_of(points):
    """Return momentum and weight decay that differ, and limits that never stop."""
    return {
        "momentum": np.linspace(0, 0.6, points),
        "weight_decay": np.linspace(0.02, 0, points),
        "floor": np.full(points, -np.inf),
        "ceiling": np.full(points, np.inf),
    }


def train_alone(blueprint, data, weights, rates, settings, point, dtype, device="cpu"):
    """Train one point by autograd and SGD; return its losses and last weights."""
    network = build(blueprint, seed=0, dtype=getattr(torch, dtype))
    set_weights(network, weights[point])
    network.to(device)
    x, y = (torch.tensor(d, dtype=getattr(torch, dtype), device=device) for d in data)
    optim = torch.optim.SGD(
        network.parameters(),
        lr=0.0,
        momentum=float(settings["momentum"][point]),
        weight_decay=float(settings["weight_decay"][point]),
    )
    losses = []
    for rate in rates[point]:
        optim.param_groups[0]["lr"] = float(rate)
        optim.zero_grad()
        loss = (network(x) - y).square().sum() / (2 * len(x))
        loss.backward()
        losses.append(loss.item())
        optim.step()
    return np.array(losses), get_weights(network)
