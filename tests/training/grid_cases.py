"""Small networks, data and probes, and the plain loop that grids are held against."""

import numpy as np
import torch

from theodolite import networks
from theodolite.core import PreactivationBlueprint, ShortcutBlueprint
from theodolite.training import Descent, train

LINEAR = ShortcutBlueprint(width=4, depth=6)
IMAGES = PreactivationBlueprint(width=4, depth=8)
RELU = LINEAR.with_(mid="relu")
TANH = LINEAR.with_(mid="tanh")


def samples():
    rng = np.random.default_rng(5)
    return rng.normal(size=(60, 4)), rng.normal(size=(60, 4))


def norms(snapshot):
    """Frobenius norm of all weights, and the loss seen by the probe itself."""
    with torch.no_grad():
        squares = sum(float(p.square().sum()) for p in snapshot.model.parameters())
        x, y = snapshot.data
        loss = float(snapshot.criterion(snapshot.model(x), y))
    return {"norm": squares**0.5, "loss": loss}


def fails(snapshot):
    raise ValueError("not today")


def plainly(plan, data, *, seed, lr, steps, dtype=torch.float64, probes=(), **more):
    network = networks.build(plan, seed=seed, dtype=dtype)
    settings = Descent(lr=lr, **more)
    return train(network, data, optimizer=settings, steps=steps, probes=probes)
