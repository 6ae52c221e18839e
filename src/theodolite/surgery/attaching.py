"""Put edits on modules, and take them off without a trace."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from theodolite.core import SurgeryError
from theodolite.surgery.altered import (
    Altered,
    Enter,
    Leave,
    Mark,
    Plan,
    SumEdit,
    VisitEdit,
    altered_kind,
)
from theodolite.surgery.settings import named

_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def attach(
    model: nn.Module,
    path: str,
    edit: SumEdit | VisitEdit,
    extras: Mapping[str, nn.Parameter | nn.Module],
) -> None:
    """Put an edit on a module.

    Args:
        model: The model.
        path: Of the module.
        edit: The edit.
        extras: Parameters and norms that it uses, registered under these names.
    """
    module = model.get_submodule(path)
    plan = _plan(module, path)
    if isinstance(edit, SumEdit) and not plan.sums:
        _watch(module, plan)  # before a norm moves in, which edits run by themselves
    for name, extra in extras.items():
        if isinstance(extra, nn.Parameter):
            module.register_parameter(name, extra)
        elif isinstance(module, _CONTAINERS):
            raise SurgeryError(
                f"{named(path)} runs all its submodules in turn, wanted is one that "
                "can hold another: name a layer inside it"
            )
        else:
            module.add_module(name, extra)
    if isinstance(edit, SumEdit):
        plan.sums.append(edit)
    else:
        plan.visits.append(edit)


def detach(model: nn.Module, path: str, label: str, extras: tuple[str, ...]) -> None:
    """Take an edit off a module, and all that came with it."""
    module = model.get_submodule(path)
    assert isinstance(module, Altered)
    plan = module.surgery_plan
    plan.sums[:] = [each for each in plan.sums if each.label != label]
    plan.visits[:] = [each for each in plan.visits if each.label != label]
    for name in extras:
        delattr(module, name)
    if not plan.sums:
        _unwatch(module, plan)
    if not plan.sums and not plan.visits:
        del module.surgery_plan
        setattr(module, "__class__", module.surgery_base)  # noqa: B010 — narrower
        _drop_hooks(module, lambda hook: isinstance(hook, Mark))


def replace(model: nn.Module, path: str, new: nn.Module) -> nn.Module:
    """Put a module in the place of another, which is returned.

    Hooks that tell altered modules around it where they are move along.
    """
    parent, _, name = path.rpartition(".")
    old = model.get_submodule(path)
    for kind in ("_forward_pre_hooks", "_forward_hooks"):
        for key, hook in list(getattr(old, kind).items()):
            if isinstance(hook, Enter | Leave):
                _move(kind, key, old, new)
    model.get_submodule(parent)._modules[name] = new
    return old


def mark(module: nn.Module) -> None:
    """Keep fused kernels of torch from passing a module by."""
    module.register_forward_pre_hook(Mark())


def unaltered(module: nn.Module) -> type[nn.Module]:
    """Return the class of a module, as it was before surgery."""
    return module.surgery_base if isinstance(module, Altered) else type(module)


def free_name(module: nn.Module, stem: str) -> str:
    """Return a name that a module does not use yet."""
    number = 0
    while hasattr(module, f"surgery_{stem}{number or ''}"):
        number += 1
    return f"surgery_{stem}{number or ''}"


def _plan(module: nn.Module, path: str) -> Plan:
    if isinstance(module, Altered):
        return module.surgery_plan
    _check(module, path)
    module.__class__ = altered_kind(type(module))
    plan = Plan()
    vars(module)["surgery_plan"] = plan
    mark(module)
    return plan


def _check(module: nn.Module, path: str) -> None:
    """Refuse modules whose copies would lose an edit, or that run something else."""
    kind = type(module)
    copies = ("__deepcopy__", "__reduce__", "__reduce_ex__", "__copy__")
    own = [name for name in copies if getattr(kind, name, None) is not
           getattr(nn.Module, name, None)]  # fmt: skip
    if is_parametrized(module):  # torch has seen to their copies
        own = []
    if isinstance(module, torch.jit.ScriptModule) or own:
        raise SurgeryError(
            f"{named(path)} is a {kind.__name__}, whose copies are made in a manner "
            "of its own, wanted is a plain nn.Module: operate before it is scripted "
            "or traced"
        )
    if "forward" in vars(module):
        raise SurgeryError(
            f"{named(path)} has its forward set on the object itself, wanted is that "
            "of its class: remove what wraps it, and operate before"
        )


def _watch(module: nn.Module, plan: Plan) -> None:
    """Tell the plan's clock whenever a submodule runs."""
    for path, inner in module.named_modules():
        if inner is not module:
            inner.register_forward_pre_hook(Enter(plan, path), with_kwargs=True)
            inner.register_forward_hook(Leave(plan, path), prepend=True)


def _unwatch(module: nn.Module, plan: Plan) -> None:
    for inner in module.modules():
        _drop_hooks(
            inner,
            lambda hook: isinstance(hook, Enter | Leave) and hook.plan is plan,
        )


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
