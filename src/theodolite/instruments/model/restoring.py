"""Restore a model and the process, by full copies or by references only.

The careful way copies all values and compares them on exit; it holds for any code
inside, and :func:`preserve` uses it. A product of an operator is
too frequent for that: the light way keeps references only, and lends the model
copies of its buffers to write to, so that the originals are never touched.

Both restore everything in the ``__dict__`` of modules, including flags, counters and
lists: a library that installs hooks once and sets a flag must find both or neither.
Both cover every module that a loss reaches, such as a teacher in a closure.
"""

import sys
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import DelayInterrupt, Exclusive, safe_point

from ..differentiate.twice import differentiable_twice, differentiating
from .process_state import (
    ProcessState,
    generator_state,
    random_state,
    restore_generator,
    restore_random_state,
)
from .reachable_state import Container, ReachableState, dense_parts, refuse_unready


@contextmanager
def preserve(model: nn.Module) -> Iterator[nn.Module]:
    """Restore a model on exit, also after an exception.

    Parameters and buffers come back bit for bit and as the same tensors; gradients,
    ``requires_grad``, submodules, train and eval modes, hooks and the random states of
    torch (CPU and CUDA), NumPy and Python as they were; so do plain attributes that a
    module's own code sets on itself, with the lists, dicts, arrays and generators that
    they hold. Grad mode, autocast, the default dtype, the number of threads, flags of
    determinism and warning filters come back too.

    Other threads of the process that measure wait meanwhile; Ctrl-C stops what runs
    inside at once, and the model is restored before the interrupt goes on.

    Example:
        >>> layer = nn.BatchNorm1d(2)
        >>> with preserve(layer):
        ...     _ = layer(torch.randn(8, 2))
        >>> int(layer.num_batches_tracked)
        0
    """
    with Exclusive(interruptible=True):
        saved = SavedState(model, careful=True)
        try:
            safe_point()  # an interrupt during the copy of values
            yield model
        finally:
            saved.restore()


@contextmanager
def opened(
    model: nn.Module,
    *,
    careful: bool,
    leaves: Iterable[Tensor] | None = None,
    reach: ReachableState | None = None,
) -> Iterator["SavedState"]:
    """Open a model for passes that are differentiated twice; restore it on exit.

    Compiled modules run as they were written: compiled code has no second derivative.
    Other threads that measure wait until it is closed, and Ctrl-C for a safe point.

    Args:
        model: The model.
        careful: Whether to copy all values, for a model that may write to any of them.
        leaves: Parameters to differentiate by; all others then count as constants, so
            that graphs hold nothing for them. By default each keeps its own flag.
        reach: State reachable from the model and all callables that run inside.
    """
    with ExitStack() as stack:
        stack.enter_context(Exclusive())
        saved = SavedState(model, careful=careful, reach=reach)
        stack.callback(saved.restore)
        if leaves is not None:
            saved.differentiate_by(leaves)
        stack.enter_context(differentiating())
        stack.enter_context(differentiable_twice(model))
        if "torch._dynamo" in sys.modules:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield saved


class SavedState:
    """State of a model, the random generators and the process, to restore later.

    Use it only inside ``core.Exclusive``, since other threads could change the state.

    Args:
        model: The model.
        careful: Whether to copy values too, not only references to tensors.
        reach: State to save, if it is more than the model.
    """

    def __init__(
        self, model: nn.Module, *, careful: bool, reach: ReachableState | None = None
    ) -> None:
        if careful:
            refuse_unready(model)
        reach = reach or ReachableState([model])
        self._process = ProcessState()
        self._own = {id(parameter) for parameter in model.parameters()}
        self._buffers = [(m, dict(m._buffers)) for m in reach.modules if m._buffers]
        self._containers = [(kept, _entries(kept)) for kept in reach.containers]
        self._parameters = [_ParameterState(p, careful) for p in _parameters(reach)]
        self._values = (
            [_SavedTensor(t) for t in _plain_tensors(reach)] if careful else []
        )
        arrays = [array for array in reach.arrays if array.flags.writeable]
        self._arrays = [(array, array.copy()) for array in arrays] if careful else []
        self._generators = [(g, generator_state(g)) for g in reach.generators]
        self._randomness = random_state()

    def lend_buffers(self) -> None:
        """Give the modules new copies of their buffers, with the original values.

        Graphs hold the copies, and stay valid when the originals come back.
        """
        copies = _copies(b for _, buffers in self._buffers for b in buffers.values())
        for module, buffers in self._buffers:
            for name, buffer in buffers.items():
                if buffer is not None:
                    module._buffers[name] = copies.pop(0)

    def differentiate_by(self, leaves: Iterable[Tensor]) -> None:
        """Let only these parameters require a gradient, without gradient hooks."""
        chosen = {id(leaf) for leaf in leaves}
        for state in self._parameters:
            if id(state.parameter) in self._own:
                state.set_leaf(id(state.parameter) in chosen)

    def restore(self) -> None:
        """Restore everything; Ctrl-C waits until it is done."""
        with DelayInterrupt():
            self._process.restore()
            try:
                for container, saved in self._containers:
                    _refill(container, saved)
                for state in self._parameters:
                    state.restore()
                for value in self._values:
                    value.put_back()
                for array, copy in self._arrays:
                    array[...] = copy
                for generator, state in self._generators:
                    restore_generator(generator, state)
            finally:  # even if restoring the model fails
                restore_random_state(self._randomness)


def _parameters(reach: ReachableState) -> list[nn.Parameter]:
    parameters = (
        p for module in reach.modules for p in module.parameters(recurse=False)
    )
    return list({id(parameter): parameter for parameter in parameters}.values())


def _plain_tensors(reach: ReachableState) -> list[Tensor]:
    """List buffers, and tensors that modules keep without registering them."""
    known = {id(parameter) for parameter in _parameters(reach)}
    buffers = (b for module in reach.modules for b in module.buffers(recurse=False))
    tensors = {id(t): t for t in (*buffers, *reach.tensors) if id(t) not in known}
    return list(tensors.values())


class _ParameterState:
    """Flag, gradient, hooks on the gradient and, if careful, values of a parameter."""

    def __init__(self, parameter: nn.Parameter, careful: bool) -> None:
        self.parameter = parameter
        self._flag, self._grad = parameter.requires_grad, parameter.grad
        self._hooks = dict(_gradient_hooks(parameter) or {})
        self._late_hooks, self._values = {}, []
        if careful:
            self._late_hooks = dict(parameter._post_accumulate_grad_hooks or {})
            held = [parameter] if self._grad is None else [parameter, self._grad]
            self._values = [_SavedTensor(tensor) for tensor in held]

    def set_leaf(self, required: bool) -> None:
        self.parameter.requires_grad_(required)
        # They clip or print gradients in training; they are not part of the loss.
        if hooks := _gradient_hooks(self.parameter):
            hooks.clear()

    def restore(self) -> None:
        self.parameter.requires_grad_(self._flag)
        if self._values:
            self.parameter.grad = None  # it may not fit the restored values
            if (hooks := self.parameter._post_accumulate_grad_hooks) is not None:
                _refill(hooks, self._late_hooks)
        for value in self._values:
            value.put_back()
        if self.parameter.grad is not self._grad:
            self.parameter.grad = self._grad
        if (hooks := _gradient_hooks(self.parameter)) is not None:
            _refill(hooks, self._hooks)


def _gradient_hooks(parameter: nn.Parameter) -> Any:
    return parameter._backward_hooks


class _SavedTensor:
    """Memory and values of a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        with torch.inference_mode(False):
            self._tensor, self._memory = tensor, tensor.detach()
            self._copy = self._memory.clone()

    def put_back(self) -> None:
        """Write only where something changed, to leave autograd versions alone."""
        tensor, copy = self._tensor, self._copy
        if _place(tensor) != _place(self._memory):
            tensor.data = self._memory
        if all(map(_same_bits, dense_parts(tensor), dense_parts(copy))):
            return
        with torch.no_grad():
            tensor.copy_(copy)


def _place(tensor: Tensor) -> tuple[Any, ...]:
    """Return the form of a tensor and, of a plain one, where its memory is."""
    form = tensor.dtype, tensor.device, tensor.layout, tensor.is_nested
    plain = type(tensor) in (Tensor, nn.Parameter) and tensor.layout is torch.strided
    if plain and not tensor.is_nested:
        return *form, tensor.shape, tensor.data_ptr(), tensor.stride()
    return *form, [part.shape for part in dense_parts(tensor)]


def _same_bits(tensor: Tensor, copy: Tensor) -> bool:
    if tensor.is_meta:  # without data
        return True
    with torch.no_grad():
        if tensor.is_floating_point():
            if tensor.itemsize == 1:  # types for which torch has few operators
                return torch.equal(tensor.view(torch.uint8), copy.view(torch.uint8))
            # Zeros of both signs are equal, and NaN is not: compare those by hand.
            alike = (tensor == copy) & (torch.signbit(tensor) == torch.signbit(copy))
            equal = alike | ((tensor != tensor) & (copy != copy))
        else:
            equal = tensor == copy
        return bool(equal.all())


def _copies(buffers: Iterable[Tensor | None]) -> list[Tensor]:
    """Copy buffers one by one; on a GPU all at once, launched as a few kernels."""
    originals = [buffer.detach() for buffer in buffers if buffer is not None]
    copies = [
        torch.empty_like(b) if b.device.type == "cuda" else b.clone() for b in originals
    ]
    there = [i for i, buffer in enumerate(originals) if buffer.device.type == "cuda"]
    if there:
        torch._foreach_copy_(  # pyright: ignore[reportPrivateImportUsage]
            [copies[i] for i in there], [originals[i] for i in there]
        )
    return copies


def _entries(container: Container) -> Any:
    return dict(container) if isinstance(container, dict) else list(container)


def _refill(container: Any, saved: Any) -> None:
    """Write a container's entries only where they or their order changed.

    By the methods of its built-in base, since a subclass may forbid its own.
    """
    if _same_entries(container, saved):
        return
    bases = (OrderedDict, dict, list, set, deque)
    base: Any = next(kind for kind in bases if isinstance(container, kind))
    base.clear(container)
    add: Any = base.extend if base in (list, deque) else base.update
    add(container, saved)


def _same_entries(container: Any, saved: Any) -> bool:
    if not container and not saved:
        return True
    if isinstance(container, dict):
        # By identity: tensors as keys, as in an optimiser's state, have no plain ==.
        return len(container) == len(saved) and all(
            key is kept and container[key] is value
            for key, (kept, value) in zip(container, saved.items(), strict=True)
        )
    return len(container) == len(saved) and all(
        now is then for now, then in zip(container, saved, strict=True)
    )
