"""Linear layers and norms in execution order, and which of them are connected.

This works on functions, not on modules, so functional calls and layers applied twice
are seen correctly. A tensor is identified by its identity and its version, so an
in-place activation between a layer and a norm is noticed.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.conv import _ConvNd
from torch.utils._pytree import tree_leaves

from ..calls.listening import Listener
from ..differentiate.batch_norm_twice import batch_norm_arguments

_CONVOLUTIONS = {torch.conv1d, torch.conv2d, torch.conv3d}
_TRANSPOSED = {torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d}
_LINEAR = {functional.linear, *_CONVOLUTIONS, *_TRANSPOSED}
_BATCH_NORMS = (functional.batch_norm, torch.batch_norm)
_SAMPLE_NORMS = {
    functional.layer_norm: "layer norm",
    torch.layer_norm: "layer norm",
    functional.group_norm: "group norm",
    torch.group_norm: "group norm",
    functional.instance_norm: "instance norm",
    torch.instance_norm: "instance norm",
    functional.rms_norm: "RMS norm",
}
# Scaling the input of these by a positive number scales their output.
_HOMOGENEOUS = {functional.relu, torch.relu, Tensor.relu, functional.leaky_relu}


@dataclass(kw_only=True, eq=False)
class LinearCall:
    """A linear layer, applied once.

    Attributes:
        name: Name of the module.
        weight: Its weights.
        bias: Its biases, or None.
        transposed: Whether weights have inputs first, in a transposed convolution.
        groups: Groups of a convolution.
        padded: Whether its input is padded with zeros.
        after: The norm whose output is its input, unchanged.
        uses: How often its output was used.
    """

    name: str
    weight: Tensor
    bias: Tensor | None
    transposed: bool = False
    groups: int = 1
    padded: bool = False
    after: "NormSeen | None" = None
    uses: int = 0


@dataclass(kw_only=True, eq=False)
class NormSeen:
    """A norm, applied once.

    Attributes:
        name: Name of the module.
        kind: Such as "batch norm".
        arguments: Those of a batch norm, by name.
        place: Number of earlier batch norms that used batch statistics; None if it used
            others.
        before: The linear layer whose output is its input, unchanged.
        behind: The same, also if an activation that scales with its input is in
            between.
        uses: How often its output was used.
    """

    name: str
    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    place: int | None = None
    before: LinearCall | None = None
    behind: LinearCall | None = None
    uses: int = 0


Met = LinearCall | NormSeen


class LayerTrace(Listener):
    """Records linear layers and norms of a pass; enter it after other listeners.

    Args:
        model: The model.

    Attributes:
        layers: Linear layers with weights of the model, in order.
        norms: Norms, in order.
        modules: Modules whose weights were recorded.
    """

    def __init__(self, model: nn.Module) -> None:
        self.layers: list[LinearCall] = []
        self.norms: list[NormSeen] = []
        self.modules: set[int] = set()
        self._own = {id(parameter) for parameter in model.parameters()}
        self._names = {id(module): name for name, module in model.named_modules()}
        self._stack: list[tuple[str, nn.Module]] = [("", model)]
        self._made: dict[int, tuple[weakref.ref[Tensor], int, Met, bool]] = {}
        self._taken = 0

    def on_enter(self, module: nn.Module, args: Any) -> None:
        """Keep track of which module of the model runs."""
        name = self._names.get(id(module))
        self._stack.append(self._stack[-1] if name is None else (name, module))

    def on_leave(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Go back to the module that ran it."""
        self._stack.pop()

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function, and record it if it is a layer or a norm."""
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        sources = [self._source(x) for x in given]
        outputs = function(*args, **kwargs)
        told = function not in _HOMOGENEOUS  # uses of their output count instead
        if told and any(isinstance(x, Tensor) for x in tree_leaves(outputs)):
            for met in {id(m): m for m, _ in filter(None, sources)}.values():
                met.uses += 1
        if isinstance(outputs, Tensor) and given:
            self._note(function, args, kwargs, sources[0], outputs)
        return outputs

    def _note(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        source: tuple[Met, bool] | None,
        outputs: Tensor,
    ) -> None:
        met, direct = source or (None, False)
        if func in _HOMOGENEOUS and met is not None:
            self._keep(outputs, met, direct=False)
            return
        if func in _BATCH_NORMS or func in _SAMPLE_NORMS:
            seen = self._norm(func, args, kwargs)
            if isinstance(met, LinearCall):
                seen.behind, seen.before = met, met if direct else None
            self.norms.append(seen)
            self._keep(outputs, seen)
            return
        layer = self._layer(func, args, kwargs)
        if layer is not None:
            layer.after = met if isinstance(met, NormSeen) and direct else None
            self.layers.append(layer)
            self._keep(outputs, layer)

    def _norm(
        self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> NormSeen:
        name = self._stack[-1][0]
        if func in _SAMPLE_NORMS:
            return NormSeen(name=name, kind=_SAMPLE_NORMS[func])
        given = batch_norm_arguments(func, args, kwargs)
        place = None
        if given["training"]:
            place, self._taken = self._taken, self._taken + 1
        return NormSeen(name=name, kind="batch norm", arguments=given, place=place)

    def _layer(
        self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> LinearCall | None:
        if func not in _LINEAR:
            return None
        given: dict[str, Any] = dict(kwargs)
        given.update(zip(("input", "weight", "bias"), args, strict=False))
        name, module = self._stack[-1]
        weight = given["weight"]
        known = isinstance(module, nn.Linear | _ConvNd)
        if not known and id(weight) not in self._own:
            return None  # computed by the model, so not its own weights
        self.modules.add(id(module) if known else id(weight))
        groups = kwargs.get("groups", args[6] if len(args) > 6 else 1)
        padding = kwargs.get("padding", args[4] if len(args) > 4 else 0)
        return LinearCall(
            name=name,
            weight=weight.detach(),
            bias=given.get("bias"),
            transposed=func in _TRANSPOSED,
            groups=1 if func is functional.linear else groups,
            padded=func is not functional.linear and padding not in (0, (0,), (0, 0)),
        )

    def _keep(self, tensor: Tensor, met: Met, direct: bool = True) -> None:
        self._made[id(tensor)] = (weakref.ref(tensor), tensor._version, met, direct)

    def _source(self, tensor: Tensor) -> tuple[Met, bool] | None:
        kept = self._made.get(id(tensor))
        if kept is None or kept[0]() is not tensor or kept[1] != tensor._version:
            return None
        return kept[2:]
