"""Activations of blueprints as torch functions."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from theodolite.core import parse_activation

Map = Callable[[Tensor], Tensor]


def torch_activation(spec: str) -> Map:
    """Return the function that a blueprint names.

    Example:
        >>> torch_activation("polynomial:2,1")(torch.tensor(3.0))
        tensor(15.)
    """
    name, coefficients = parse_activation(spec)
    if name == "polynomial":
        return lambda z: sum(
            (c * z ** (power + 1) for power, c in enumerate(coefficients)),
            torch.zeros_like(z),
        )
    return _TABLE[name]


_TABLE: dict[str, Map] = {
    "identity": lambda z: z,
    "relu": functional.relu,
    "tanh": torch.tanh,
    "symmetric_sigmoid": lambda z: torch.tanh(z / 2),
    "silu": functional.silu,
    "exp": torch.exp,
}
