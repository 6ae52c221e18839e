"""Leave the model as found."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

HOOKS = (
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
    modules = [_ModuleState(module) for module in model.modules()]
    parameters = [_ParameterState(parameter) for parameter in model.parameters()]
    randomness = random_state()
    try:
        yield model
    finally:
        for state in modules:
            state.restore()
        for state in parameters:
            state.restore()
        restore_random_state(randomness)


class _ModuleState:
    """Mode, buffers, parameter slots and hooks of one module."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._training = module.training
        self._slots = dict(module._parameters)
        self._children = dict(module._modules)
        self._full_hook = module.__dict__.get("_is_full_backward_hook")
        self._buffers = {
            name: (buffer, None if buffer is None else buffer.detach().clone())
            for name, buffer in module._buffers.items()
        }
        self._hooks = {
            name: dict(getattr(module, name)) for name in HOOKS if name in vars(module)
        }

    def restore(self) -> None:
        module = self._module
        module.training = self._training
        _refill(module._parameters, self._slots)
        _refill(module._modules, self._children)
        if "_is_full_backward_hook" in vars(module):
            module._is_full_backward_hook = self._full_hook
        _refill(module._buffers, {n: b for n, (b, _) in self._buffers.items()})
        for buffer, copy in self._buffers.values():
            if buffer is not None and copy is not None:
                _put_back(buffer, copy)
        for name, hooks in self._hooks.items():
            _refill(getattr(module, name), hooks)


class _ParameterState:
    """Value, gradient and flag of one parameter."""

    def __init__(self, parameter: nn.Parameter) -> None:
        self._parameter = parameter
        self._value = parameter.detach().clone()
        self._flag = parameter.requires_grad
        self._grad = parameter.grad
        self._grad_value = (
            None if parameter.grad is None else parameter.grad.detach().clone()
        )

    def restore(self) -> None:
        self._parameter.requires_grad_(self._flag)
        self._parameter.grad = None
        _put_back(self._parameter, self._value)
        if self._grad is not None and self._grad_value is not None:
            _put_back(self._grad, self._grad_value)
        self._parameter.grad = self._grad


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
    mapping.clear()
    mapping.update(saved)


def random_state() -> dict[str, Any]:
    """Return the states of torch, NumPy and Python's generators."""
    cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if cuda else None,
        "numpy": np.random.get_state(),  # noqa: NPY002 — the global state of others
        "python": random.getstate(),
    }


def restore_random_state(state: dict[str, Any]) -> None:
    """Put back what :func:`random_state` returned."""
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None:
        torch.cuda.set_rng_state_all(state["cuda"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    random.setstate(state["python"])
