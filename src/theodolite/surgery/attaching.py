"""Add edits to modules, and remove them without a trace."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from theodolite.core import SurgeryError

from .altered import (
    Altered,
    EnterHook,
    LeaveHook,
    ModuleEdit,
    ModuleEdits,
    NoFastPathHook,
    SumEdit,
    altered_class,
)

_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def attach(
    model: nn.Module,
    path: str,
    edit: SumEdit | ModuleEdit,
    extras: Mapping[str, nn.Parameter | nn.Module],
) -> None:
    """Add an edit to a module; register the parameters and norms it uses by name."""
    module = model.get_submodule(path)
    edits = _plan(module, path)
    if isinstance(edit, SumEdit) and not edits.sums:
        _watch(module, edits)  # before adding a norm, which edits call
    for name, extra in extras.items():
        if isinstance(extra, nn.Parameter):
            module.register_parameter(name, extra)
        elif isinstance(module, _CONTAINERS):
            raise SurgeryError(
                f"{describe(path)} runs all its submodules in turn, wanted is one that "
                "can hold another: name a layer inside it"
            )
        else:
            module.add_module(name, extra)
    if isinstance(edit, SumEdit):
        edits.sums.append(edit)
    else:
        edits.visits.append(edit)


def detach(model: nn.Module, path: str, label: str, extras: tuple[str, ...]) -> None:
    """Remove an edit from a module, and the parameters that it added."""
    module = model.get_submodule(path)
    assert isinstance(module, Altered)
    edits = module.surgery_edits
    edits.sums[:] = [each for each in edits.sums if each.label != label]
    edits.visits[:] = [each for each in edits.visits if each.label != label]
    for name in extras:
        delattr(module, name)
    for inner in () if edits.sums else module.modules():
        _drop_hooks(
            inner,
            lambda hook: (
                isinstance(hook, EnterHook | LeaveHook) and hook.edits is edits
            ),
        )
    if not edits.sums and not edits.visits:
        del module.surgery_edits
        setattr(module, "__class__", module.surgery_base)  # noqa: B010 — narrower
        _drop_hooks(module, lambda hook: isinstance(hook, NoFastPathHook))


def replace(model: nn.Module, path: str, new: nn.Module) -> nn.Module:
    """Replace a module, and return the old one.

    The hooks of altered modules around it move to the new one.
    """
    parent, _, name = path.rpartition(".")
    old = model.get_submodule(path)
    for kind in ("_forward_pre_hooks", "_forward_hooks"):
        for key, hook in list(getattr(old, kind).items()):
            if isinstance(hook, EnterHook | LeaveHook):
                _move(kind, key, old, new)
    model.get_submodule(parent)._modules[name] = new
    return old


def keep_off_fast_path(module: nn.Module) -> None:
    """Keep fused kernels of torch from skipping a module."""
    module.register_forward_pre_hook(NoFastPathHook())


def original_class(module: nn.Module) -> type[nn.Module]:
    """Return the class of a module, as it was before surgery."""
    return module.surgery_base if isinstance(module, Altered) else type(module)


def describe(path: str) -> str:
    """Return the text that names a module in messages."""
    return f"module {path!r}" if path else "the model itself"


def learnable_number(model: nn.Module, start: float) -> nn.Parameter:
    """Return a scalar parameter with the dtype and device of the model."""
    like = next((p for p in model.parameters() if p.is_floating_point()), None)
    where = {} if like is None else {"dtype": like.dtype, "device": like.device}
    return nn.Parameter(torch.tensor(float(start), **where))


def free_name(module: nn.Module, stem: str) -> str:
    """Return a name that a module does not use yet."""
    number = 0
    while hasattr(module, f"surgery_{stem}{number or ''}"):
        number += 1
    return f"surgery_{stem}{number or ''}"


def _plan(module: nn.Module, path: str) -> ModuleEdits:
    if isinstance(module, Altered):
        return module.surgery_edits
    _check(module, path)
    module.__class__ = altered_class(type(module))
    edits = ModuleEdits()
    vars(module)["surgery_edits"] = edits
    keep_off_fast_path(module)
    return edits


def _check(module: nn.Module, path: str) -> None:
    """Raise if copies of a module would lose an edit, or its forward was replaced."""
    kind = type(module)
    copies = ("__deepcopy__", "__reduce__", "__reduce_ex__", "__copy__")
    own = [name for name in copies if getattr(kind, name, None) is not
           getattr(nn.Module, name, None)]  # fmt: skip
    if is_parametrized(module):  # torch has seen to their copies
        own = []
    if isinstance(module, torch.jit.ScriptModule) or own:
        raise SurgeryError(
            f"{describe(path)} is a {kind.__name__}, whose copies are made in a manner "
            "of its own, wanted is a plain nn.Module: operate before it is scripted "
            "or traced"
        )
    if "forward" in vars(module):
        raise SurgeryError(
            f"{describe(path)} has its forward set on the object itself, wanted is "
            "that of its class: remove what wraps it, and operate before"
        )


def _watch(module: nn.Module, edits: ModuleEdits) -> None:
    """Count the submodules that run."""
    for path, inner in module.named_modules():
        if inner is not module:
            inner.register_forward_pre_hook(EnterHook(edits, path), with_kwargs=True)
            inner.register_forward_hook(LeaveHook(edits, path), prepend=True)


def _drop_hooks(module: nn.Module, which: Callable[[Any], bool]) -> None:
    for kind in ("_forward_pre_hooks", "_forward_hooks"):
        for key, hook in list(getattr(module, kind).items()):
            if which(hook):
                getattr(module, kind).pop(key)
                getattr(module, f"{kind}_with_kwargs").pop(key, None)


def _move(kind: str, key: Any, old: nn.Module, new: nn.Module) -> None:
    for table in (kind, f"{kind}_with_kwargs"):
        if key in getattr(old, table):
            getattr(new, table)[key] = getattr(old, table).pop(key)
