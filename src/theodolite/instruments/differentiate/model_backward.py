"""The model's own derivatives: backward passes it runs, functions that others wrote.

Replaced operators have a second derivative, but some have no third, and none has one
within torch's ``vmap``. Instruments need no more. A model that differentiates in its
forward pass, for forces or gradient penalties, does need more: its backward passes use
elementary operators, so that all further derivatives are torch's.

torch takes the backward of a :class:`torch.autograd.Function` on trust. One that is
marked ``once_differentiable`` ends the gradient's graph in an error node. No path leads
from that node to the parameters, so torch never reaches it: its part of a second
derivative is left out, and no error is raised. An operator of ``torch.library`` without
an autograd kernel cuts the graph in the same way, with a warning.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Lock, local
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.autograd.function import BackwardCFunction, once_differentiable

from theodolite.core import MeasurementError

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

    @contextmanager
    def trying_out(self) -> Iterator[Callable[..., Any]]:
        """Yield the function that runs the model; record whether it differentiates.

        If its own backward pass fails without a graph, that is recorded, and the next
        run has a graph.
        """
        before = _met[0]
        try:
            yield self.function()
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


Kind = TypeVar("Kind", bound=type)


# The package's own functions, which are tested against elementary operators.
_OWN: set[type] = set()
# Name of the nodes that stand for operators without a derivative.
_NO_KERNEL = "torch::autograd::WarnNotImplemented"


def own(kind: Kind) -> Kind:
    """Register an autograd function of this package, which needs no check."""
    _OWN.add(kind)
    return kind


def custom_functions(outputs: Tensor, variables: Iterable[Tensor]) -> dict[Any, str]:
    """Return the nodes and names of all functions in a graph that other people wrote.

    Args:
        outputs: Outputs of the graph.
        variables: Tensors at which the walk stops.
    """
    nodes = _nodes([outputs], variables)
    if any(node.name() == _NO_KERNEL for node in nodes):
        raise MeasurementError(
            "the model calls an operator of torch.library that has no autograd kernel, "
            "so torch leaves its part out of derivatives: register one with "
            "torch.library.register_autograd"
        )
    return {node: name for node in nodes if (name := _written_by_others(node))}


def refuse_error_nodes(
    gradient: Iterable[Tensor | None],
    outputs: Sequence[Tensor],
    variables: Sequence[Tensor],
) -> None:
    """Refuse a gradient if torch would leave out a part of its derivatives.

    Args:
        gradient: The gradient, with its graph.
        outputs: The outputs that it is the gradient of.
        variables: The variables it is differentiated by.
    """
    nodes, error = _nodes([*gradient, *outputs], variables), _error_node()
    if not any(type(node) is error for node in nodes):
        return
    marked = {kind.__name__ for node in nodes if _is_marked(kind := _kind(node))}
    named = " and ".join(sorted(marked)) or "an autograd function"
    raise MeasurementError(
        f"the backward of {named} is marked once_differentiable, so torch leaves its "
        "part out of second derivatives: remove the mark and compute the backward with "
        "torch operators from tensors kept by save_for_backward, or choose parameters "
        "with params=… whose gradients do not pass through it"
    )


def _nodes(outputs: Iterable[Tensor | None], stop: Iterable[Tensor]) -> list[Any]:
    """Return all nodes of a graph; this takes half a microsecond each."""
    with torch._C.DisableTorchFunction():  # modes would be called for every tensor
        seen: set[Any] = {tensor.grad_fn for tensor in stop} | {None}
        left: list[Any] = [t.grad_fn for t in outputs if t is not None]
    nodes = []
    while left:
        node = left.pop()
        if node not in seen:
            seen.add(node)
            nodes.append(node)
            left.extend(edge[0] for edge in node.next_functions)
    return nodes


def _kind(node: Any) -> Any:
    """Return the class of a function that is written in Python, else None."""
    if not isinstance(node, BackwardCFunction):
        return None
    return getattr(node, "_forward_cls", type(node))


def _written_by_others(node: Any) -> str | None:
    """Return the function's name if it is neither torch's own operator nor ours."""
    kind = _kind(node)
    if kind is not None:
        return None if kind in _OWN else kind.__name__
    name = node.name()  # the type of a C++ function says so
    return name if "CppNode<" in name else None


def _is_marked(kind: Any) -> bool:
    """Return whether ``once_differentiable`` made a backward of the class."""
    backward = getattr(kind, "backward", None)
    marked = once_differentiable(lambda ctx: None)
    return getattr(backward, "__code__", None) is marked.__code__


@cache
def _error_node() -> type:
    """Return the type of the nodes that ``once_differentiable`` makes."""
    make: Any = torch._C._functions.DelayedError  # pyright: ignore
    with (
        torch._C.DisableTorchFunction(),
        torch.inference_mode(False),
        torch.enable_grad(),
    ):
        return type(make(b"", 1)(torch.zeros((), requires_grad=True)).grad_fn)


# Messages of torch about operators that have no derivative.
_LACKING = (
    "is not implemented",
    "no autograd formula was registered",
    "don't support automatic differentiation",
)


def explained(error: RuntimeError) -> Exception:
    """Replace known error messages of autograd by one clear sentence."""
    text = str(error)
    if "modified by an inplace operation" in text:
        return MeasurementError(
            "a tensor that the derivative needs was written to: make a new operator if "
            "the parameters were changed since this one was made; else the model does "
            "so itself, as backward() would say too, and wants its in-place "
            "operations replaced"
        )
    if any(words in text for words in _LACKING):
        return MeasurementError(
            f"torch lacks a derivative that this product wants ({text.splitlines()[0]})"
            ": use another layer, or the transposed product alone"
        )
    return error
