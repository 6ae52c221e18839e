"""Notice that a model changed."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


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
