"""Distinguish backward passes of instruments from those that a model runs itself.

Replaced operators have a second derivative, but some have no third, and none has one
within torch's ``vmap``. Instruments need no more. A model that differentiates in its
forward pass, for forces or gradient penalties, does need more: its backward passes use
elementary operators, so that all further derivatives are torch's.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock, local
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

# Functions of torch that run a backward pass.
BACKWARD_FUNCTIONS: frozenset[Callable[..., Any]] = frozenset(
    [torch.autograd.grad, torch.autograd.backward, Tensor.backward]
)
_here, _lock = local(), Lock()
# Backward passes of models that run now. A GPU's derivatives are computed in other
# threads, so all threads share this number.
_theirs = [0]
# Their total number so far.
_met = [0]


@contextmanager
def instrument_backward() -> Iterator[None]:
    """Mark backward passes inside as those of an instrument."""
    before = getattr(_here, "own", False)
    _here.own = True
    try:
        yield
    finally:
        _here.own = before


def run_backward(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Run a backward pass, and count it if the model runs it."""
    if getattr(_here, "own", False):
        return func(*args, **kwargs)
    with _lock:
        _theirs[0] += 1
        _met[0] += 1
    try:
        return func(*args, **kwargs)
    finally:
        with _lock:
            _theirs[0] -= 1


class Measure:
    """Runs a model without a graph, even if it differentiates in its forward pass.

    Args:
        run: Returns the measured value.

    Attributes:
        differentiates: Whether the model ran a backward pass when it was tried out.
    """

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run
        self.differentiates = False

    def __call__(self, *given: Any) -> Any:
        """Run the model; return a value without a graph if grad mode is off."""
        if torch.is_grad_enabled() or not self.differentiates:
            return self._run(*given)
        with torch.enable_grad():
            value = self._run(*given)
        return value.detach() if isinstance(value, Tensor) else value

    def function(self) -> Callable[..., Any]:
        """Return the function that runs the model in the present grad mode."""
        plain = torch.is_grad_enabled() or not self.differentiates
        return self._run if plain else self

    def try_out(self, *given: Any) -> Any:
        """Run the model, and record whether it differentiates.

        Raises:
            RuntimeError: Also if its own backward pass fails without a graph; it is
                recorded then, and the next run has a graph.
        """
        before = _met[0]
        try:
            return self(*given)
        finally:
            self.differentiates = _met[0] > before


def is_transformed() -> bool:
    """Return whether one of torch's transforms runs, which needs torch's operators.

    These are ``vmap`` and the like, and forward-mode derivatives.
    """
    nested = torch._C._are_functorch_transforms_active()
    return nested or forward_ad._current_level >= 0


def inside_model_backward() -> bool:
    """Return whether a model may be running a backward pass with a graph now."""
    return bool(_theirs[0]) and torch.is_grad_enabled()


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
