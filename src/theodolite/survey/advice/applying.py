"""Run the code of a piece of advice on a copy of the model.

Only code that this process wrote is ever run: a survey that was read from a file may
contain code of somebody else.
"""

import ast
import copy
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from theodolite.core import FOREIGN, ConfigError, Exclusive
from theodolite.instruments import Batch, Loss, preserve

from ..checks.trial_steps import loss_of
from ..records.finding import Advice
from .prescribing import written_here

T = TypeVar("T", bound=torch.optim.Optimizer | None)


@dataclass(kw_only=True)
class Treated:
    """A copy of a network to be altered and trained.

    Attributes:
        model: The copy, altered or not.
        optimizer: The optimiser of its parameters, if one was given.
        batch_size: Samples per step; None keeps the size of the given batches.
        step: The user's own training step, if one was given.
        loss: The loss that it is trained with, if it is known.
    """

    model: nn.Module
    optimizer: Optimizer | None
    batch_size: int | None = None
    step: Callable[[Batch], Any] | None = None
    loss: Any = None


def copied(
    model: nn.Module, optimizer: Optimizer | None, loss: Loss | None = None
) -> Treated:
    """Return a copy in the modes in which it is, with a copy of optimiser and loss.

    Raises:
        ConfigError: The model cannot be copied.
    """
    try:
        with Exclusive():
            other = copy.deepcopy(model)
            loss = copy.deepcopy(loss)
    except Exception as error:  # a user's model may raise anything
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(
            f"the model cannot be copied ({said}), wanted is one that copy.deepcopy "
            "takes: apply the advice by hand"
        ) from error
    refitted = refit(optimizer, model, other)
    return Treated(model=other, optimizer=refitted, loss=loss)


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
    copied.param_groups = []
    for group in optimizer.param_groups:
        names = [old.get(id(parameter), "") for parameter in group["params"]]
        moved = [new[name] for name in names if name in new]
        copied.param_groups.append({**group, "params": moved})
    added = [p for name, p in new.items() if name not in set(old.values())]
    copied.param_groups[0]["params"] += added
    copied.state = defaultdict(dict)
    for parameter, state in optimizer.state.items():
        match = new.get(old.get(id(parameter), ""))
        if match is not None and match.shape == parameter.shape:
            copied.state[match] = copy.deepcopy(state)
    return copied


def apply_advice(advice: Advice, patient: Treated, inputs: Any) -> Treated:
    """Run the code of a piece of advice on a copy; the copy may be altered.

    Args:
        advice: Advice that :func:`theodolite.survey.advise` wrote in this process.
        patient: The copy that the code runs on.
        inputs: A batch of inputs, as the model takes them.

    Raises:
        ConfigError: The code was not written here.
    """
    check_written(advice)
    given = vars(patient)
    names: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    names["inputs"] = inputs
    exec(compile(advice.code, f"<advice: {advice.title}>", "exec"), names)
    treated: dict[str, Any] = {name: names.get(name) for name in given}
    return Treated(**treated)


def check_written(advice: Advice) -> None:
    """Refuse code that this process did not write."""
    if not written_here(advice.code):
        raise ConfigError(
            f"the advice {advice.title!r} was not written in this process, and code of "
            "others is not run: call theodolite.survey.advise on the survey first"
        )


def runs(advice: Advice) -> bool:
    """Return whether advice is code, not a comment for a person."""
    return bool(ast.parse(advice.code).body)


class Guard:
    """Says why altered copies must not be advised, and how much they differ.

    Parameters that are frozen, that the loss does not reach or that the optimiser does
    not hold keep their values; a parameter that several modules share never becomes
    zero.

    Args:
        model: The network.
        optimizer: Its optimiser.
        loss: Its loss.
        batch: A batch.
    """

    def __init__(
        self, model: nn.Module, optimizer: Optimizer | None, loss: Loss, batch: Batch
    ) -> None:
        named = dict(model.named_parameters())
        self.before = {name: p.detach() for name, p in named.items()}
        groups = [] if optimizer is None else optimizer.param_groups
        held = {id(p) for group in groups for p in group["params"]}
        free = [p for p in named.values() if p.requires_grad]
        reached = {id(p) for p in free}
        with preserve(model), torch.enable_grad(), suppress(*FOREIGN):
            value = loss_of(model, batch, loss)  # which may refuse one sample
            grads = torch.autograd.grad(value, free, allow_unused=True)
            reached = {id(p) for p, g in zip(free, grads, strict=True) if g is not None}
        self.others = {
            name
            for name, p in named.items()
            if id(p) not in reached or (held and id(p) not in held)
        }
        every = model.named_parameters(remove_duplicate=False)
        owners = Counter(id(p) for _, p in every)
        self.shared = {name for name, p in named.items() if owners[id(p)] > 1}
        self.described = _described(
            Treated(model=model, optimizer=optimizer, loss=loss)
        )

    def refusal(self, treated: Treated) -> str:
        """Return why this must not be advised, or an empty string."""
        changed = self.changed(treated)
        for name, parameter in changed.items():
            if name in self.others:
                return f"it changes {name}, which is not trained here"
            if name in self.shared and not parameter.any():
                return f"it sets {name} to zero, which other layers share"
        if changed or treated.batch_size is not None:
            return ""
        same = _described(treated) == self.described
        return "the network has that already" if same else ""

    def changed(self, treated: Treated) -> dict[str, Tensor]:
        """Return the parameters that have other values, or are new."""
        now = {name: p.detach() for name, p in treated.model.named_parameters()}
        return {
            name: p
            for name, p in now.items()
            if (old := self.before.get(name)) is None
            or old.shape != p.shape
            or not torch.equal(old.nan_to_num(), p.nan_to_num())
        }


def _described(treated: Treated) -> list[Any]:
    """Return plain settings of modules and optimiser, with sums of buffers."""
    plain = (bool, int, float, str, tuple, type(None))
    described: list[Any] = []
    for path, module in treated.model.named_modules():
        hooks = len(module._forward_hooks), len(module._forward_pre_hooks)
        free = [p.requires_grad for p in module.parameters(recurse=False)]
        values = {k: v for k, v in vars(module).items() if isinstance(v, plain)}
        described.append((path, type(module), hooks, free, values))
    described += [float(b.double().sum()) for b in treated.model.buffers()]
    hooks = getattr(treated.loss, "_forward_pre_hooks", None)
    described.append(treated.loss if hooks is None else len(hooks))
    for group in [] if treated.optimizer is None else treated.optimizer.param_groups:
        values = {k: str(v) for k, v in group.items() if k != "params"}
        described.append((len(group["params"]), values))
    optimizer: Any = treated.optimizer  # whose hooks torch keeps in private dicts
    names = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
    described += [len(getattr(optimizer, name, ())) for name in names]
    return described
