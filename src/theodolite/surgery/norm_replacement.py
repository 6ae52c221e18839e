"""Replace norms by other kinds, or fold them into the layer before."""

import copy
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from theodolite.core import ConfigError, SurgeryError, as_integer
from theodolite.instruments import Batch, measuring

from .attaching import describe, original_class
from .norms import (
    BATCH_NORMS,
    MAKERS,
    ChannelAffine,
    channels_of,
    check_norm,
    fixed_affine,
    norm_modules,
    removed_norm,
    short_name,
    with_affine_of,
)
from .operation import Operation
from .result import Result

Paths = str | Sequence[str] | None
Kind = Literal["group", "layer", "pixel", "weight", "none"]
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_LAYERS = (nn.Linear, *_CONVOLUTIONS, *_TRANSPOSED)


@measuring()
def change_norms(
    model: nn.Module,
    batch: Batch,
    *,
    to: Kind,
    groups: int = 32,
    which: Paths = None,
) -> Result:
    """Replace batch, group and instance norms by norms of another kind.

    Factors and shifts per channel are kept, statistics are not, so outputs change; with
    ``"weight"`` batch norms are folded away and the weights before them normalised,
    which does not change outputs in eval mode.

    Args:
        model: Any network that anatomy understands; not changed.
        batch: Batch to run it on, in any form that instruments accept.
        to: ``"group"``; ``"layer"``, over all channels and pixels of a sample;
            ``"pixel"``, over the channels of each pixel; ``"weight"``; or ``"none"``,
            an identity.
        groups: Largest number of groups of group norms; if it does not divide the
            channels, the next smaller number that does.
        which: Paths of norms; by default all that can be changed.

    Raises:
        SurgeryError: There is no such norm.

    References:
        Wu & He (2018), Group Normalization, sec. 4: 32 groups.
    """
    if to not in (*MAKERS, "weight", "none"):
        known = ", ".join(repr(name) for name in (*MAKERS, "weight", "none"))
        raise ConfigError(f"to is {to!r}, wanted is one of {known}")
    as_integer("groups", groups, 1)
    if to == "weight":
        return _fold("change_norms", model, batch, which, normalised=True)
    operation = Operation("change_norms", model, batch)
    for path, norm in _chosen(operation, which).items():
        try:
            check_norm(operation, path)
            if to == "none":
                new = removed_norm(norm)
            else:
                eps = float(getattr(norm, "eps", 1e-5))
                with torch.device("cpu"):  # whatever the user's default is
                    made = MAKERS[to](channels_of(norm, path), groups, eps)
                new = with_affine_of(made, norm)
        except SurgeryError as error:
            if which is not None:
                raise
            operation.leave(path, "norm", short_name(norm), error)
            continue
        operation.replace(path, new)
        operation.note(path, "norm", short_name(norm), short_name(new))
    return operation.finish(none=no_norms_message(operation))


@measuring()
def fold_norms(model: nn.Module, batch: Batch, *, which: Paths = None) -> Result:
    """Fold batch norms, with their running statistics, into the layer before.

    A norm that is the only reader of a layer is folded into that layer's weights and
    bias; any other becomes a factor and a shift per channel. Outputs in eval mode do
    not change, which is checked; the original's mode is kept.

    Args:
        model: Any network that anatomy understands; not changed.
        batch: Batch to run it on, in any form that instruments accept.
        which: Paths of batch norms; by default all.

    Raises:
        SurgeryError: There is no batch norm, or one without running statistics.
    """
    return _fold("fold_norms", model, batch, which, normalised=False)


def _fold(
    name: str, model: nn.Module, batch: Batch, which: Paths, *, normalised: bool
) -> Result:
    operation = Operation(name, model, batch, evaluate=True)
    for path, norm in _chosen(operation, which).items():
        if original_class(norm) not in BATCH_NORMS and which is None:
            reason = f"{short_name(norm)} is not linear in eval mode"
            operation.leave(path, "norm", short_name(norm), reason)
            continue
        factor, shift = fixed_affine(norm, path)
        layer = _layer_before(operation, path)
        if layer is not None:
            _into_layer(operation, path, layer, factor, shift, normalised)
        else:
            operation.replace(path, _affine(norm, factor, shift))
            operation.note(path, "norm", short_name(norm), "factor and shift")
    return operation.finish(unchanged=True, none=no_norms_message(operation))


def _affine(norm: nn.Module, factor: Tensor, shift: Tensor) -> nn.Module:
    """Return the factor and shift that replace a batch norm no layer can absorb."""
    kept = norm.running_var
    assert isinstance(kept, Tensor)
    held = norm.weight if isinstance(norm.weight, Tensor) else kept
    made = ChannelAffine(factor.to(held), shift.to(held))
    return made.requires_grad_(held.requires_grad or held is kept)


def _into_layer(
    operation: Operation,
    path: str,
    layer: str,
    factor: Tensor,
    shift: Tensor,
    normalised: bool,
) -> None:
    old = operation.model.get_submodule(layer)
    norm = operation.model.get_submodule(path)
    new = folded(old, factor, shift)
    if normalised:
        _refuse_zeros(new, layer)
        new = weight_norm(new, dim=1 if original_class(old) in _TRANSPOSED else 0)
    operation.replace(layer, new)
    operation.replace(path, removed_norm(norm))
    into = "weight norm of" if normalised else "folded into"
    operation.note(path, "norm", short_name(norm), f"{into} {layer}")


def _refuse_zeros(layer: nn.Module, path: str) -> None:
    """Raise if a channel of the weights is zero, so that it has no direction."""
    weight = layer.weight
    assert isinstance(weight, Tensor)
    axis = 1 if original_class(layer) in _TRANSPOSED else 0
    sizes = weight.detach().movedim(axis, 0).flatten(1).norm(dim=1)
    if bool((sizes == 0).any()):
        raise SurgeryError(
            f"the weights of {path!r} with their norm folded in have a channel of "
            "zeros, which no weight norm can hold: leave its norm out by which=…"
        )


def folded(layer: nn.Module, factor: Tensor, shift: Tensor) -> nn.Module:
    r"""Return a layer with a factor and a shift per channel folded into its weights.

    $a (W x + c) + b = (a W) x + (a c + b)$, computed in float64.
    """
    new = copy.deepcopy(layer)
    weight = new.weight
    assert isinstance(weight, nn.Parameter)
    by = factor
    if original_class(layer) in _TRANSPOSED:
        # Of a transposed convolution, outputs are on the second axis, group by group.
        groups = int(layer.groups)  # pyright: ignore
        per = weight.shape[1]
        ins = weight.shape[0] // groups
        by = factor.view(groups, 1, per).expand(groups, ins, per).reshape(-1, per)
        by = by.view(*by.shape, *(1,) * (weight.ndim - 2))
    else:
        by = by.view(-1, *(1,) * (weight.ndim - 1))
    with torch.no_grad():
        weight.copy_(weight.double() * by)
        bias = new.bias
        old = bias.detach().double() if isinstance(bias, Tensor) else 0.0
        made = (factor * old + shift).to(weight)
        if isinstance(bias, nn.Parameter):
            bias.copy_(made)
        else:
            made_here = nn.Parameter(made, requires_grad=weight.requires_grad)
            new.register_parameter("bias", made_here)
    return new


def _layer_before(operation: Operation, path: str) -> str | None:
    """Return the layer whose output only this norm reads."""
    trace = operation.trace
    recording = trace.recording
    visits = trace.visits_of(path)
    if len(visits) != 1:
        return None
    given = trace.given[visits[0]].get(0)
    for visit in recording.visits:
        if trace.returned.get(visit.index) != (given,) or not visit.module:
            continue
        if "<" in visit.module or len(trace.visits_of(visit.module)) != 1:
            continue
        layer = operation.model.get_submodule(visit.module)
        if original_class(layer) not in _LAYERS or not _owns(operation, layer):
            continue
        readers = {c.index for c in recording.calls if given in c.inputs}
        inside = recording.visits[visits[0]]
        if all(inside.first <= c < inside.stop for c in readers):
            return visit.module if given not in recording.outputs else None
    return None


def _owns(operation: Operation, layer: nn.Module) -> bool:
    """Return whether no other module holds a layer's weights."""
    weights = {id(parameter) for parameter in layer.parameters()}
    holders = [
        module
        for module in operation.model.modules()
        if any(id(p) in weights for p in module.parameters(recurse=False))
    ]
    return len(holders) == 1


def _chosen(operation: Operation, which: Paths) -> dict[str, nn.Module]:
    known = norm_modules(operation)
    if which is None:
        return known
    asked = [which] if isinstance(which, str) else list(which)
    for path in asked:
        if path not in known:
            names = ", ".join(known) or "none"
            raise SurgeryError(
                f"which={path!r} is no norm layer of the network, wanted is one of "
                f"{names if len(names) < 200 else names[:197] + '…'}"
            )
    return {path: known[path] for path in asked}


def no_norms_message(operation: Operation) -> str:
    """Return the message that a network has no norm layer, and what it has."""
    kinds = [f"{n.kind} in {describe(n.module)}" for n in operation.anatomy.norms]
    norms = ", ".join(dict.fromkeys(kinds)) or "none at all"
    return (
        f"the network has no norm layer that can be changed (norms: {norms}), wanted "
        "is a submodule such as nn.BatchNorm2d"
    )
