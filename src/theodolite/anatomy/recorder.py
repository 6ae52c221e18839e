"""Write down one forward pass: every operator, tensor and module, by number."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode

from theodolite.anatomy.ledger import Ledger
from theodolite.anatomy.recording import Call, Recording, Ref
from theodolite.anatomy.visiting import Visits
from theodolite.core import MeasurementError
from theodolite.instruments import Batch, opened, run_model, tensors_in

Act = Callable[[int, Any, tuple[Any, ...], dict[str, Any]], Any]


def record(
    model: nn.Module,
    batch: Batch,
    *,
    beside: "Callable[[Recorder], AbstractContextManager[Any]] | None" = None,
) -> Recording:
    """Run a model once on a batch and write down what it did; it is left as found.

    Args:
        model: Any module; it runs in the modes in which it is.
        batch: A tensor, a pair of inputs and targets, or a mapping of keyword
            arguments, as the instruments take them.
        beside: Makes, from the recorder, a context that is open while the model runs,
            to note more about the same calls and values.

    Raises:
        MeasurementError: Nothing of the run could be seen.
    """
    _check(model)
    with as_written(model):
        recorder = Recorder(model, tensors_in(batch))
        more = nullcontext() if beside is None else beside(recorder)
        with recorder, more:
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
        with opened(model, careful=True) as found:
            found.lend_buffers()
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

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Leave torch's compiler unloaded, which takes seconds; nothing needs it."""
        return False

    def __init__(
        self, model: nn.Module, inputs: Iterable[Tensor] = (), act: Act | None = None
    ) -> None:
        super().__init__()
        self._act = act
        self._ledger = Ledger(model, inputs)
        self._visits = Visits(model)
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

    def number(self, tensor: Tensor) -> int:
        """Return the number of the value that a tensor holds now."""
        return self._ledger.number(tensor)

    def here(self) -> tuple[int, int]:
        """Return the index that the next call will have, and the visit that runs."""
        return len(self._calls), self._visits.innermost()

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
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if is_lazy(tensor) or tensor.is_meta:
            raise MeasurementError(
                f"{name!r} has no numbers yet, wanted is a network that can run: call "
                "it once on a batch if its layers are lazy, or move it from the meta "
                "device with to_empty(…) and fill it"
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
