"""Norm layers: which there are, what they become, and what stands in their place."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from theodolite.core import SurgeryError
from theodolite.surgery.attaching import unaltered
from theodolite.surgery.operation import Operation

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
INSTANCE_NORMS = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
OVER_CHANNELS = (*BATCH_NORMS, *INSTANCE_NORMS, nn.GroupNorm)
NORMS = (*OVER_CHANNELS, nn.LayerNorm, nn.RMSNorm)


class PixelNorm(nn.LayerNorm):
    """A layer norm over the channels, on the second axis, of each pixel."""

    def forward(self, input: Tensor) -> Tensor:
        """Norm a batch."""
        moved = input.movedim(1, -1)
        return super().forward(moved).movedim(-1, 1)


class ChannelAffine(nn.Module):
    """A factor and a shift a channel: what is left of a norm with fixed statistics."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, x: Tensor) -> Tensor:
        """Scale and shift the second axis."""
        shape = (1, -1) + (1,) * (x.ndim - 2)
        return x * self.weight.view(shape) + self.bias.view(shape)

    def extra_repr(self) -> str:
        """Say how many channels."""
        return f"{len(self.weight)}"


class Passed(nn.Identity):
    """What stands where a norm stood; code may still ask for its settings."""


def without(norm: nn.Module) -> nn.Module:
    """Return what stands where a norm stood."""
    made = Passed()
    for name in ("eps", "normalized_shape", "num_features", "num_channels"):
        if hasattr(norm, name):
            setattr(made, name, getattr(norm, name))
    return made


def _group(channels: int, groups: int, eps: float) -> nn.Module:
    count = max(g for g in range(1, min(groups, channels) + 1) if channels % g == 0)
    return nn.GroupNorm(count, channels, eps=eps)


Maker = Callable[[int, int, float], nn.Module]
MAKERS: dict[str, Maker] = {
    "group": _group,
    "layer": lambda channels, _, eps: nn.GroupNorm(1, channels, eps=eps),
    "pixel": lambda channels, _, eps: PixelNorm(channels, eps=eps),
}


def norm_modules(operation: Operation) -> dict[str, nn.Module]:
    """Return the submodules that norm, by path, in order."""
    found: dict[str, nn.Module] = {}
    for norm in operation.anatomy.norms:
        if norm.module and "<" not in norm.module:
            found[norm.module] = operation.model.get_submodule(norm.module)
    return found


def check_norm(operation: Operation, path: str) -> None:
    """Refuse a module that does more than norm, or norms something else too.

    Raises:
        SurgeryError: It holds submodules, activations or several norms.
    """
    module = operation.model.get_submodule(path)
    if unaltered(module) in (*NORMS, PixelNorm):
        return
    recording = operation.transcript.recording
    visits = operation.transcript.visits_of(path)
    norms = [n for n in operation.anatomy.norms if n.module == path]
    bends = [a for a in operation.anatomy.activations if a.module == path]
    inner = [v for v in recording.visits if v.parent in visits]
    wide = any(parameter.ndim > 1 for parameter in module.parameters())
    if len(norms) != len(visits) or bends or inner or wide:
        raise SurgeryError(
            f"{path!r} is a {unaltered(module).__name__}, which does more than norm, "
            "wanted is a layer that does nothing else: name others by which=…"
        )


def channels_of(module: nn.Module, path: str) -> int:
    """Return the channels of a norm over the second axis.

    Raises:
        SurgeryError: It is of another kind.
    """
    kind = unaltered(module)
    if kind in (*BATCH_NORMS, *INSTANCE_NORMS):
        return int(module.num_features)  # pyright: ignore
    if kind is nn.GroupNorm:
        return int(module.num_channels)  # pyright: ignore
    raise SurgeryError(
        f"{path!r} is a {kind.__name__}, wanted is one of torch's batch, group or "
        "instance norms, which norm channels on the second axis: name others by which=…"
    )


def with_affine_of(new: nn.Module, old: nn.Module) -> nn.Module:
    """Give a norm the factors, shifts, type, place and mode of another."""
    held = [p for p in (*old.parameters(), *old.buffers()) if p.is_floating_point()]
    if held:
        new = new.to(device=held[0].device, dtype=held[0].dtype)
    for name in ("weight", "bias"):
        source, target = getattr(old, name, None), getattr(new, name, None)
        if source is None:
            new.register_parameter(name, None)
        elif target is not None:
            with torch.no_grad():
                target.copy_(source)
            target.requires_grad_(source.requires_grad)
    return new.train(old.training)


def fixed_affine(norm: nn.Module, path: str) -> tuple[Tensor, Tensor]:
    r"""Return factor and shift of a batch norm in eval mode, in float64.

    $\gamma (x - \mu) / \sqrt{\sigma^2 + \epsilon} + \beta = a x + b$.
    """
    if unaltered(norm) not in BATCH_NORMS:
        raise SurgeryError(
            f"{path!r} is a {unaltered(norm).__name__}, wanted is a batch norm, the "
            "one kind that is linear in eval mode: name others by which=…"
        )
    mean, var = norm.running_mean, norm.running_var  # pyright: ignore
    if not isinstance(mean, Tensor) or not isinstance(var, Tensor):
        raise SurgeryError(
            f"{path!r} keeps no running statistics, wanted are some that it would use "
            "in eval mode: train it with track_running_stats=True"
        )
    factor = 1 / torch.sqrt(var.double() + float(norm.eps))  # pyright: ignore
    if isinstance(norm.weight, Tensor):
        factor = factor * norm.weight.detach().double()
    shift = -mean.double() * factor
    if isinstance(norm.bias, Tensor):
        shift = shift + norm.bias.detach().double()
    return factor, shift


def rounded(module: nn.Module) -> str:
    """Name a layer by its class and main setting."""
    kind = unaltered(module)
    if kind is nn.GroupNorm:
        return f"GroupNorm({module.num_groups}, {module.num_channels})"  # pyright: ignore
    if kind in BATCH_NORMS:
        return f"{kind.__name__}({module.num_features})"  # pyright: ignore
    return kind.__name__
