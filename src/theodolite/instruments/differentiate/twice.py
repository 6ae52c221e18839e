"""What torch cannot differentiate twice: replaced by what it can, or refused.

Operators whose second derivative is wrong, slow or missing are replaced. The backward
of other people's :class:`torch.autograd.Function` is taken on trust by torch. One that
is marked ``once_differentiable`` ends the gradient's graph in an error node. No path
leads from it to the parameters, so torch never reaches it: its part of a second
derivative is left out, and no error is raised. An operator of ``torch.library`` without
an autograd kernel cuts the graph in the same way, with a warning. Both are refused.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock, local
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.autograd.function import BackwardCFunction, once_differentiable
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import _get_current_function_mode
from torch.utils import checkpoint as library

from theodolite.core import MeasurementError, safe_point

from ..calls.listening import Installed, Listener
from .activations_twice import ACTIVATIONS, activation
from .attention_twice import attention
from .batch_norm_twice import (
    BATCH_NORMS,
    INSTANCE_NORMS,
    NormCall,
    batch_norm,
    batch_norm_arguments,
    fits,
    instance_norm,
)
from .convolution_twice import CONVOLUTIONS, convolution
from .elementary_norms import GROUP_NORMS, group_norm, weight_norm
from .embedding_twice import embedding, embedding_bag, grouped_products
from .layer_norm_twice import LAYER_NORMS, layer_norm
from .model_backward import MET, OWN, RUNNING, is_transformed
from .rectifier_twice import RECTIFIERS, hard_sigmoid, rectifier

_C: Any = torch._C


# Functions of torch that run a backward pass.
BACKWARD_FUNCTIONS: frozenset[Callable[..., Any]] = frozenset(
    [torch.autograd.grad, torch.autograd.backward, Tensor.backward]
)


_here, _lock = local(), Lock()


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
        RUNNING[0] += 1
        MET[0] += 1
    try:
        return func(*args, **kwargs)
    finally:
        with _lock:
            RUNNING[0] -= 1


# Called by torch around code under non-reentrant checkpointing.
_GENERATOR = "_checkpoint_without_reentrant_generator"


def _recompute_nothing() -> Callable[[], None]:
    """Make checkpointed code run without checkpointing, wherever it was imported."""
    generator = getattr(library, _GENERATOR)
    setattr(library, _GENERATOR, lambda *args, **kwargs: iter([None]))
    library.CheckpointFunction.apply = staticmethod(_call_directly)

    def undo() -> None:
        setattr(library, _GENERATOR, generator)
        del library.CheckpointFunction.apply  # which it inherits

    return undo


def _call_directly(function: Callable[..., Any], _: bool, *args: Any) -> Any:
    return function(*args)


without_recomputing = Installed(_recompute_nothing)


@contextmanager
def differentiable_twice(model: nn.Module | None = None) -> Iterator[None]:
    """Make second derivatives correct for all code that runs inside.

    Weight normalisation is computed from elementary operators, because the double
    backward of the fused one fails ``gradgradcheck`` (torch 2.13: Hessians off by their
    own size). Attention uses plain matrix products, or torch's plain backend, the only
    one with a second derivative. Convolutions use standard kernels, and batch norms
    with given statistics few passes, where these are faster. Layer and instance norms
    and activations take fewer operators. If the model has recurrent layers, cuDNN is
    off, since it has no second derivative for them. Embeddings have dense gradients,
    and embedding bags second ones. Grouped matrix products, which torch lacks in
    float64 (2.13), run one by one there. Activation checkpointing is off: it recomputes
    outside of these replacements, and its reentrant form has no second derivative.
    Norms with a bias and no weight get a weight of ones.
    """
    recurrent = model is not None and any(
        isinstance(module, nn.RNNBase) for module in model.modules()
    )
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(Replacements())
        stack.enter_context(without_recomputing)
        if (
            recurrent
        ):  # not by cudnn.flags, which fails where TF32 is set by newer names
            stack.callback(_C._set_cudnn_enabled, _C._get_cudnn_enabled())
            _C._set_cudnn_enabled(False)
        yield


@contextmanager
def differentiating() -> Iterator[None]:
    """Record graphs, even if the caller switched grad mode off."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def _by_arguments(replacement: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _, args, kwargs: replacement(*args, **kwargs)


# The torch functions that are replaced, wherever they are called, and what is called
# instead with the function, its arguments and its keywords.
REPLACED: dict[Callable[..., Any], Callable[..., Any]] = {
    **dict.fromkeys(CONVOLUTIONS, convolution),
    **dict.fromkeys(BATCH_NORMS, batch_norm),
    **dict.fromkeys(RECTIFIERS, rectifier),
    **dict.fromkeys(ACTIVATIONS, activation),
    **dict.fromkeys(LAYER_NORMS, layer_norm),
    **dict.fromkeys(INSTANCE_NORMS, instance_norm),
    **dict.fromkeys(GROUP_NORMS, group_norm),
    functional.scaled_dot_product_attention: lambda _, *given: attention(*given),
    torch._weight_norm: _by_arguments(weight_norm),  # pyright: ignore
    functional.embedding: _by_arguments(embedding),
    functional.embedding_bag: _by_arguments(embedding_bag),
    functional.hardsigmoid: _by_arguments(hard_sigmoid),
    torch._grouped_mm: grouped_products,  # pyright: ignore
}
_PRODUCTS = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.mm, torch.bmm)
# What is called in place of layers, None for the layer itself, and of functions that
# run a backward pass.
CALLED_INSTEAD: dict[Callable[..., Any], Callable[..., Any] | None] = {
    **dict.fromkeys((*_PRODUCTS, torch.einsum, functional.linear)),
    **dict.fromkeys(BACKWARD_FUNCTIONS, run_backward),
    **REPLACED,
}


class Replacements(Listener):
    """Calls what has a correct second derivative in place of torch's functions.

    Attributes:
        batch_norms: Computes batch norms instead, if it is set: the method of a
            listener that would be entered directly after this one.
    """

    def __init__(self) -> None:
        self.batch_norms: Callable[[Any, Any, Any], Any] | None = None

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function or what replaces it."""
        if self.batch_norms is not None and function in BATCH_NORMS:
            instead = self.batch_norms
        elif function not in CALLED_INSTEAD:
            return function(*args, **kwargs)
        else:
            instead = CALLED_INSTEAD[function]
        # A pass may stop before a layer: no code that restores a state calls one.
        if instead is not run_backward:
            safe_point()
        if instead is None:
            return function(*args, **kwargs)
        return instead(function, args, kwargs)


# Name of the nodes that stand for operators without a derivative.
_NO_KERNEL = "torch::autograd::WarnNotImplemented"


class BatchNormCalls(Listener):
    """Pass every call of batch norm in train mode to a function.

    It sees calls of the function, not modules: those of subclasses with a built-in
    activation, functional calls, and layers that are applied twice.
    If such listeners are nested, the innermost one gets the calls. Directly inside of
    :class:`Replacements`, which sees all calls anyway, it lets that pass on the norms.

    Args:
        act: Returns the output of a call.

    Attributes:
        calls: Number of calls so far.
        transformed: Whether any call was inside a torch transform such as ``jvp``.
    """

    def __init__(self, act: Callable[[NormCall], Tensor]) -> None:
        self._act = act
        self.calls, self.transformed = 0, False
        self._host: Replacements | None = None

    def __enter__(self) -> Self:
        """Start to listen."""
        innermost: Any = _get_current_function_mode()
        if not isinstance(innermost, Replacements):
            return super().__enter__()
        self._host, self._before = innermost, innermost.batch_norms
        innermost.batch_norms = self.on_function
        return self

    def __exit__(self, *raised: Any) -> None:
        """Stop listening."""
        if self._host is None:
            super().__exit__(*raised)
        else:
            self._host.batch_norms = self._before

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function, or let a batch norm be computed."""
        if function not in BATCH_NORMS:
            return function(*args, **kwargs)
        given = batch_norm_arguments(function, args, kwargs)
        x, weight = given["input"], given["weight"]
        if not given["training"] or not fits(x, weight):
            if self._host is not None:
                return batch_norm(function, args, kwargs)
            return function(*args, **kwargs)
        place, self.calls = self.calls, self.calls + 1
        self.transformed = self.transformed or is_transformed()
        # For inputs in half precision torch computes statistics in the weight's type.
        wide = x if weight is None else x.to(weight.dtype)
        call = NormCall(
            place=place, x=wide, weight=weight, bias=given["bias"], eps=given["eps"]
        )
        return self._act(call).to(x.dtype)


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
        return None if kind in OWN else kind.__name__
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
        return type(
            make(b"", 1)(torch.zeros((), requires_grad=True, device="cpu")).grad_fn
        )


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
