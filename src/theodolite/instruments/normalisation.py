"""Put normalisation layers into the mode that a measurement names."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

from theodolite.core import MeasurementError, NormMode


def apply_norm_mode(
    model: nn.Module, mode: NormMode, forward: Callable[[], object]
) -> None:
    """Set every layer with running statistics for one batch.

    Must be called inside ``preserve``. Only those layers change mode; all others stay
    as found. ``FULL`` is ``BATCH`` here, since one batch is all the data given.

    Args:
        model: The model to set.
        mode: Which statistics to use.
        forward: Runs the model once on the batch; called under ``FROZEN`` only.
    """
    _refuse_dropout(model)
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm | _InstanceNorm)]
    if mode in (NormMode.BATCH, NormMode.FULL, NormMode.FROZEN):
        for norm in norms:
            norm.train()
    if mode is NormMode.FROZEN:
        _freeze(norms, forward)
    if mode is NormMode.EVAL:
        for norm in norms:
            if isinstance(norm, _BatchNorm) and norm.running_mean is None:
                raise MeasurementError(
                    f"{type(norm).__name__} keeps no running statistics, which norm "
                    "mode 'eval' wants: use 'batch', 'full' or 'frozen'"
                )
            norm.eval()


def _freeze(norms: list[_BatchNorm | _InstanceNorm], forward: Callable) -> None:
    """Hold each layer's statistics of this batch constant."""
    if any(isinstance(norm, _InstanceNorm) for norm in norms):
        raise MeasurementError(
            "norm mode 'frozen' holds batch statistics, and InstanceNorm has its own "
            "for each sample: use 'batch' or 'eval'"
        )
    found: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def record(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if module in found:
            raise MeasurementError(
                f"{type(module).__name__} is applied more than once a pass, so it has "
                "no one set of statistics to freeze: use 'batch' or 'eval'"
            )
        x = inputs[0].detach()
        axes = [axis for axis in range(x.ndim) if axis != 1]
        found[module] = x.mean(axes), x.var(axes, correction=0)

    handles = [norm.register_forward_pre_hook(record) for norm in norms]
    with torch.no_grad():
        forward()
    for handle in handles:
        handle.remove()
    for norm, (mean, variance) in found.items():
        norm._buffers["running_mean"] = mean
        norm._buffers["running_var"] = variance
        norm.eval()


def _refuse_dropout(model: nn.Module) -> None:
    for name, module in model.named_modules():
        if isinstance(module, _DropoutNd) and module.training and module.p > 0:
            raise MeasurementError(
                f"dropout {name!r} is active, so the loss is random: call eval() on "
                "it, or set its p to 0"
            )
