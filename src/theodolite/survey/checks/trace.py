"""One traced pass: which functions of torch ran, on which tensors, in which module."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.instruments import Listener

# Functions that read a tensor without computing another one.
_READS = frozenset("__get__ size dim numel is_floating_point stride type_as".split())
_LOST = frozenset("detach detach_ data item tolist numpy".split())
# Functions that draw random numbers.
_DRAWS = frozenset("randn rand normal randn_like rand_like uniform".split())


@dataclass(kw_only=True, eq=False)
class Call:
    """One call of a function of torch.

    Attributes:
        index: Its place among the calls.
        name: Name of the function, without underscores: ``linear``, ``add``, ….
        module: Path of the innermost module that ran.
        args: Positional arguments.
        kwargs: Keyword arguments.
        inputs: Tensors among the arguments.
        sources: For each of them the call that computed it, -1 for a leaf.
        outputs: Tensors that it returned.
        grad_enabled: Whether gradients were recorded.
        after_model: Whether the model had returned: the call belongs to the loss.
    """

    index: int
    name: str
    module: str
    args: Any
    kwargs: Any
    inputs: list[Tensor]
    sources: list[int]
    outputs: list[Tensor] = field(default_factory=list)
    grad_enabled: bool = True
    after_model: bool = False

    def given(self, place: int, name: str, default: Any = None) -> Any:
        """Return an argument by its place or name."""
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[place] if len(self.args) > place else default


class Trace(Listener):
    """Records the functions that run, with their tensors, which stay alive.

    Args:
        model: Names modules.
        inputs: Tensors of the model's inputs.
        targets: Tensors of the targets.

    Attributes:
        calls: All calls, in order.
        visits: Number of times that each module ran, by its path.
        outputs: What the model returned.
        called: Arguments of its first call.
        left: Whether the model has returned.
    """

    def __init__(
        self, model: nn.Module, inputs: Iterable[Tensor], targets: Iterable[Tensor]
    ) -> None:
        self._paths = {id(module): name for name, module in model.named_modules()}
        self._model = model
        self._kinds = {id(p): "weight" for p in model.parameters()}
        self._kinds |= {id(t): "input" for t in inputs}
        self._kinds |= {id(t): "target" for t in targets}
        self._made: dict[int, int] = {}
        self._noise: list[Tensor] = []
        self.calls: list[Call] = []
        self.visits: dict[str, int] = {}
        self.entered: list[tuple[str, nn.Module, Any]] = []
        self.unregistered: list[nn.Module] = []
        self.outputs: Any = None
        self.called: tuple[Any, Any] | None = None
        self.left = False

    def on_enter(self, module: nn.Module, args: Any) -> None:
        """Count the visit."""
        path = self._paths.get(id(module))
        if path is None:
            if not self.left and self._model in self.running:
                self.unregistered.append(module)
            return
        self.visits[path] = self.visits.get(path, 0) + 1
        self.entered.append((path, module, args))

    def on_leave(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Keep the model's outputs."""
        if module is self._model:
            self.called = self.called or (args, kwargs)
            self.outputs, self.left = output, True

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Run a function and record it."""
        name = _name(function)
        inputs = _tensors((args, kwargs))
        sources = [self._made.get(id(tensor), -1) for tensor in inputs]
        result = function(*args, **kwargs)
        outputs = _tensors(result)
        if name in _DRAWS and not inputs:
            self._noise += outputs  # kept, so that no address repeats
            self._kinds |= {id(t): "noise" for t in outputs}
        if name in _READS or (not (inputs and outputs) and name not in _LOST):
            return result
        call = Call(
            index=len(self.calls),
            name=name,
            module=self._path(),
            args=args,
            kwargs=kwargs,
            inputs=inputs,
            sources=sources,
            outputs=outputs,
            grad_enabled=torch.is_grad_enabled(),
            after_model=self.left,
        )
        self.calls.append(call)
        for tensor in outputs:
            self._made[id(tensor)] = call.index
        return result

    def _path(self) -> str:
        for module in reversed(self.running):
            if id(module) in self._paths:
                return self._paths[id(module)]
        return ""

    def made_by(self, tensor: Tensor) -> "Call | None":
        """Return the call that computed a tensor last."""
        index = self._made.get(id(tensor), -1)
        return self.calls[index] if index >= 0 else None

    def origins(self, call: Call) -> set[str]:
        """Return what a call depends on: input, weight, target or noise."""
        if not hasattr(self, "_origins"):
            self._origins: dict[int, set[str]] = {}
        for each in self.calls[len(self._origins) : call.index + 1]:
            found: set[str] = set()
            for tensor, source in zip(each.inputs, each.sources, strict=True):
                found |= self.kinds(tensor, source)
            self._origins[each.index] = {"noise"} if each.name in _DRAWS else found
        return self._origins[call.index]

    def kinds(self, tensor: Tensor, source: int) -> set[str]:
        """Return what one argument of a call depends on."""
        if source >= 0:
            return self.origins(self.calls[source])
        return {self._kinds[id(tensor)]} if id(tensor) in self._kinds else set()

    def returned(self) -> list[Tensor]:
        """Return the tensors that the model returned."""
        parts = self.outputs
        if hasattr(parts, "__dict__") and not isinstance(parts, Tensor | dict):
            parts = list(vars(parts).values())
        return _tensors(parts)

    def readers(self, call: Call) -> list[Call]:
        """Return the calls that read what a call computed."""
        return [each for each in self.calls if call.index in each.sources]

    def after(self, call: Call) -> list[Call]:
        """Return the calls that depend on what a call computed."""
        reached = {call.index}
        for each in self.calls[call.index + 1 :]:
            if not reached.isdisjoint(each.sources):
                reached.add(each.index)
        return [self.calls[index] for index in sorted(reached - {call.index})]

    def named(self, *names: str) -> list[Call]:
        """Return the calls of functions of these names."""
        return [call for call in self.calls if call.name in names]


def _name(function: Any) -> str:
    name = getattr(function, "__name__", "")
    if name == "__get__":
        owner = getattr(getattr(function, "__self__", None), "__name__", "")
        return owner if owner in ("data", "T", "mT", "real") else name
    return name.strip("_").removeprefix("r") if name in _MIRRORED else name.strip("_")


_MIRRORED = frozenset(f"__r{name}__" for name in ("add", "mul", "sub", "matmul"))


def _tensors(value: Any, depth: int = 4) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if depth == 0:
        return []
    if isinstance(value, dict):
        return [t for part in value.values() for t in _tensors(part, depth - 1)]
    if isinstance(value, tuple | list):
        return [t for part in value for t in _tensors(part, depth - 1)]
    return []
