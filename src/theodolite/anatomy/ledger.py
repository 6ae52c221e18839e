"""Which value each tensor holds, and when it gets a new one."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from theodolite.anatomy.recording import Source, Value


class Ledger:
    """Which value each tensor holds now.

    Args:
        model: Names parameters and buffers.
        inputs: Tensors that count as the network's inputs.

    Attributes:
        values: All values so far, in order.
    """

    def __init__(self, model: nn.Module, inputs: Iterable[Tensor]) -> None:
        self.values: list[Value] = []
        self._kept: list[Any] = []  # alive, so that no address repeats
        self._held: dict[int, int] = {}
        self._memory: dict[int, int] = {}  # the value made last in each memory
        self._wrote: dict[int, int] = {}  # the value written last in each memory
        parameters = model.named_parameters(remove_duplicate=True)
        self._leaves: dict[int, tuple[Source, str]] = {
            **{id(buffer): ("buffer", name) for name, buffer in model.named_buffers()},
            **{id(parameter): ("parameter", name) for name, parameter in parameters},
        }
        self._inputs = list(inputs)
        self._leaves |= {id(tensor): ("input", "") for tensor in self._inputs}

    def number(self, tensor: Tensor) -> int:
        """Return the value that a tensor holds, a new one if it was not met before."""
        held, memory = self._held.get(id(tensor)), _memory(tensor)
        wrote = self._wrote.get(memory, -1) if memory else -1
        if held is not None and wrote <= held:
            return held
        if held is None and (id(tensor) in self._leaves or memory not in self._memory):
            source, name = self._leaves.get(id(tensor), ("constant", ""))
            return self._note(tensor, source, name=name)
        last = self.values[wrote if held is not None else self._memory[memory]]
        whole = held is None or _numel(last.shape) >= tensor.numel()
        of = (last.number,) if whole or held is None else (held, last.number)
        return self._note(tensor, "alias", of=of)

    def make(self, tensor: Tensor, call: int, *, writes: bool) -> int:
        """Note a value that a call made."""
        number = self._note(tensor, "call", call=call)
        if writes and (memory := _memory(tensor)):
            self._wrote[memory] = number
        return number

    def _note(self, tensor: Tensor, source: Source, **known: Any) -> int:
        number = len(self.values)
        self.values.append(
            Value(
                number=number,
                shape=tuple(tensor.shape),
                dtype=str(tensor.dtype).removeprefix("torch."),
                source=source,
                **known,
            )
        )
        self._kept.append(tensor)
        self._held[id(tensor)] = number
        if memory := _memory(tensor):
            self._memory[memory] = number
        return number


def _memory(tensor: Tensor) -> int:
    """Return what tensors that share memory have in common, 0 if there is no such."""
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # sparse, and the like
        return 0


def _numel(shape: tuple[int, ...]) -> int:
    found = 1
    for size in shape:
        found *= size
    return found
