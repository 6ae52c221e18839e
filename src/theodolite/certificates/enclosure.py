"""Enclose the loss of a model along a segment of its parameters.

The model runs once on its batch, in float64. Beside each tensor that depends on the
parameters a tube is kept, which each operator carries on: any model whose operators
are known, whatever its modules.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves, tree_map

from theodolite.core import Exclusive, MeasurementError, NormMode
from theodolite.instruments import (
    Listener,
    Problem,
    apply_norm_mode,
    read_batches,
)

from .norms import euclidean
from .operators import MOVES, Operators
from .tubes import ROUNDOFF, Tube

# One tensor per parameter.
Parts = list[Tensor]
# Operators that read no numbers of a tensor, or whose results are used as constants.
_SHAPES = frozenset("empty_like zeros_like ones_like full_like new_empty new_zeros "
    "new_ones new_full sym_size sym_numel is_same_size".split())  # fmt: skip
_BATCH_NORMS = ("native_batch_norm", "_native_batch_norm_legit")
_WRITTEN = "memory that was written to"
# Functions that hand numbers of a tensor to code outside torch.
_OUTWARD = frozenset("numpy tolist __array__ __dlpack__ data_ptr".split())


class Layers(Listener):
    """Keeps outputs of the layers that run inside.

    Attributes:
        layers: Copies of them, or what ``kept`` makes of them, by name.
    """

    def __init__(self, paths: Mapping[int, str]) -> None:
        self._paths = paths
        self.layers: dict[str, Any] = {}

    def on_leave(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Keep a layer's output."""
        path = self._paths.get(id(module), "")
        if isinstance(output, Tensor) and path and not list(module.children()):
            self.layers[path] = self.kept(output)

    def kept(self, output: Tensor) -> Any:
        """Return what is kept of an output."""
        return output.detach().clone()


class Enclosing(Layers):
    """Carries tubes along with the operators that run inside.

    Args:
        tubes: Tubes of parameters, with the tensors that hold their values.
        paths: Names of modules by their identity.
        exact: Whether products round less, at three times the cost.
    """

    def __init__(
        self,
        tubes: list[tuple[Tensor, Tube]],
        paths: Mapping[int, str],
        exact: bool = False,
    ) -> None:
        super().__init__(paths)
        # A tube, or why there is none; tensors are kept, so that no identity repeats.
        self._tubes: dict[int, tuple[Tensor, Tube | str]] = {}
        self._memory: set[int] = set()
        self._operators = Operators(exact)
        for tensor, one in tubes:
            self._keep(tensor, one)

    def of(self, tensor: Tensor) -> Tube | None:
        """Return the tube of a tensor, None if it does not move."""
        known = self._held(tensor)
        if isinstance(known, str):
            raise MeasurementError(
                f"{self._where()} reads {known}, of which no bounds are known: compute "
                "it from the tensor itself, as in x = f(x)"
            )
        return known

    def _held(self, tensor: Tensor) -> Tube | str | None:
        known = self._tubes.get(id(tensor), (tensor, None))[1]
        if known is None and tensor.numel() and _memory(tensor) in self._memory:
            return "memory of the parameters or their results through another tensor"
        return known

    def _keep(self, tensor: Tensor, tube: Tube | str) -> None:
        self._tubes[id(tensor)] = (tensor, tube)
        self._memory.add(_memory(tensor))

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Refuse calls that hand numbers which move to code outside torch."""
        name = getattr(function, "__name__", "")
        if name in _OUTWARD and self.of(args[0]) is not None:
            raise self._refusal(f"{name}(), whose numbers leave torch")
        return function(*args, **kwargs)

    def kept(self, output: Tensor) -> Tube | None:
        """Return the tube of a layer's output."""
        return self.of(output)

    def on_operator(self, operator: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator, and carry the tube of its arguments on."""
        name = str(operator).split(".")[1]
        name = name if name.startswith("__") else name.rstrip("_")
        if torch.Tag.nondeterministic_seeded in operator.tags:
            raise MeasurementError(
                f"{self._where()} draws random numbers ({name}): call model.eval(), or "
                "set norm_mode='eval', so that dropout is off"
            )
        written = _written(operator, args)
        read = args
        if name in _BATCH_NORMS and len(args) == 8 and args[5]:
            # Running statistics are written, and not read.
            read = (*args[:3], None, None, *args[5:])
            written = [one for one in args[3:5] if one is not None]
        given = [one for one in tree_leaves((read, kwargs)) if isinstance(one, Tensor)]
        if name in MOVES and isinstance(held := self._held(given[0]), str):
            result = operator(*args, **kwargs)
            self._keep(result, held)
            return result
        moves = any([name not in _SHAPES and self.of(one) for one in given])
        try:
            bounds = self._carried(operator, name, read, kwargs) if moves else ()
            result = operator(*args, **kwargs)
            self._note_writes(written)
            if moves:
                for one in written:
                    self._keep(one, _WRITTEN)
                self._keep_results(name, result, bounds)
            return result
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            known = isinstance(error, KeyError)
            raise self._refusal(error.args[0] if known else str(operator)) from error

    def _refusal(self, what: str) -> MeasurementError:
        return MeasurementError(
            f"{self._where()} uses {what}, of which no bounds are known: use another "
            "layer there"
        )

    def _carried(self, operator: Any, name: str, args: Any, kwargs: Any) -> Any:
        def replaced(leaf: Any) -> Any:
            tube = self.of(leaf) if isinstance(leaf, Tensor) else None
            return leaf if tube is None else tube

        if operator.namespace != "aten":
            raise KeyError(f"the operator {operator}")
        if name not in self._operators.names:
            raise KeyError(f"the operator {name}")
        if "out" in kwargs:
            raise KeyError(f"the argument out of {name}")
        if kwargs.get("dtype") not in (None, torch.float64):
            raise KeyError(f"a cast to {kwargs['dtype']}")
        moved = tree_map(replaced, args), tree_map(replaced, kwargs)
        return self._operators(_out_of_place(operator), name, *moved)

    def _keep_results(self, name: str, result: Any, bounds: Any) -> None:
        results = result if isinstance(result, tuple | list) else (result,)
        bounds = bounds if isinstance(bounds, tuple | list) else (bounds,)
        for tensor, one in zip(results, bounds, strict=False):
            if isinstance(tensor, Tensor) and one is None:
                self._keep(tensor, f"a second result of {name}")
            elif isinstance(tensor, Tensor):
                if (tensor.shape, tensor.dtype) != (one.a.shape, torch.float64):
                    raise KeyError(f"a result of type {tensor.dtype}")
                self._keep(tensor, one)

    def _note_writes(self, written: list[Tensor]) -> None:
        """Forget tube of tensors that share the memory written to."""
        places = {_memory(one) for one in written} & self._memory
        for key, (tensor, _) in list(self._tubes.items()) if places else ():
            if _memory(tensor) in places:
                self._tubes[key] = tensor, _WRITTEN

    def _where(self) -> str:
        for module in reversed(self.running):
            if path := self._paths.get(id(module), ""):
                return f"layer {path} ({type(module).__name__})"
        return "the model or its loss"


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _written(operator: Any, args: Any) -> list[Tensor]:
    """List the tensors that an operator writes to, as its schema says."""
    return [
        given
        for given, argument in zip(args, operator._schema.arguments, strict=False)
        if isinstance(given, Tensor)
        and argument.alias_info is not None
        and argument.alias_info.is_write
    ]


def _real(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.is_floating_point()


def _out_of_place(operator: Any) -> Any:
    """Return the operator that writes nowhere."""
    name, overload = str(operator).split(".")[1:3]
    if name.endswith("_") and not name.startswith("__"):
        return getattr(getattr(torch.ops.aten, name.rstrip("_")), overload)
    return operator


@dataclass(frozen=True, eq=False)
class Prepared:
    """A copy in float64 of a problem of one batch.

    Attributes:
        model: The copy, in which norms and dropout are set.
        batch: The batch, in float64.
        loss: A function of both.
        names: Names of the parameters that move.
        paths: Names of modules by their identity.
        anchors: Values of the parameters.
    """

    model: nn.Module
    batch: Any
    loss: Callable[[nn.Module, Any], Tensor]
    names: tuple[str, ...]
    paths: dict[int, str]
    anchors: Parts

    @property
    def parameters(self) -> Parts:
        """The parameters that move."""
        named = dict(self.model.named_parameters())
        return [named[name] for name in self.names]

    @contextmanager
    def moved(self, change: Parts, t: float) -> Iterator[None]:
        """Move the parameters while inside."""
        with torch.no_grad():
            try:
                for one, at, by in zip(
                    self.parameters, self.anchors, change, strict=True
                ):
                    one.copy_(at + t * by)
                yield
            finally:
                for one, at in zip(self.parameters, self.anchors, strict=True):
                    one.copy_(at)

    def run(self, change: Parts, t: float) -> tuple[float, dict[str, Tensor]]:
        """Return the loss and the layers' outputs after a step, as computed."""
        outputs = Layers(self.paths)
        with self.moved(change, t), outputs:
            return float(self.loss(self.model, self.batch)), outputs.layers

    def gradient(self) -> Parts:
        """Return the gradient of the loss."""
        try:
            with torch.enable_grad():
                loss = self.loss(self.model, self.batch)
                parts = torch.autograd.grad(
                    loss, self.parameters, allow_unused=True, materialize_grads=True
                )
        except RuntimeError as error:
            reason = str(error).split(": [")[0].split(". ")[0]
            raise MeasurementError(
                f"the loss has no gradient ({reason}): repair the model, or pass a "
                "direction"
            ) from error
        return list(parts)

    def enclose(
        self, along: Parts, start: float, stop: float, exact: bool = False
    ) -> tuple[Tube, dict[str, Tube]]:
        """Return tubes of the loss and of each layer's output, between two points."""
        tubes = []
        with self.moved(along, start):
            for one, by, anchor in zip(
                self.parameters, along, self.anchors, strict=True
            ):
                a, b = one.detach().clone(), anchor + stop * by
                size = euclidean(anchor) + 4 * abs(stop) * euclidean(by)
                moves = bool((by != 0).any())
                slip = 1.01 * ROUNDOFF * size if moves else 0.0
                b = b if moves and stop != start else a
                tubes.append((one, Tube(a, b, 0.0, slip)))
            enclosing = Enclosing(tubes, self.paths, exact)
            # Attention by plain products, whose operators are known.
            with sdpa_kernel(SDPBackend.MATH), enclosing:
                loss = self.loss(self.model, self.batch)
        bounds = enclosing.of(loss)
        if bounds is None:
            raise MeasurementError(
                "the loss does not depend on the parameters: pass those of the model"
            )
        layers = {name: one for name, one in enclosing.layers.items() if one}
        return bounds, layers


def prepare(problem: Problem) -> Prepared:
    """Return a copy in float64 of a problem of one batch."""
    batches = read_batches(problem.batches)
    if len(batches) != 1:
        raise MeasurementError(
            f"{len(batches)} batches came, and a certificate is of one: join them"
        )
    mode = problem.mode
    if mode is NormMode.FROZEN:
        raise MeasurementError(
            "norm mode 'frozen' holds statistics of the data, which bounds do not: use "
            "'batch', or 'eval' for statistics that the layers hold"
        )
    chosen = {id(one) for one in problem.parameters().values()}
    _refuse_shared_memory(problem.model)
    try:
        with Exclusive():
            model, criterion = copy.deepcopy((problem.model, problem.loss))
    except Exception as error:  # a user's model may raise anything
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise MeasurementError(
            f"the model or its loss cannot be copied ({said}): pass one that "
            "copy.deepcopy takes"
        ) from error
    model = model.double().cpu()
    if isinstance(criterion, nn.Module):
        criterion = criterion.double().cpu()
    loss = replace(problem, model=model, loss=criterion).measured_loss()
    for parameter in model.parameters():
        parameter.grad = None
    batch = tree_map(
        lambda leaf: leaf.detach().double().cpu() if _real(leaf) else leaf, batches[0]
    )
    apply_norm_mode(model, mode, lambda: None)
    named = problem.model.named_parameters()
    names = tuple(name for name, one in named if id(one) in chosen)
    paths = {id(module): name for name, module in model.named_modules()}
    own = dict(model.named_parameters())
    anchors = [own[name].detach().clone() for name in names]
    return Prepared(model, batch, loss, names, paths, anchors)


def _refuse_shared_memory(model: nn.Module) -> None:
    """Refuse parameters or buffers of which one writes to another."""
    ends = []
    for one in (*model.parameters(), *model.buffers()):
        if one.layout is torch.strided and one.numel():
            steps = zip(one.shape, one.stride(), strict=True)
            last = sum((size - 1) * step for size, step in steps)
            begin = one.data_ptr()
            ends.append((begin, begin + (last + 1) * one.element_size()))
    ends.sort()
    if any(end > begin for (_, end), (begin, _) in pairwise(ends)):
        raise MeasurementError(
            "two parameters or buffers of the model share memory without being the "
            "same object: assign one to the other, as in b.weight = a.weight"
        )
