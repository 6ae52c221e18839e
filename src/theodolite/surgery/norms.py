"""Norm layers: list them, replace them, move them."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from theodolite.anatomy import Addition
from theodolite.core import SurgeryError
from theodolite.instruments import Batch, measuring

from .altered import RESULT, ModuleEdit, SumEdit
from .attaching import describe, free_name, original_class
from .edits import NormEdit
from .operation import Operation, Which, selected
from .places import entry_module, place_of_sum, require_one_run
from .result import Result


@measuring()
def move_norms(
    model: nn.Module,
    batch: Batch,
    *,
    to: Literal["pre", "post"],
    which: Which = None,
) -> Result:
    """Move norms, x + f(norm x) → norm(x + f(x)) with ``"post"``, and back with "pre".

    The norm layer moves with its parameters and buffers; an identity takes its old
    place.

    Args:
        model: Any network that anatomy understands; not changed.
        batch: Batch to run it on, in any form that instruments accept.
        to: After the sum (``"post"``), or before the branch (``"pre"``).
        which: Additions by number, or modules; by default all with a norm to move.

    Raises:
        SurgeryError: No norm stands where it could be moved from.
    """
    operation = Operation("move_norms", model, batch)
    additions = operation.anatomy.additions
    source = "pre" if to == "post" else "post"
    for number in selected(additions, which):
        paths = [
            norm.module
            for norm in operation.anatomy.norms
            if norm.addition == number and norm.placement == source
        ]
        module = additions[number].module
        try:
            path = _one(paths, module, source)
            check_norm(operation, path)
            move = _behind if to == "post" else _before
            move(operation, path, additions[number])
        except SurgeryError as error:
            if which is not None:
                raise
            operation.leave(module, "norm", source, error)
    return operation.finish(
        none="the network has no residual addition, wanted is one with a norm to move"
    )


def _one(paths: list[str], module: str, source: str) -> str:
    if len(set(paths)) != 1 or not paths[0] or "<" in paths[0]:
        count = f"{len(set(paths))} norms" if all(paths) else "norms written by hand"
        raise SurgeryError(
            f"the addition in {describe(module)} has {count} of placement {source!r}, "
            "wanted is one that is a layer: name additions that have it by which=…"
        )
    return paths[0]


def _behind(operation: Operation, path: str, addition: Addition) -> None:
    """Move a norm to after a sum."""
    place = require_one_run(operation, place_of_sum(operation.trace, addition))
    name = free_name(operation.model.get_submodule(place.path), "norm")
    _check_shape(operation, path, addition)
    norm = operation.replace(path, removed_norm(operation.model.get_submodule(path)))
    edit = SumEdit(
        label=operation.label(),
        ordinal=place.ordinal,
        place=RESULT,
        edit=NormEdit(name),
        after=place.after,
    )
    operation.attach(place.path, edit, {name: norm})
    operation.note(
        path, "norm", "pre", f"post, behind the sum of {describe(place.path)}"
    )


def _before(operation: Operation, path: str, addition: Addition) -> None:
    """Move a norm to the start of a branch."""
    if len(addition.branches) != 1:
        raise SurgeryError(
            f"the addition in {describe(addition.module)} has {len(addition.branches)} "
            "branches, wanted is one to put the norm before: name others by which=…"
        )
    entrance = entry_module(operation.trace, addition.branches[0])
    name = free_name(operation.model.get_submodule(entrance.path), "norm")
    edit = ModuleEdit(
        label=operation.label(), before=True, keys=entrance.keys, edit=NormEdit(name)
    )
    norm = operation.replace(path, removed_norm(operation.model.get_submodule(path)))
    operation.attach(entrance.path, edit, {name: norm})
    operation.note(path, "norm", "post", f"pre, before {entrance.path!r}")


def _check_shape(operation: Operation, path: str, addition: Addition) -> None:
    """Raise if the norm's channels differ from those of the sum."""
    trace = operation.trace
    values = trace.recording.values
    given = trace.given[trace.visits_of(path)[0]].get(0)
    came = values[given].shape if given is not None else ()
    goes = values[addition.output].shape
    over_channels = original_class(operation.model.get_submodule(path)) in OVER_CHANNELS
    axis = 1 if over_channels else -1
    if len(came) != len(goes) or came[axis] != goes[axis]:
        raise SurgeryError(
            f"the norm {path!r} is for shape {came} and the sum has {goes}, wanted are "
            "the same channels: name other additions by which=…"
        )


BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
INSTANCE_NORMS = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
OVER_CHANNELS = (*BATCH_NORMS, *INSTANCE_NORMS, nn.GroupNorm)
NORMS = (*OVER_CHANNELS, nn.LayerNorm, nn.RMSNorm)


class PixelNorm(nn.LayerNorm):
    """A layer norm over the channels, on the second axis, of each pixel."""

    def forward(self, input: Tensor) -> Tensor:
        """Return a batch, normalised."""
        moved = input.movedim(1, -1)
        return super().forward(moved).movedim(-1, 1)


class ChannelAffine(nn.Module):
    """A factor and a shift per channel, left over from a norm with fixed statistics."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def forward(self, x: Tensor) -> Tensor:
        """Scale and shift the second axis."""
        shape = (1, -1) + (1,) * (x.ndim - 2)
        return x * self.weight.view(shape) + self.bias.view(shape)

    def extra_repr(self) -> str:
        """Return the number of channels as text."""
        return f"{len(self.weight)}"


class RemovedNorm(nn.Identity):
    """An identity in place of a removed norm; it keeps the settings of the norm."""


def removed_norm(norm: nn.Module) -> nn.Module:
    """Return an identity that keeps the settings of the norm it replaces."""
    made = RemovedNorm()
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
    """Return the submodules that normalise, by path, in order."""
    modules: dict[str, nn.Module] = {}
    for norm in operation.anatomy.norms:
        if norm.module and "<" not in norm.module:
            modules[norm.module] = operation.model.get_submodule(norm.module)
    return modules


def check_norm(operation: Operation, path: str) -> None:
    """Raise if a module does anything besides one norm in each run."""
    module = operation.model.get_submodule(path)
    if original_class(module) in (*NORMS, PixelNorm):
        return
    recording = operation.trace.recording
    visits = operation.trace.visits_of(path)
    norms = [n for n in operation.anatomy.norms if n.module == path]
    bends = [a for a in operation.anatomy.activations if a.module == path]
    inner = [v for v in recording.visits if v.parent in visits]
    wide = any(parameter.ndim > 1 for parameter in module.parameters())
    if len(norms) != len(visits) or bends or inner or wide:
        raise SurgeryError(
            f"{path!r} is a {original_class(module).__name__}, which does more than "
            "norm, wanted is a layer that does nothing else: name others by which=…"
        )


def channels_of(module: nn.Module, path: str) -> int:
    """Return the channels of a norm over the second axis; raise for other norms."""
    kind = original_class(module)
    if kind in (*BATCH_NORMS, *INSTANCE_NORMS):
        return int(module.num_features)  # pyright: ignore
    if kind is nn.GroupNorm:
        return int(module.num_channels)  # pyright: ignore
    raise SurgeryError(
        f"{path!r} is a {kind.__name__}, wanted is one of torch's batch, group or "
        "instance norms, which norm channels on the second axis: name others by which=…"
    )


def with_affine_of(new: nn.Module, old: nn.Module) -> nn.Module:
    """Copy weight, bias, dtype, device and mode of one norm to another."""
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
    if original_class(norm) not in BATCH_NORMS:
        raise SurgeryError(
            f"{path!r} is a {original_class(norm).__name__}, wanted is a batch norm, "
            "the one kind that is linear in eval mode: name others by which=…"
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


def short_name(module: nn.Module) -> str:
    """Return the class of a layer with its main setting."""
    kind = original_class(module)
    if kind is nn.GroupNorm:
        return f"GroupNorm({module.num_groups}, {module.num_channels})"  # pyright: ignore
    if kind in BATCH_NORMS:
        return f"{kind.__name__}({module.num_features})"  # pyright: ignore
    return kind.__name__
