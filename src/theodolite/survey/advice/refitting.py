"""Copy an optimiser to another copy of a network."""

import copy
from collections import OrderedDict, defaultdict
from typing import Any, TypeVar

import torch
from torch import nn

T = TypeVar("T", bound=torch.optim.Optimizer | None)


def refit(optimizer: T, before: nn.Module, after: nn.Module) -> T:
    """Return a copy of an optimiser for the parameters of an altered network.

    Groups keep their settings. A parameter goes into the group that had its name; a new
    parameter goes into the first group; one that was in no group stays out. Parameters
    with the same name and shape as before keep their momentum and moments. Hooks are
    not copied.

    Args:
        optimizer: The optimiser of ``before``; None returns None.
        before: The original network.
        after: The altered network, as surgery returns it.
    """
    if optimizer is None:
        return optimizer
    old = {id(p): name for name, p in before.named_parameters()}
    new = dict(after.named_parameters())
    copied: Any = object.__new__(type(optimizer))
    copied.__dict__.update(optimizer.__dict__)
    for name in [name for name in copied.__dict__ if name.endswith("_hooks")]:
        setattr(copied, name, OrderedDict())
    copied.param_groups = [_moved(g, old, new) for g in optimizer.param_groups]
    added = [p for name, p in new.items() if name not in set(old.values())]
    copied.param_groups[0]["params"] += added
    copied.state = defaultdict(dict)
    for parameter, state in optimizer.state.items():
        match = new.get(old.get(id(parameter), ""))
        if match is not None and match.shape == parameter.shape:
            copied.state[match] = copy.deepcopy(state)
    return copied


def _moved(
    group: dict[str, Any], old: dict[int, str], new: dict[str, nn.Parameter]
) -> dict[str, Any]:
    names = [old.get(id(parameter), "") for parameter in group["params"]]
    return {**group, "params": [new[name] for name in names if name in new]}
