"""Set normalisation layers to a given norm mode."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

from theodolite.core import Exclusive, MeasurementError, NormMode

from ..distributed.processes import Team
from .full_statistics import Moments, frozen_statistics

Norm = _BatchNorm | _InstanceNorm


def apply_norm_mode(
    model: nn.Module,
    mode: NormMode,
    forward: Callable[[], object],
    team: Team | None = None,
    *,
    hold: bool = False,
) -> None:
    """Set every layer with running statistics for one batch.

    Must be called inside ``preserve``. Only those layers change mode, and under
    ``EVAL`` dropout; all others stay as found. ``FULL`` is ``BATCH`` here, since one
    batch is all the data given; under ``AS_IS`` nothing changes.

    Args:
        model: The model to set.
        mode: Which statistics to use.
        forward: Runs the model once on the batch; called under ``FROZEN`` or ``hold``.
        team: Processes whose samples also count in the statistics.
        hold: Whether to hold statistics of the batch constant, as ``FROZEN`` does, in
            the layers that take them.
    """
    settle_dropout(model, mode)
    set_norm_layers(model, mode)
    if mode is NormMode.FROZEN or (hold and mode is not NormMode.EVAL):
        for norm in norm_layers(model):
            if norm.training:
                _check_layer(norm, NormMode.FROZEN)

        def run(_: object) -> Tensor:
            forward()
            return torch.empty(0)

        freeze_norm_layers(frozen_statistics(norm_layers(model), [None], run, team))


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
        _check_layer(norm, mode)
        if mode is not NormMode.AS_IS:
            norm.train(mode is not NormMode.EVAL)


def freeze_norm_layers(statistics: Mapping[nn.Module, Moments]) -> None:
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


def _check_layer(norm: Norm, mode: NormMode) -> None:
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
