"""The modes of normalisation layers: which statistics they use in a pass."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from theodolite.core import Exclusive, MeasurementError, NormMode

from ..model.reachable_state import Norm, norm_layers


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


def set_norm_layers(norms: Iterable[Norm], mode: NormMode) -> None:
    """Put norm layers into train mode, or into eval mode under ``EVAL``.

    Under ``FROZEN`` their statistics are still to be measured, in train mode; under
    ``AS_IS`` each keeps the mode it is in.
    """
    for norm in norms:
        check_layer(norm, mode)
        if mode is not NormMode.AS_IS:
            norm.train(mode is not NormMode.EVAL)


def freeze_norm_layers(statistics: Mapping[nn.Module, Any]) -> None:
    """Hold the statistics of each layer constant."""
    for norm, moments in statistics.items():
        norm._buffers["running_mean"] = moments.mean
        norm._buffers["running_var"] = moments.variance
        norm.eval()


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
