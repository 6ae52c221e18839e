"""Run a model on copies of what it may change, without copying its parameters.

:func:`~theodolite.instruments.preserve` copies and compares everything; a product of
an operator is too frequent for that. A shelter gives the model copies of its buffers
to write to and puts the originals back, which it never touches.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.instruments.differentiate.twice import differentiable_twice
from theodolite.instruments.model.preservation import (
    HOOKS,
    preserve,
    random_state,
    restore_random_state,
)


@contextmanager
def preserve_randomness() -> Iterator[None]:
    """Put the random states of torch, NumPy and Python back on the way out."""
    state = random_state()
    try:
        yield
    finally:
        restore_random_state(state)


class Shelter:
    """A context in which a model may be run and differentiated twice.

    Args:
        model: The model.
        leaves: Parameters to differentiate by; all others count as constants, so that
            graphs hold nothing for them.
    """

    def __init__(self, model: nn.Module, leaves: Iterable[nn.Parameter]) -> None:
        self._model = model
        self._leaves = {id(leaf) for leaf in leaves}
        self._modules: list[_Slots] = []
        # True once the model was seen to write to tensors that are not its to write.
        self.careful = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Enter; every state is as found on the way out, also after an exception."""
        with ExitStack() as stack:
            if self.careful:
                stack.enter_context(preserve(self._model))
            stack.enter_context(preserve_randomness())
            self._modules = [_Slots(module) for module in self._model.modules()]
            stack.callback(self._leave)
            parameters = [_Flag(parameter) for parameter in self._model.parameters()]
            stack.callback(lambda: [flag.restore() for flag in parameters])
            for flag in parameters:
                flag.set(id(flag.parameter) in self._leaves)
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
            stack.enter_context(differentiable_twice(self._model))
            if "torch._dynamo" in sys.modules:
                # Compiled code has no second derivative: run what it was made from.
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            yield

    def renew(self) -> None:
        """Give the model fresh copies of its buffers, as before its first run."""
        for slots in self._modules:
            slots.renew()

    def _leave(self) -> None:
        for slots in self._modules:
            slots.restore()
        self._modules = []


class _Slots:
    """Mode, parameters, buffers, children and hooks of one module, by reference."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._training = module.training
        self._parameters = dict(module._parameters)
        self._buffers = dict(module._buffers)
        self._children = dict(module._modules)
        self._full_hook = vars(module).get("_is_full_backward_hook")
        self._hooks = [
            (hooks, dict(hooks))
            for name in HOOKS
            if (hooks := vars(module).get(name)) is not None
        ]

    def renew(self) -> None:
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._module._buffers[name] = buffer.detach().clone()

    def restore(self) -> None:
        module = self._module
        module.training = self._training
        if "_is_full_backward_hook" in vars(module):
            module._is_full_backward_hook = self._full_hook
        pairs: list[tuple[Any, Any]] = [
            (module._parameters, self._parameters),
            (module._buffers, self._buffers),
            (module._modules, self._children),
            *self._hooks,
        ]
        for mapping, saved in pairs:
            if len(mapping) != len(saved) or any(
                mapping.get(key) is not value for key, value in saved.items()
            ):
                mapping.clear()
                mapping.update(saved)


class _Flag:
    """Whether a parameter requires a gradient, and the hooks on its gradient.

    Such hooks clip or print gradients in training; they are no part of the loss.
    """

    def __init__(self, parameter: nn.Parameter) -> None:
        self.parameter = parameter
        self._required = parameter.requires_grad
        self._grad = parameter.grad
        hooks: Any = parameter._backward_hooks
        self._hooks, self._saved = hooks, dict(hooks or {})

    def set(self, required: bool) -> None:
        self.parameter.requires_grad_(required)
        if self._hooks:
            self._hooks.clear()

    def restore(self) -> None:
        self.parameter.requires_grad_(self._required)
        if self.parameter.grad is not self._grad:
            self.parameter.grad = self._grad
        if self._saved:
            self._hooks.clear()
            self._hooks.update(self._saved)


class Fingerprint:
    """What a derivative depends on: values, versions and modes of a whole model.

    Values are compared too, since a write through ``.data`` leaves the version alone.

    Args:
        model: The model.
        others: Further tensors, such as data.
        spared: Modules whose buffers do not matter, such as norms that are not to use
            their running statistics.
    """

    def __init__(
        self,
        model: nn.Module,
        others: Iterable[Tensor] = (),
        spared: Iterable[nn.Module] = (),
    ) -> None:
        self._others = list(others)
        self._spared = {id(module) for module in spared}
        self._marks = self._look(model)
        self._copies = [tensor.detach().clone() for tensor in self._held(model)]

    def matches(self, model: nn.Module) -> bool:
        """Whether nothing changed since."""
        if self._look(model) != self._marks:
            return False
        changed = [
            (now.detach() != then).any()
            for now, then in zip(self._held(model), self._copies, strict=True)
        ]
        gathered = [flag.to(changed[0].device) for flag in changed]
        return not changed or not bool(torch.stack(gathered).any())

    def _look(self, model: nn.Module) -> list[Any]:
        marks: list[Any] = [module.training for module in model.modules()]
        for tensor in (*self._held(model), *self._others):
            marks.append((id(tensor), _version(tensor), tensor.data_ptr()))
        return marks

    def _held(self, model: nn.Module) -> list[Tensor]:
        buffers = [
            buffer
            for module in model.modules()
            if id(module) not in self._spared
            for buffer in module._buffers.values()
            if buffer is not None
        ]
        return [*model.parameters(), *buffers]


def _version(tensor: Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version
