"""Tells backward passes of instruments from those that a model makes itself.

Operators that are replaced have a second derivative, some of them no third, and none
has one within torch's ``vmap``. Instruments ask for no more. A model does that
differentiates in its forward pass, for forces or penalties on gradients: its passes go
through elementary operators, so that all that comes after them is torch's.
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
# Passes of models that run now. A GPU's derivatives are computed in other threads,
# so this is one number for all threads.
_theirs = [0]
# And all that there were.
_met = [0]


@contextmanager
def instrument_backward() -> Iterator[None]:
    """Mark backward passes inside as an instrument's."""
    before = getattr(_here, "own", False)
    _here.own = True
    try:
        yield
    finally:
        _here.own = before


def run_backward(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Run a backward pass, and count it if the model makes it."""
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
    """Runs a model, also one that differentiates in its pass where no graph is kept.

    Args:
        run: Returns what is measured.

    Attributes:
        differentiates: Whether it passes back itself, as far as it was tried out.
    """

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run
        self.differentiates = False

    def __call__(self, *given: Any) -> Any:
        """Run it; with no graph, unless one is kept."""
        if torch.is_grad_enabled() or not self.differentiates:
            return self._run(*given)
        with torch.enable_grad():
            value = self._run(*given)
        return value.detach() if isinstance(value, Tensor) else value

    def try_out(self, *given: Any, begin: Callable[[], object]) -> Any:
        """Run it, and see whether it differentiates.

        Args:
            given: What it is run on.
            begin: Brings the model to the state in which it starts.
        """
        before = _met[0]
        begin()
        try:
            return self(*given)
        except RuntimeError:
            if torch.is_grad_enabled() or _met[0] == before:
                raise
            self.differentiates = True  # where no graph is, there is nothing to pass
            begin()
            return self(*given)
        finally:
            self.differentiates = _met[0] > before


def is_transformed() -> bool:
    """Return whether one of torch's transforms runs, which needs its own operators.

    ``vmap`` and the like, or derivatives forwards.
    """
    nested = torch._C._are_functorch_transforms_active()
    return nested or forward_ad._current_level >= 0


def inside_model_backward() -> bool:
    """Return whether a model may be in a backward pass with a graph now."""
    return bool(_theirs[0]) and torch.is_grad_enabled()


def by_elements(
    function: Callable[..., Tensor], parts: Sequence[Tensor | None], g: Tensor
) -> list[Tensor | None]:
    """Pull a cotangent back through elementary operators, with a graph.

    Args:
        function: Computes the value from the parts.
        parts: What it is differentiated by, where they have a graph.
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
