"""Normalisation layers in a pass: which statistics they use.

Layers are set to a norm mode. Calls of batch norm that use batch statistics are
intercepted and replaced; this works on the function, not on modules, so that subclasses
with a built-in activation, functional calls and layers applied twice are all seen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.overrides import _get_current_function_mode

from theodolite.core import Exclusive, MeasurementError, NormMode

from ..calls.listening import Listener
from ..differentiate.batch_norm_twice import (
    BATCH_NORMS,
    batch_norm,
    batch_norm_arguments,
    batch_norm_twice,
)
from ..differentiate.model_backward import is_transformed
from ..differentiate.twice import Replacements

Norm = _BatchNorm | _InstanceNorm


def norm_layers(model: nn.Module) -> list[Norm]:
    """List the layers whose statistics depend on the mode."""
    return [m for m in model.modules() if isinstance(m, _BatchNorm | _InstanceNorm)]


def norm_mode_of(model: nn.Module, given: NormMode | str | None) -> NormMode:
    """Return the given norm mode; ``as_is`` if none is given and it does not matter.

    Raises:
        MeasurementError: None is given, and a batch norm is in train mode.
    """
    if given is not None:
        return NormMode(given)
    with Exclusive():  # another thread that has the model open sets its modes
        training = [norm for norm in norm_layers(model) if norm.training]
    for norm in training:
        if isinstance(norm, _BatchNorm) or norm.running_mean is not None:
            raise MeasurementError(
                f"a {type(norm).__name__} is in train mode, so its statistics have to "
                "be chosen: pass norm_mode='batch', 'full', 'frozen', 'eval' or "
                "'as_is', or call model.eval()"
            )
    return NormMode.AS_IS


def norm_layers_as_is(model: nn.Module, mode: NormMode) -> dict[str, tuple[str, ...]]:
    """Return the names of norm layers in train mode and in eval mode, for readings.

    Empty without norm layers, and in modes other than ``AS_IS``, which set them all.
    """
    if mode is not NormMode.AS_IS:
        return {}
    with Exclusive():  # another thread that has it open sets these modes
        named = [
            (name, module.training)
            for name, module in model.named_modules()
            if isinstance(module, _BatchNorm | _InstanceNorm)
        ]
    if not named:
        return {}
    return {
        "train": tuple(name for name, training in named if training),
        "eval": tuple(name for name, training in named if not training),
    }


def set_norm_layers(model: nn.Module, mode: NormMode) -> None:
    """Put norm layers into train mode, or into eval mode under ``EVAL``.

    Under ``FROZEN`` their statistics are still to be measured, in train mode; under
    ``AS_IS`` each keeps the mode it is in.
    """
    for norm in norm_layers(model):
        check_layer(norm, mode)
        if mode is not NormMode.AS_IS:
            norm.train(mode is not NormMode.EVAL)


def freeze_norm_layers(statistics: Mapping[nn.Module, Any]) -> None:
    """Hold the statistics of each layer constant."""
    for norm, moments in statistics.items():
        norm._buffers["running_mean"] = moments.mean
        norm._buffers["running_var"] = moments.variance
        norm.eval()


def settle_dropout(model: nn.Module, mode: NormMode) -> None:
    """Switch dropout off under ``EVAL``, as at inference; refuse it elsewhere.

    Only where the model is left as found on the way out.
    """
    if mode is not NormMode.EVAL:
        return refuse_dropout(model)
    for module in model.modules():
        if isinstance(module, _DropoutNd):
            module.train(False)
    return None


def refuse_dropout(model: nn.Module) -> None:
    """Refuse dropout that is switched on, by its name."""
    for name, module in model.named_modules():
        if isinstance(module, _DropoutNd) and module.training and module.p > 0:
            raise MeasurementError(
                f"dropout {name!r} is active, so the loss is random: call eval() on "
                "it, take norm mode 'eval', or fix the masks where randomness='fixed' "
                "is an argument"
            )


def check_layer(norm: Norm, mode: NormMode) -> None:
    """Refuse a layer that has no statistics in a mode."""
    if isinstance(norm, nn.SyncBatchNorm):
        _check_sync(norm)
    if isinstance(norm, _BatchNorm) and norm.running_mean is None:
        if mode is NormMode.EVAL:
            raise MeasurementError(
                f"{type(norm).__name__} keeps no running statistics, which norm "
                "mode 'eval' wants: use 'batch', 'full' or 'frozen'"
            )
    if isinstance(norm, _InstanceNorm) and norm.track_running_stats:
        if mode is NormMode.FROZEN:
            raise MeasurementError(
                "norm mode 'frozen' holds batch statistics, and InstanceNorm has its "
                "own for each sample: use 'batch' or 'eval'"
            )


def _check_sync(norm: nn.SyncBatchNorm) -> None:
    spread = torch.distributed.is_available() and torch.distributed.is_initialized()
    if spread and torch.distributed.get_world_size(norm.process_group) > 1:
        raise MeasurementError(
            "SyncBatchNorm has no second derivative across processes: replace it with "
            "BatchNorm, whose statistics norm mode 'full' takes over all ranks of a "
            "team, or measure in one process"
        )


@dataclass(frozen=True, kw_only=True)
class NormCall:
    """One call of batch norm in train mode.

    Attributes:
        place: Number of earlier calls in this pass.
        x: Its input, channels on axis 1.
        weight: Scale of each channel, or None.
        bias: Shift of each channel, or None.
        eps: Number added to variances.
    """

    place: int
    x: Tensor
    weight: Tensor | None
    bias: Tensor | None
    eps: float

    def by(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Normalise by given statistics; differentiate through them if possible."""
        shape = [-1 if axis == 1 else 1 for axis in range(self.x.ndim)]
        scale = (variance + self.eps).rsqrt()
        out = (self.x - mean.reshape(shape)) * scale.reshape(shape)
        if self.weight is not None:
            out = out * self.weight.reshape(shape)
        if self.bias is not None:
            out = out + self.bias.reshape(shape)
        return out

    def by_own(self) -> Tensor:
        """Normalise by the input's own statistics, and differentiate through them."""
        return batch_norm_twice(self.x, self.weight, self.bias, self.eps)


class BatchNormCalls(Listener):
    """Pass every call of batch norm in train mode to a function.

    If such listeners are nested, the innermost one gets the calls. Directly inside of
    :class:`Replacements`, which sees all calls anyway, it lets that pass on the norms.

    Args:
        act: Returns the output of a call.

    Attributes:
        calls: Number of calls so far.
        transformed: Whether any call was inside a torch transform such as ``jvp``.
    """

    def __init__(self, act: Callable[[NormCall], Tensor]) -> None:
        self._act = act
        self.calls, self.transformed = 0, False
        self._host: Replacements | None = None

    def __enter__(self) -> Self:
        """Start to listen."""
        innermost: Any = _get_current_function_mode()
        if not isinstance(innermost, Replacements):
            return super().__enter__()
        self._host, self._before = innermost, innermost.batch_norms
        innermost.batch_norms = self.on_function
        return self

    def __exit__(self, *raised: Any) -> None:
        """Stop listening."""
        if self._host is None:
            super().__exit__(*raised)
        else:
            self._host.batch_norms = self._before

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function, or let a batch norm be computed."""
        if function not in BATCH_NORMS:
            return function(*args, **kwargs)
        given = batch_norm_arguments(function, args, kwargs)
        x, weight = given["input"], given["weight"]
        if not given["training"] or not _fit(x, weight):
            if self._host is not None:
                return batch_norm(function, args, kwargs)
            return function(*args, **kwargs)
        place, self.calls = self.calls, self.calls + 1
        self.transformed = self.transformed or is_transformed()
        # For inputs in half precision torch computes statistics in the weight's type.
        wide = x if weight is None else x.to(weight.dtype)
        call = NormCall(
            place=place, x=wide, weight=weight, bias=given["bias"], eps=given["eps"]
        )
        return self._act(call).to(x.dtype)


def _fit(x: Tensor, weight: Tensor | None) -> bool:
    """Return whether torch accepts an input and a weight together."""
    half = x.dtype in (torch.float16, torch.bfloat16)
    return weight is None or weight.dtype == x.dtype or half


def own_statistics(call: NormCall) -> Tensor:
    """Normalise an input by its own statistics, even with one value per channel."""
    _refuse_fewer(call, 1)
    return call.by_own()


def batch_statistics(call: NormCall) -> Tensor:
    """Normalise a batch by its own statistics; refuse one value per channel."""
    _refuse_fewer(call, 2)
    return call.by_own()


def plain_statistics(call: NormCall) -> Tensor:
    """Do the same by torch's own operator, whose backward passes can be batched."""
    _refuse_fewer(call, 2)
    given = call.x, call.weight, call.bias, None, None, True, 0.0, call.eps, False
    return batch_norm(torch.batch_norm, given, {})


def _refuse_fewer(call: NormCall, values: int) -> None:
    if call.x.numel() < values * call.x.shape[1]:
        few = "one" if call.x.numel() else "no"
        raise MeasurementError(
            f"batch norm got an input of shape {tuple(call.x.shape)}, {few} value a "
            "channel, which has no statistics: pass more samples a batch"
        )
