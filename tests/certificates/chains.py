"""Chains of layers in double precision, and inputs for them."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from theodolite.core import normalised_residual
from theodolite.networks import build

CLASSES = torch.tensor([0, 1, 2, 1])


def double(*layers, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(*layers).double()


def residual(blocks=2, **options):
    plan = normalised_residual(inputs=5, widths=(4,) + (3,) * blocks, **options)
    return build(plan, seed=1)


def inputs(*shape, seed=0):
    return torch.as_tensor(np.random.default_rng(seed).normal(size=shape))


CHAINS = {
    "linear": lambda: double(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)),
    "weight norm": lambda: double(
        weight_norm(nn.Linear(5, 4)), nn.GELU(), weight_norm(nn.Linear(4, 3))
    ),
    "batch norm": lambda: double(
        nn.Linear(5, 4, bias=False), nn.BatchNorm1d(4), nn.SiLU(), nn.Linear(4, 3)
    ),
    "nested": lambda: double(
        nn.Sequential(nn.Linear(5, 4), nn.Sigmoid()),
        nn.Identity(),
        nn.Sequential(nn.Softplus(), nn.Linear(4, 3)),
    ),
    "rest": lambda: double(
        nn.Linear(5, 3), nn.ELU(), nn.Softsign(), nn.LogSigmoid(), nn.Tanhshrink(),
        nn.CELU(),
    ),
}  # fmt: skip


# Samples along one line: they are linearly dependent.
SAME = inputs(1, 5).repeat(4, 1) * torch.arange(1.0, 5.0, dtype=torch.float64)[:, None]
