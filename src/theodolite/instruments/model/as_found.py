"""Leave the model as found: one promise, kept in a careful or in a light manner.

The careful manner copies all values and compares them on the way out; it holds
whatever runs inside, and is what :func:`preserve` offers. A product of an operator is
too frequent for that: the light manner keeps references only, and lends the model
copies of its buffers to write to, so that the originals are never touched.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.instruments.differentiate.twice import (
    differentiable_twice,
    differentiating,
)
from theodolite.instruments.model.randomness import random_state, restore_random_state

_CONTENTS = ("_parameters", "_buffers", "_modules")
_HOOKS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


@contextmanager
def preserve(model: nn.Module) -> Iterator[nn.Module]:
    """Restore a model on the way out, also after an exception.

    Parameters and buffers come back bit for bit and as the same tensors; gradients,
    ``requires_grad``, submodules, train and eval modes, hooks and the random states of
    torch (CPU and CUDA), NumPy and Python as they were. Plain attributes that a
    module's own code sets on itself are its own affair.

    Example:
        >>> layer = nn.BatchNorm1d(2)
        >>> with preserve(layer):
        ...     _ = layer(torch.randn(8, 2))
        >>> int(layer.num_batches_tracked)
        0
    """
    found = AsFound(model, careful=True)
    try:
        yield model
    finally:
        found.restore()


@contextmanager
def opened(
    model: nn.Module, *, careful: bool, leaves: Iterable[Tensor] | None = None
) -> Iterator["AsFound"]:
    """Open a model for passes that are differentiated twice; as found on the way out.

    Compiled modules run as they were written: compiled code has no second derivative.

    Args:
        model: The model.
        careful: Copy all values, for a model that may write to any of them.
        leaves: Parameters to differentiate by; all others then count as constants, so
            that graphs hold nothing for them. By default each keeps its own flag.
    """
    found = AsFound(model, careful=careful)
    with ExitStack() as stack:
        stack.callback(found.restore)
        if leaves is not None:
            found.differentiate_by(leaves)
        stack.enter_context(differentiating())
        stack.enter_context(differentiable_twice(model))
        if "torch._dynamo" in sys.modules:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield found


class AsFound:
    """The state in which a model and the random generators were found.

    Args:
        model: The model.
        careful: Copy values too, rather than which tensors there are alone.
    """

    def __init__(self, model: nn.Module, *, careful: bool) -> None:
        self._modules = [_ModuleState(module, careful) for module in model.modules()]
        self._parameters = [_ParameterState(p, careful) for p in model.parameters()]
        self._randomness = random_state()

    def lend_buffers(self) -> None:
        """Give the model fresh copies of its buffers, with the values as found.

        Graphs hold the copies, and stay valid when the originals come back.
        """
        for state in self._modules:
            state.lend_buffers()

    def differentiate_by(self, leaves: Iterable[Tensor]) -> None:
        """Have these parameters alone require a gradient, and no hooks touch it."""
        chosen = {id(leaf) for leaf in leaves}
        for state in self._parameters:
            state.set_leaf(id(state.parameter) in chosen)

    def restore(self) -> None:
        """Bring everything back."""
        for state in self._modules:
            state.restore()
        for state in self._parameters:
            state.restore()
        restore_random_state(self._randomness)


class _ModuleState:
    """Mode, parameters, buffers, children and hooks of one module."""

    def __init__(self, module: nn.Module, careful: bool) -> None:
        self._module = module
        self._training = module.training
        self._full_hook = vars(module).get("_is_full_backward_hook")
        self._buffers = dict(module._buffers)
        self._values = [
            (buffer, _copy(buffer))
            for buffer in self._buffers.values()
            if careful and buffer is not None
        ]
        names = (*_CONTENTS, *(name for name in _HOOKS if name in vars(module)))
        self._mappings = [
            (name, mapping := getattr(module, name), dict(mapping)) for name in names
        ]

    def lend_buffers(self) -> None:
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._module._buffers[name] = buffer.detach().clone()

    def restore(self) -> None:
        module = self._module
        module.training = self._training
        if "_is_full_backward_hook" in vars(module):
            module._is_full_backward_hook = self._full_hook
        for name, mapping, saved in self._mappings:
            if vars(module).get(name, mapping) is not mapping:
                vars(module)[name] = mapping
            _refill(mapping, saved)
        for buffer, value in self._values:
            _put_back(buffer, value)


class _ParameterState:
    """Flag, gradient, hooks on the gradient and, if careful, values of a parameter."""

    def __init__(self, parameter: nn.Parameter, careful: bool) -> None:
        self.parameter = parameter
        self._flag, self._grad = parameter.requires_grad, parameter.grad
        self._hooks = dict(_gradient_hooks(parameter) or {})
        self._values = []
        if careful:
            held = [parameter] if self._grad is None else [parameter, self._grad]
            self._values = [(tensor, _copy(tensor)) for tensor in held]

    def set_leaf(self, required: bool) -> None:
        self.parameter.requires_grad_(required)
        # They clip or print gradients in training; they are no part of the loss.
        if hooks := _gradient_hooks(self.parameter):
            hooks.clear()

    def restore(self) -> None:
        self.parameter.requires_grad_(self._flag)
        if self._values:
            self.parameter.grad = None  # it may not fit the values that come back
        for tensor, value in self._values:
            _put_back(tensor, value)
        if self.parameter.grad is not self._grad:
            self.parameter.grad = self._grad
        if (hooks := _gradient_hooks(self.parameter)) is not None:
            _refill(hooks, self._hooks)


def _gradient_hooks(parameter: nn.Parameter) -> Any:
    return parameter._backward_hooks


def _copy(tensor: Tensor) -> Tensor:
    with torch.inference_mode(False):
        return tensor.detach().clone()


def _put_back(tensor: Tensor, copy: Tensor) -> None:
    """Write a saved value only where it changed, to leave autograd versions alone."""
    same = tensor.shape == copy.shape and tensor.dtype == copy.dtype
    if same and tensor.device == copy.device and _same_bits(tensor, copy):
        return
    if same and tensor.device == copy.device:
        with torch.no_grad():
            tensor.copy_(copy)
    else:
        tensor.data = copy


def _same_bits(tensor: Tensor, copy: Tensor) -> bool:
    with torch.no_grad():
        if tensor.is_floating_point():
            # Zeros of both signs are equal, and NaN is not: compare those by hand.
            alike = (tensor == copy) & (torch.signbit(tensor) == torch.signbit(copy))
            equal = alike | ((tensor != tensor) & (copy != copy))
        else:
            equal = tensor == copy
        return bool(equal.all())


def _refill(mapping: Any, saved: dict[Any, Any]) -> None:
    """Write a mapping's entries only where they or their order changed."""
    if list(mapping.keys()) != list(saved) or any(
        mapping[key] is not value for key, value in saved.items()
    ):
        mapping.clear()
        mapping.update(saved)
