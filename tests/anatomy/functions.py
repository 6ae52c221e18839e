"""A function as a network, and what its anatomy says."""

import torch
from torch import nn

from theodolite.anatomy import anatomy

ROWS = torch.linspace(-2, 2, 16).cos().reshape(4, 4)


class Function(nn.Module):
    """A function with a layer or two at hand."""

    def __init__(self, function, width=4, layers=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.function = function

    def forward(self, x):
        return self.function(x, *self.layers)


def of(function, batch=ROWS):
    return anatomy(Function(function), batch)


def kinds(result):
    return [addition.skip.kind for addition in result.additions]
