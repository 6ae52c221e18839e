"""Backward passes that a model runs itself, and torch's transforms.

Replaced operators have a second derivative, but some have no third, and none has one
within torch's ``vmap``. Instruments need no more. A model that differentiates in its
forward pass, for forces or gradient penalties, does need more: its backward passes use
elementary operators, so that all further derivatives are torch's.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad

# Backward passes of models that run now. A GPU's derivatives are computed in other
# threads, so all threads share this number.
RUNNING = [0]
# Their total number so far.
MET = [0]


def is_transformed() -> bool:
    """Return whether one of torch's transforms runs, which needs torch's operators.

    These are ``vmap`` and the like, and forward-mode derivatives.
    """
    nested = torch._C._are_functorch_transforms_active()
    return nested or forward_ad._current_level >= 0


def inside_model_backward() -> bool:
    """Return whether a model may be running a backward pass with a graph now."""
    return bool(RUNNING[0]) and torch.is_grad_enabled()


def by_elements(
    function: Callable[..., Tensor], parts: Sequence[Tensor | None], g: Tensor
) -> list[Tensor | None]:
    """Pull a cotangent back through elementary operators, with a graph.

    Args:
        function: Computes the value from the parts.
        parts: Its arguments; it is differentiated by those with a graph.
        g: The cotangent of its value.
    """
    with torch.enable_grad():
        value = function(*parts)
    wanted = [part for part in parts if part is not None and part.requires_grad]
    gradients = iter(
        torch.autograd.grad(value, wanted, g, create_graph=True, allow_unused=True)
    )
    return [
        next(gradients) if part is not None and part.requires_grad else None
        for part in parts
    ]


Kind = TypeVar("Kind", bound=type)


# The package's own functions, which are tested against elementary operators.
OWN: set[type] = set()


def own(kind: Kind) -> Kind:
    """Register an autograd function of this package, which needs no check."""
    OWN.add(kind)
    return kind
