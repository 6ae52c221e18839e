"""Write down one forward pass: every operator, tensor and module, by number."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks
from torch.utils._python_dispatch import TorchDispatchMode

from theodolite.anatomy.recording import Call, Recording, Ref, Source, Value, Visit
from theodolite.core import MeasurementError
from theodolite.instruments import Batch, opened, run_model, tensors_in

Act = Callable[[int, Any, tuple[Any, ...], dict[str, Any]], Any]


def record(model: nn.Module, batch: Batch) -> Recording:
    """Run a model once on a batch and write down what it did; it is left as found.

    Args:
        model: Any module; it runs in the modes in which it is.
        batch: A tensor, a pair of inputs and targets, or a mapping of keyword
            arguments, as the instruments take them.

    Raises:
        MeasurementError: Nothing of the run could be seen.
    """
    _check(model)
    with as_written(model):
        recorder = Recorder(model, tensors_in(batch))
        with recorder:
            outputs = run_model(model, batch)
        return recorder.recording(_returned(outputs))


@contextmanager
def as_written(model: nn.Module) -> Iterator[None]:
    """Run a model as its code is written, from elementary operators; as found after.

    Compiled modules run uncompiled and attention without fused kernels, so that all
    passes under this number their calls alike.
    """
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with opened(model, careful=True):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


class Recorder(TorchDispatchMode):
    """Numbers the calls of operators made inside, and keeps who reads what.

    Tensors are kept alive while it records, so a pass needs the memory of one that
    will be differentiated.

    Args:
        model: Names modules, parameters and buffers.
        inputs: Tensors that count as the network's inputs.
        act: Computes a call in place of the operator itself, from the call's index,
            the operator and its arguments.
    """

    def __init__(
        self, model: nn.Module, inputs: Iterable[Tensor] = (), act: Act | None = None
    ) -> None:
        super().__init__()
        self._act = act
        self._ledger = _Ledger(model, inputs)
        self._visits = _Visits(model)
        self._calls: list[Call] = []

    def __enter__(self) -> "Recorder":
        self._visits.start()
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self._visits.end()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operator and write the call down."""
        options = dict(kwargs or {})
        index = len(self._calls)
        given = _flat(args) + _flat(tuple(options.values()))
        inputs = tuple(self._ledger.number(tensor) for tensor in given)
        arguments = self._noted(args)
        named = tuple((key, self._noted(value)) for key, value in options.items())
        visit, path = self._visits.here(index)
        self._calls.append(  # before it runs, so that numbers agree if it fails
            Call(
                index=index,
                operator=str(func),
                module=path,
                visit=visit,
                arguments=arguments,
                options=named,
                inputs=inputs,
                outputs=(),
            )
        )
        act = self._act
        result = (
            func(*args, **options) if act is None else act(index, func, args, options)
        )
        written = _written(func, args, options)
        self._finish(index, _flat((result,)), written)
        return result

    def _finish(self, index: int, made: list[Tensor], written: list[Tensor]) -> None:
        into = {id(tensor) for tensor in written}
        silent = [t for t in written if all(t is not other for other in made)]
        outputs = tuple(
            self._ledger.make(tensor, index, writes=id(tensor) in into)
            for tensor in (*made, *silent)
        )
        call = self._calls[index]
        self._calls[index] = Call(**{**vars(call), "outputs": outputs})

    def _noted(self, value: Any) -> Any:
        """Return arguments with tensors as references and the rest as plain values."""
        if isinstance(value, Tensor):
            return Ref(self._ledger.number(value))
        if isinstance(value, list | tuple):
            return tuple(self._noted(item) for item in value)
        if value is None or isinstance(value, bool | int | float | complex | str):
            return value
        return str(value)

    def recording(self, outputs: Iterable[Tensor] = ()) -> Recording:
        """Return what was written down.

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
        ends = tuple(self._ledger.number(tensor) for tensor in outputs)
        return Recording(
            calls=tuple(self._calls),
            values=tuple(self._ledger.values),
            visits=self._visits.finished(len(self._calls)),
            outputs=ends,
        )


class _Ledger:
    """Which value each tensor holds now."""

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


class _Visits:
    """Which modules run, kept by hooks on all modules."""

    def __init__(self, model: nn.Module) -> None:
        self._paths = {id(module): name for name, module in model.named_modules()}
        self._found: list[Visit] = []
        self._stack: list[int] = []
        self._modules: list[nn.Module] = []
        self._entered: list[int] = []
        self._handles: list[Any] = []
        self._thread = threading.get_ident()
        self._calls = 0

    def start(self) -> None:
        self._handles = [
            hooks.register_module_forward_pre_hook(self._enter),
            hooks.register_module_forward_hook(self._leave, always_call=True),
        ]

    def end(self) -> None:
        for handle in self._handles:
            handle.remove()

    def here(self, call: int) -> tuple[int, str]:
        """Return the innermost visit and its path, and note how far the calls are."""
        self._calls = call + 1
        if not self._stack:
            return 0, ""
        visit = self._stack[-1]
        return visit, self._found[visit].module

    def finished(self, calls: int) -> tuple[Visit, ...]:
        if self._found:
            return tuple(self._found)
        whole = Visit(index=0, module="", kind="", parent=None, first=0, stop=calls)
        return (whole,)

    def _enter(self, module: nn.Module, args: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        known = self._paths.get(id(module))
        above = self._found[self._stack[-1]].module if self._stack else ""
        hidden = f"{above}.<{type(module).__name__}>".lstrip(".")
        self._stack.append(len(self._found))
        self._modules.append(module)
        self._found.append(
            Visit(
                index=len(self._found),
                module=hidden if known is None else known,
                kind=type(module).__name__,
                parent=self._stack[-2] if len(self._stack) > 1 else None,
                first=self._calls,
                stop=self._calls,
                recurrent=isinstance(module, nn.RNNBase | nn.RNNCellBase),
            )
        )

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        if threading.get_ident() != self._thread or module not in self._modules:
            return
        last = None
        while last is not module:
            last, visit = self._modules.pop(), self._stack.pop()
            self._found[visit] = Visit(
                **{**vars(self._found[visit]), "stop": self._calls}
            )


def _check(model: Any) -> None:
    if not isinstance(model, nn.Module):
        raise MeasurementError(
            f"a {type(model).__name__} came, wanted is a torch.nn.Module: pass the "
            "network itself"
        )
    if isinstance(model, nn.DataParallel) and len(model.device_ids) > 1:
        raise MeasurementError(
            f"a DataParallel over {len(model.device_ids)} devices came, whose copies "
            "run in other threads, wanted is one network: pass model.module"
        )


def _returned(outputs: Any, depth: int = 3) -> list[Tensor]:
    """List the tensors that a model returned, in containers or objects of its own."""
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
    return [tensor for part in parts for tensor in _returned(part, depth - 1)]


def _flat(value: Any) -> list[Tensor]:
    """List the tensors of arguments or results, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _flat(item)]
    return []


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """List the tensors that an operator writes to, as its schema says."""
    found: list[Tensor] = []
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[place] if place < len(args) else kwargs.get(argument.name)
            found += _flat((given,))
    return found


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
