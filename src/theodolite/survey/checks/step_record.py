"""Watch a user's own training step: gradients, updates, rates and modes."""

import math
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

# Updates after which a rate is looked at: our choice.
FORESEEN = 60
_MODAL = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)


@dataclass(kw_only=True, eq=False)
class StepRecord:
    """What was seen while a user's step ran several times.

    Attributes:
        model: The model that is trained.
        calls: Calls of the step that ended.
        updates: For each update of the model by an optimiser, the call it was in.
        moves: Calls in which a parameter of the model was written to.
        rates: Largest rate of the optimiser at each update.
        reused: Updates by gradients that an earlier update had used already.
        discarded: Calls without an update whose gradients were cleared before one.
        optimizers: The optimisers that updated the model.
        eval_only: Norm and dropout layers that only ran in eval mode in the last call,
            of those that were in train mode at the start.
        later: Rates of later updates, as schedules alone would set them.
    """

    model: nn.Module
    calls: int = 0
    updates: list[int] = field(default_factory=list)
    moves: set[int] = field(default_factory=set)
    rates: list[float] = field(default_factory=list)
    reused: int = 0
    discarded: set[int] = field(default_factory=set)
    optimizers: list[Optimizer] = field(default_factory=list)
    eval_only: list[str] = field(default_factory=list)
    later: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Note the modes in which the step finds the model."""
        named = self.model.named_modules()
        self._modal = {n: m for n, m in named if isinstance(m, _MODAL) and m.training}
        self._own = {id(p) for p in self.model.parameters()}
        self._new: dict[int, Tensor] = {}  # gradients on their way
        self._used: set[int] = set()  # parameters whose gradient made an update
        self._mixed: set[int] = set()  # those to which more was added since
        self._waiting: dict[int, int] = {}  # gradients since a call, not used yet
        self._modes: dict[str, set[bool]] = {}

    @property
    def simple(self) -> bool:
        """Whether one optimiser updates the model at most once per call."""
        once = len(set(self.updates)) == len(self.updates)
        return bool(self.updates) and once and len(self.optimizers) == 1

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Listen to gradients, optimisers and layers."""
        with ExitStack() as stack:
            handles = [
                register_optimizer_step_pre_hook(self._before_update),
                register_optimizer_step_post_hook(self._after_update),
            ]
            for name, module in self._modal.items():
                handles.append(module.register_forward_pre_hook(self._runs(name)))
            for p in self.model.parameters():
                if p.requires_grad:
                    handles.append(p.register_hook(self._coming(p)))
                    handles.append(
                        p.register_post_accumulate_grad_hook(self._accumulated)
                    )
            for handle in handles:
                stack.callback(handle.remove)
            yield

    def call(self, step: Any, batch: Any) -> None:
        """Run the step once."""
        versions = [p._version for p in self.model.parameters()]
        self._modes = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            step(batch)
        if versions != [p._version for p in self.model.parameters()]:
            self.moves.add(self.calls)
        self.eval_only = [n for n, modes in self._modes.items() if modes == {False}]
        self.calls += 1

    def foresee(self, schedulers: list[LRScheduler], began: list[int]) -> None:
        """Go on with schedules that the step steps at each update, without training."""
        parts = [v for each in schedulers for v in vars(each).values()]
        inner = {id(p) for v in parts for p in (v if isinstance(v, list) else [v])}
        pairs = zip(schedulers, began, strict=True)
        outer = [s for s, n in pairs if id(s) not in inner
                 if s.last_epoch - n >= len(self.updates) > 0]  # fmt: skip
        try:
            while outer and len(self.updates) + len(self.later) < FORESEEN:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for each in outer:
                        each.step()
                groups = [g for o in self.optimizers for g in o.param_groups]
                self.later.append(max(float(g["lr"]) for g in groups))
        except Exception:  # of a schedule that wants a metric, or has ended
            return

    def _runs(self, name: str) -> Any:
        def hook(module: nn.Module, _: Any) -> None:
            if torch.is_grad_enabled():
                self._modes.setdefault(name, set()).add(module.training)

        return hook

    def _coming(self, parameter: nn.Parameter) -> Any:
        def hook(gradient: Tensor) -> None:
            self._new[id(parameter)] = gradient

        return hook

    def _accumulated(self, parameter: Tensor) -> None:
        key, total = id(parameter), parameter.grad
        new = self._new.pop(key, None)
        if total is None or new is None or total.is_sparse or new.is_sparse:
            return
        if not bool(new.isfinite().all()):
            return
        if torch.equal(total, new):  # there was none, or it was zero
            if key in self._waiting:
                self.discarded.add(self._waiting[key])
            self._mixed.discard(key)
        elif key in self._used:
            self._mixed.add(key)
        self._used.discard(key)
        self._waiting[key] = self.calls

    def _before_update(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        held = [p for g in optimizer.param_groups for p in g["params"]]
        own = [p for p in held if id(p) in self._own]
        if not own:
            return
        if not any(optimizer is each for each in self.optimizers):
            self.optimizers.append(optimizer)
        self.reused += any(id(p) in self._mixed for p in own)
        self.rates.append(
            max(
                (
                    float(g["lr"])
                    for g in optimizer.param_groups
                    if g.get("lr") is not None
                ),
                default=math.nan,
            )
        )
        self.updates.append(self.calls)
        self.discarded.discard(self.calls)

    def _after_update(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        for group in optimizer.param_groups:
            for p in group["params"]:
                if id(p) in self._own and p.grad is not None:
                    self._used.add(id(p))
                    self._mixed.discard(id(p))
                    self._waiting.pop(id(p), None)

    @property
    def wasted(self) -> list[int]:
        """Calls that made no update and whose gradients none has used."""
        return sorted(self.discarded - set(self.updates))
