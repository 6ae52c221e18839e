"""A few steps of the user's own training, undone after.

The model and the optimiser are used in place, since a step of the user's own with
clipping, accumulation or a scaler refers to them; all is put back after each trial.
"""

import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.grad_mode import _unsafe_preserve_version_counter
from torch.optim import Optimizer

from theodolite.core import safe_point
from theodolite.instruments import (
    Batch,
    Loss,
    evaluate,
    loss_of_batch,
    map_tensors,
    measuring,
    preserve,
    reseed,
    run_model,
    samples_in,
)

from ..measures.context import logits_in
from .step_record import StepRecord
from .step_state import StepState

# Steps of a trial, steps on one repeated batch, and batches that are judged: our
# choice, about 60 gradients in all.
STEPS, REPEATS, JUDGED = 10, 20, 4
# With gradients that are accumulated, at most this many calls of a step per update.
_CALLS = 8
# Rates that are tried, as multiples of the one in use.
FACTORS = (1.0, 0.1, 10.0)
# Without an optimiser, Adam at torch's default rate.
_DEFAULT_RATE = 1e-3


def loss_of(model: nn.Module, batch: Batch, loss: Loss) -> Tensor:
    """Return the loss as a user's script has it, also where shapes are broadcast."""
    paired = isinstance(batch, tuple | list) and len(batch) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(loss, nn.Module) and paired:
            value = loss(run_model(model, batch), batch[1])
        elif paired:
            value = _of_either(model, batch, loss)
        else:
            value = evaluate(model, batch, loss)
    return value if value.ndim == 0 else value.mean()


def _of_either(model: nn.Module, batch: Batch, loss: Loss) -> Tensor:
    """Return a loss of model and batch, or of outputs and targets."""
    try:
        return loss_of_batch(model, batch, loss)
    except Exception as error:  # which is another one for every loss of outputs
        try:
            return loss(run_model(model, batch), batch[1])
        except Exception:
            raise error from None


@dataclass(kw_only=True)
class Course:
    """The losses of one trial.

    Attributes:
        factor: Rate as a multiple of the one in use.
        rate: The largest rate of a parameter group.
        before: Loss on the judged batches before the first step.
        after: The same after the last step; infinite if it is not finite.
        losses: Training loss of each plain step.
        moved: Distance moved over the length of all weights.
        reached: Parameters whose gradient was not zero at some step.
        changed: Parameters that changed.
        spread: Spread of the outputs over samples relative to their size, the larger
            of before and after; None if the outputs are not one per sample.
        error: Message of an exception that stopped it.
        record: What the user's step did, if one was given.
    """

    factor: float
    rate: float = math.nan
    before: float = math.nan
    after: float = math.inf
    losses: list[float] = field(default_factory=list)
    moved: float = 0.0
    reached: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    spread: float | None = None
    error: str = ""
    record: StepRecord | None = None

    @property
    def gain(self) -> float:
        """Share of the loss that was removed, negative where it rose."""
        if not math.isfinite(self.after):
            return -math.inf
        return (self.before - self.after) / max(abs(self.before), 1e-12)


@dataclass(kw_only=True, eq=False)
class Trainer:
    """Runs trials of a network.

    Attributes:
        model: The network, in the modes in which it is trained.
        batches: Training batches.
        loss: Training loss.
        optimizer: The optimiser, or None for Adam at its default rate.
        step: The user's own step, called with a batch in place of the plain update.
        seed: Seed of the network's random numbers.
    """

    model: nn.Module
    batches: Sequence[Batch]
    loss: Loss
    optimizer: Optimizer | None = None
    step: Callable[[Batch], Any] | None = None
    seed: int = 0

    def run(
        self,
        factor: float,
        *,
        repeated: bool = False,
        steps: int | None = None,
        judged: Sequence[Batch] = (),
    ) -> Course:
        """Train for a few steps, put everything back, and return the losses.

        Args:
            factor: Multiple of the rate in use.
            repeated: Whether to train on the first batch again and again.
            steps: Number of updates; by default 10, and 20 of a repeated batch.
            judged: Batches that are judged; by default the first of the training.
        """
        course = Course(factor=factor)
        batches = self.batches[:1] if repeated else self.batches
        with undone(self.model, self.optimizer, self.loss, self.step) as state:
            if self.step is None:
                for p in self.model.parameters():  # which may step other optimisers
                    (p._post_accumulate_grad_hooks or {}).clear()
            if (optimizer := self.optimizer) is None:
                learned = [p for p in self.model.parameters() if p.requires_grad]
                if not learned:
                    course.error = "no parameter requires a gradient"
                    return course
                optimizer = torch.optim.Adam(learned, lr=_DEFAULT_RATE)
            if self.step is None:
                _skip_warm_up(optimizer)
            state.scale_rates(_different([optimizer, *state.optimizers]), factor)
            rates = [g.get("lr") for g in optimizer.param_groups]
            course.rate = max(
                (float(r) for r in rates if r is not None), default=math.nan
            )
            try:
                steps = steps or (REPEATS if repeated else STEPS)
                began = [each.last_epoch for each in state.schedulers]
                self._train(course, optimizer, batches, steps, judged)
                if course.record is not None:
                    course.record.foresee(state.schedulers, began)
            except Exception as error:  # a user's forward and step may raise anything
                lines = str(error).strip().splitlines()
                course.error = lines[0] if lines else type(error).__name__
        return course

    def _train(
        self,
        course: Course,
        optimizer: Optimizer,
        batches: Any,
        steps: int,
        judged: Sequence[Batch],
    ) -> None:
        start = {n: p.detach().clone() for n, p in self.model.named_parameters()}
        judged = judged or [batches[n] for n in range(min(JUDGED, len(batches)))]
        course.before = self._judge(judged)
        course.spread = self._spread(batches[0])
        reseed(self.seed)
        if self.step is not None:
            self._own_steps(course, batches, steps)
        else:
            optimizer.zero_grad()
            closing = _needs_closure(optimizer)
            for number in range(steps):
                safe_point()
                batch = batches[number % len(batches)]
                self._update(course, optimizer, batch, closing)
                self._note(course)
        course.after = self._judge(judged)
        if (
            course.spread is not None
            and (after := self._spread(batches[0])) is not None
        ):
            course.spread = max(course.spread, after)
        self._compare(course, start)

    def _own_steps(self, course: Course, batches: Any, steps: int) -> None:
        """Call the user's step until it has made this many updates."""
        course.record = record = StepRecord(model=self.model)
        if len(batches) == 1 and _are_batches(batches[0]):
            batches = batches[0]
        with record.watching():
            for number in range(_CALLS * steps):
                safe_point()
                # A copy, since augmentation in place, as of masked words, is common.
                batch = map_tensors(batches[number % len(batches)], Tensor.clone)
                record.call(self.step, batch)
                self._note(course)
                updates = max(len(record.updates), len(record.moves))
                if updates >= steps or (record.wasted and record.calls >= 2 * steps):
                    break

    def _update(
        self, course: Course, optimizer: Optimizer, batch: Batch, closing: bool
    ) -> None:
        def closure() -> float:
            optimizer.zero_grad()
            value = loss_of(self.model, batch, self.loss)
            value.backward()
            return float(value.detach())

        if closing:
            course.losses.append(float(optimizer.step(closure)))  # pyright: ignore
            return
        course.losses.append(closure())
        optimizer.step()

    def _note(self, course: Course) -> None:
        for name, parameter in self.model.named_parameters():
            if parameter.grad is None or name in course.reached:
                continue
            if bool(_entries(parameter.grad.detach()).any()):
                course.reached.add(name)

    def _compare(self, course: Course, start: dict[str, torch.Tensor]) -> None:
        moved = total = 0.0
        for name, parameter in self.model.named_parameters():
            gap = float((parameter.detach() - start[name]).double().norm())
            if gap:
                course.changed.add(name)
            moved, total = (
                moved + gap**2,
                total + float(start[name].double().norm()) ** 2,
            )
        course.moved = (
            math.sqrt(moved / total) if total and math.isfinite(moved) else 0.0
        )

    def _spread(self, batch: Batch) -> float | None:
        """Return how much outputs differ between samples, relative to their size."""
        with preserve(self.model), torch.no_grad():
            reseed(self.seed)
            try:
                outputs = logits_in(run_model(self.model, batch)).double()
            except Exception:  # a model that only its loss can call
                return None
        if (
            len(outputs) != samples_in(batch)
            or len(outputs) < 2
            or not outputs.isfinite().all()
        ):
            return None
        size = float(outputs.square().mean().sqrt())
        return float(outputs.std(0).square().mean().sqrt()) / size if size else 0.0

    def _judge(self, batches: Sequence[Batch]) -> float:
        """Return the mean loss in the mode of training, with fixed random numbers."""
        with preserve(self.model), torch.enable_grad():  # which some losses want
            reseed(self.seed)
            values = [loss_of(self.model, b, self.loss).item() for b in batches]
        mean = sum(values) / len(values)
        return mean if math.isfinite(mean) else math.inf


@contextmanager
def undone(
    model: nn.Module,
    optimizer: Optimizer | None,
    loss: Loss,
    step: Callable[[Batch], Any] | None = None,
) -> Iterator[StepState]:
    """Undo all that training inside changes.

    That is the model, the optimiser with its groups, state and parameters, which may be
    those of another model, and what the loss and the user's step hold.
    """
    state, whole = StepState(step), nn.Module()
    given = [] if optimizer is None else [optimizer]
    optimizers = _with_inner([*given, *state.optimizers])
    whole.model = model
    vars(whole)["others"] = [*optimizers, loss, *state.objects]
    for each in optimizers:
        for group in each.param_groups:
            for parameter in group["params"]:
                whole._parameters[str(id(parameter))] = parameter
    nets = [whole, *(each for each in state.objects if isinstance(each, nn.Module))]
    held = (t for net in nets for t in (*net.parameters(), *net.buffers()))
    tensors = {id(t): t for t in held if not t.is_inference()}
    # Another thread that measures counts versions up as well, so it has to wait.
    with measuring():
        # An update of a weight counts up its version, and a graph that the user made
        # before then refuses to go backward, although the values come back bit for bit.
        # Nothing public sets a version back: torch.utils.swap_tensors refuses tensors
        # that a graph holds, and a copy of the model is not what the user's step refers
        # to.
        versions = _unsafe_preserve_version_counter(tuple(tensors.values()))
        with versions, preserve(whole), state.restored():
            yield state


def _different(optimizers: list[Optimizer]) -> list[Optimizer]:
    return list({id(each): each for each in optimizers}.values())


def _skip_warm_up(optimizer: Optimizer) -> None:
    """Give each group the rate that its schedule starts from, if that is larger."""
    for group in optimizer.param_groups:
        if group.get("lr") is not None:  # else it finds its rate itself
            rate = max(float(group["lr"]), float(group.get("initial_lr") or 0.0))
            group["lr"] = rate


def _with_inner(optimizers: list[Optimizer]) -> list[Optimizer]:
    """List optimisers and those that they step, as SAM and Lookahead do."""
    found = _different(optimizers)
    for each in found:
        for value in vars(each).values():
            if isinstance(value, Optimizer) and all(value is not o for o in found):
                found.append(value)
    return found


def _are_batches(batch: Batch) -> bool:
    """Return whether a list of tensors, which counts as one batch, holds several."""
    if not isinstance(batch, list) or len(batch) < 3:
        return False
    return all(isinstance(t, Tensor) and t.shape == batch[0].shape for t in batch)


def _needs_closure(optimizer: Optimizer) -> bool:
    """Return whether a step computes losses itself, as those of L-BFGS do."""
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    return closure is not None and closure.default is closure.empty


def _entries(gradient: Tensor) -> Tensor:
    """Return the entries of a gradient, of a sparse one those that are kept."""
    return gradient.coalesce().values() if gradient.is_sparse else gradient
