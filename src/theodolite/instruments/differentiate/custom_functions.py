"""Find autograd functions that other people wrote in a graph.

torch takes the backward of a :class:`torch.autograd.Function` on trust. One that is
marked ``once_differentiable`` ends the gradient's graph in an error node. No path leads
from that node to the parameters, so torch never reaches it: its part of a second
derivative is left out, and no error is raised. An operator of ``torch.library`` without
an autograd kernel cuts the graph in the same way, with a warning.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction, once_differentiable

from theodolite.core import MeasurementError

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
