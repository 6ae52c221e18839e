"""A small chain of layers, its data, and plain steps of an optimiser."""

import itertools

import numpy as np
import torch
from torch import nn

from theodolite.core import stream

WIDTHS = (3, 4, 4, 1)


def chain(seed=0, widths=WIDTHS, activation=nn.Tanh, dtype=torch.float64):
    torch.manual_seed(seed)
    layers = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b, bias=False), activation()]
    return nn.Sequential(*layers[:-1]).to(dtype)


def samples(dtype=torch.float64):
    rng = stream(0, "sphere descent")
    x = rng.normal(size=(6, WIDTHS[0]))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return torch.tensor(x, dtype=dtype), torch.tensor([1.0, -1.0] * 3, dtype=dtype)


def square(model, x, y):
    return ((model(x)[:, 0] - y) ** 2).sum()


def descend(model, optim, steps, loss=square):
    x, y = samples(next(model.parameters()).dtype)
    for _ in range(steps):
        optim.zero_grad()
        loss(model, x, y).backward()
        optim.step()
    return model


def weights_of(model):
    return [p.detach().clone() for p in model.parameters()]
