"""Record one forward pass: every operator call, tensor value and module, by number."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from theodolite.core import MeasurementError
from theodolite.instruments import Batch, Listener, opened, run_model, tensors_in

from .recording import Call, Recording, Ref, Source, Value, Visit


class TensorValues:
    """Gives each tensor the number of the value that it holds now.

    Attributes:
        values: All values so far, in order.
    """

    def __init__(self, model: nn.Module, inputs: Iterable[Tensor]) -> None:
        self.values: list[Value] = []
        self._kept: list[Any] = []  # alive, so that no address repeats
        self._held: dict[int, int] = {}
        self._memory: dict[int, int] = {}  # the newest value in each storage
        self._wrote: dict[int, int] = {}  # the value last written to each storage
        parameters = model.named_parameters(remove_duplicate=True)
        self._leaves: dict[int, tuple[Source, str]] = {
            **{id(buffer): ("buffer", name) for name, buffer in model.named_buffers()},
            **{id(parameter): ("parameter", name) for name, parameter in parameters},
        }
        self._inputs = list(inputs)
        self._leaves |= {id(tensor): ("input", "") for tensor in self._inputs}

    def number(self, tensor: Tensor) -> int:
        """Return the number of the value in a tensor; new tensors get a new one."""
        held, memory = self._held.get(id(tensor)), _memory(tensor)
        wrote = self._wrote.get(memory, -1) if memory else -1
        if held is not None and wrote <= held:
            return held
        if held is None and (id(tensor) in self._leaves or memory not in self._memory):
            source, name = self._leaves.get(id(tensor), ("constant", ""))
            return self._note(tensor, source, name=name)
        last = self.values[wrote if held is not None else self._memory[memory]]
        whole = held is None or math.prod(last.shape) >= tensor.numel()
        of = (last.number,) if whole or held is None else (held, last.number)
        return self._note(tensor, "alias", of=of)

    def make(self, tensor: Tensor, call: int, *, writes: bool) -> int:
        """Add a value that a call computed."""
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
    """Return an identifier of a tensor's storage, 0 if it has none."""
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # sparse tensors and similar
        return 0


Act = Callable[[int, Any, tuple[Any, ...], dict[str, Any]], Any]


def record(
    model: nn.Module,
    batch: Batch,
    *,
    beside: "Callable[[Recorder], AbstractContextManager[Any]] | None" = None,
) -> Recording:
    """Run a model once on a batch and record all its calls; the model is not changed.

    Args:
        model: Any module; it runs in its present mode.
        batch: A tensor, a pair of inputs and targets, or a mapping of keyword
            arguments, as the instruments take them.
        beside: Makes, from the recorder, a context that is open while the model runs,
            to record more about the same calls and values.

    Raises:
        MeasurementError: No operator of the run could be seen.
    """
    _check(model)
    with unfused(model):
        recorder = Recorder(model, tensors_in(batch))
        more = nullcontext() if beside is None else beside(recorder)
        with recorder, more:
            outputs = run_model(model, batch)
        return recorder.recording(returned_tensors(outputs))


@contextmanager
def unfused(model: nn.Module) -> Iterator[None]:
    """Run a model with elementary operators while inside; it is not changed.

    Compiled modules run uncompiled and attention without fused kernels, so that all
    passes inside number their calls alike.
    """
    with opened(model, careful=True) as state:
        torch.backends.mha.set_fastpath_enabled(False)
        state.lend_buffers()
        yield


class Recorder(Listener):
    """Records every operator call made inside it, and the values each call reads.

    Tensors are kept alive meanwhile, so a pass needs as much memory as one that will
    be differentiated. A module that the model does not register is named by its class.

    Args:
        model: Names modules, parameters and buffers.
        inputs: Tensors that count as the network's inputs.
        act: Computes a call in place of the operator, from the call's index, the
            operator and its arguments.

    Attributes:
        inside: Numbers of the visits that run now, outermost first.
    """

    def __init__(
        self, model: nn.Module, inputs: Iterable[Tensor] = (), act: Act | None = None
    ) -> None:
        self._act = act
        self._values = TensorValues(model, inputs)
        self._paths = {id(module): name for name, module in model.named_modules()}
        self._visits: list[Visit] = []
        self._calls: list[Call] = []
        self.inside: list[int] = []

    def on_enter(self, module: nn.Module, args: Any) -> None:
        """Begin a visit."""
        known, (calls, above) = self._paths.get(id(module)), self.here()
        hidden = f"{self._path()}.<{type(module).__name__}>".lstrip(".")
        self._visits.append(
            Visit(
                index=len(self._visits),
                module=hidden if known is None else known,
                kind=type(module).__name__,
                parent=above if self.inside else None,
                first=calls,
                stop=calls,
                recurrent=isinstance(module, nn.RNNBase | nn.RNNCellBase),
            )
        )
        self.inside.append(len(self._visits) - 1)

    def on_leave(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """End a visit."""
        visit = self.inside.pop()
        self._visits[visit] = replace(self._visits[visit], stop=len(self._calls))

    def on_operator(self, operator: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator and record the call."""
        index, visit = self.here()
        arguments = self._noted(args)
        named = tuple((key, self._noted(value)) for key, value in kwargs.items())
        self._calls.append(  # before it runs, so that numbers agree if it fails
            Call(
                index=index,
                operator=str(operator),
                module=self._path(),
                visit=visit,
                arguments=arguments,
                options=named,
                inputs=tuple(ref.number for ref in _flat((arguments, named), Ref)),
                outputs=(),
            )
        )
        if self._act is None:
            result = operator(*args, **kwargs)
        else:
            result = self._act(index, operator, args, kwargs)
        made, written = _flat((result,)), _written(operator, args, kwargs)
        into = {id(tensor) for tensor in written}
        silent = [t for t in written if all(t is not other for other in made)]
        outputs = tuple(
            self._values.make(tensor, index, writes=id(tensor) in into)
            for tensor in (*made, *silent)
        )
        self._calls[index] = replace(self._calls[index], outputs=outputs)
        return result

    def _path(self) -> str:
        return self._visits[self.inside[-1]].module if self.inside else ""

    def _noted(self, value: Any) -> Any:
        """Return arguments with tensors as references and the rest as plain values."""
        if isinstance(value, Tensor):
            return Ref(self._values.number(value))
        if isinstance(value, list | tuple):
            return tuple(self._noted(item) for item in value)
        if value is None or isinstance(value, bool | int | float | complex | str):
            return value
        return str(value)

    def number(self, tensor: Tensor) -> int:
        """Return the number of the value that a tensor holds now."""
        return self._values.number(tensor)

    def here(self) -> tuple[int, int]:
        """Return the index that the next call will have, and the visit that runs."""
        return len(self._calls), self.inside[-1] if self.inside else 0

    def recording(self, outputs: Iterable[Tensor] = ()) -> Recording:
        """Return the recording.

        Args:
            outputs: Tensors that the model returned.

        Raises:
            MeasurementError: No operator was seen.
        """
        if not self._calls:
            raise MeasurementError(
                "no operator of torch was seen in the run, wanted is a model that "
                "computes with torch in this thread: pass the module that wrappers hold"
            )
        ends, calls = tuple(map(self._values.number, outputs)), len(self._calls)
        whole = Visit(index=0, module="", kind="", parent=None, first=0, stop=calls)
        return Recording(
            calls=tuple(self._calls),
            values=tuple(self._values.values),
            visits=tuple(self._visits) or (whole,),
            outputs=ends,
        )


def _check(model: Any) -> None:
    if isinstance(model, nn.DataParallel) and len(model.device_ids) > 1:
        raise MeasurementError(
            f"a DataParallel over {len(model.device_ids)} devices came, whose copies "
            "run in other threads, wanted is one network: pass model.module"
        )
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if is_lazy(tensor) or tensor.is_meta:
            raise MeasurementError(
                f"{name!r} has no numbers yet, wanted is a network that can run: call "
                "it once on a batch if its layers are lazy, or move it from the meta "
                "device with to_empty(…) and fill it"
            )


def returned_tensors(outputs: Any, depth: int = 3) -> list[Tensor]:
    """List the tensors that a model returned, also inside containers and objects."""
    if isinstance(outputs, Tensor):
        return [outputs]
    if isinstance(outputs, str | bytes) or depth == 0:
        return []
    if isinstance(outputs, Mapping):
        parts = list(outputs.values())
    elif isinstance(outputs, Iterable):
        parts = list(outputs)
    else:
        parts = list(getattr(outputs, "__dict__", {}).values())
    return [tensor for part in parts for tensor in returned_tensors(part, depth - 1)]


def _flat(value: Any, kind: type = Tensor) -> list[Any]:
    """List the tensors, or objects of another kind, in arguments or results."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, list | tuple):
        return [part for item in value for part in _flat(item, kind)]
    return []


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """List the tensors that an operator writes to, as its schema says."""
    written: list[Tensor] = []
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[place] if place < len(args) else kwargs.get(argument.name)
            written += _flat((given,))
    return written
