"""The user's own training step: each of its faults is named, and all is undone."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim.lr_scheduler import LambdaLR, StepLR

from tests.survey.test_checks import LABELS, X, mlp
from tests.survey.test_checks_as_found import picture
from theodolite.survey import find, survey

BATCHES = [(X[i : i + 8], LABELS[i : i + 8]) for i in range(0, 64, 8)]
CROSS = nn.CrossEntropyLoss()


class Loop:
    """A training loop as people write it; subclasses change one line each."""

    def __init__(self):
        torch.manual_seed(0)
        layers = (nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 32), nn.ReLU())
        self.model = nn.Sequential(*layers, nn.Linear(32, 3))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.count = 0

    def step(self, batch):
        self.optimizer.zero_grad()
        value = self.value(batch)
        value.backward()
        self.optimizer.step()
        self.count += 1
        return value

    def value(self, batch):
        return CROSS(self.model(batch[0]), batch[1])


class NotCleared(Loop):
    def step(self, batch):
        self.value(batch).backward()
        self.optimizer.step()


class ClearedBetween(Loop):
    def step(self, batch):
        self.value(batch).backward()
        self.optimizer.zero_grad()
        self.optimizer.step()


class Detached(Loop):
    def step(self, batch):
        self.optimizer.zero_grad()
        self.value(batch).detach().requires_grad_().backward()
        self.optimizer.step()


class NoUpdate(Loop):
    def step(self, batch):
        self.optimizer.zero_grad()
        self.value(batch).backward()


class OtherModel(Loop):
    def step(self, batch):
        self.other = getattr(self, "other", None) or torch.optim.SGD(
            mlp().parameters(), lr=0.1
        )
        self.other.zero_grad()
        self.value(batch).backward()
        self.other.step()


class Accumulates(Loop):
    """Updates after every fourth batch."""

    early = False

    def step(self, batch):
        if self.early or self.count % 4 == 0:
            self.optimizer.zero_grad()
        (self.value(batch) / 4).backward()
        self.count += 1
        if self.count % 4 == 0:
            self.optimizer.step()


class ClearsAtEach(Accumulates):
    early = True


class Clips(Loop):
    at = 1.0

    def step(self, batch):
        self.optimizer.zero_grad()
        self.value(batch).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.at)
        self.optimizer.step()


class ClipsToNothing(Clips):
    at = 1e-6


class Scaled(Loop):
    """Mixed precision with a scaler, as in torch's recipe."""

    unscales = True

    def __init__(self):
        super().__init__()
        self.scaler = torch.amp.GradScaler("cpu")

    def step(self, batch):
        self.optimizer.zero_grad()
        self.scaler.scale(self.value(batch)).backward()
        if self.unscales:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()


class NotUnscaled(Scaled):
    unscales = False


class Scheduled(Loop):
    every = 8

    def __init__(self):
        super().__init__()
        self.schedule = StepLR(self.optimizer, 3, 0.1)

    def step(self, batch):
        super().step(batch)
        if self.count % self.every == 0:
            self.schedule.step()


class ScheduledPerBatch(Scheduled):
    every = 1


class WarmUp(Loop):
    def __init__(self):
        super().__init__()
        self.schedule = LambdaLR(self.optimizer, self.factor)

    @staticmethod
    def factor(n):
        return min(1.0, n / 500)

    def step(self, batch):
        super().step(batch)
        self.schedule.step()


class WarmUpOfZero(WarmUp):
    @staticmethod
    def factor(n):
        return min(1.0, n // 500)


class Evaluates(Loop):
    """Looks at the error after each update."""

    back = True

    def step(self, batch):
        super().step(batch)
        self.model.eval()
        with torch.no_grad():
            self.value(batch)
        if self.back:
            self.model.train()


class StaysInEval(Evaluates):
    back = False


class Undoes(Loop):
    def step(self, batch):
        before = [p.detach().clone() for p in self.model.parameters()]
        super().step(batch)
        with torch.no_grad():
            for p, old in zip(self.model.parameters(), before, strict=True):
                p.lerp_(old, 0.9999)


class ByHand(Loop):
    """Updates without an optimiser."""

    def step(self, batch):
        grads = torch.autograd.grad(self.value(batch), list(self.model.parameters()))
        with torch.no_grad():
            for p, grad in zip(self.model.parameters(), grads, strict=True):
                p -= 0.1 * grad


class InTwoPasses(Loop):
    """Goes backward twice per update, as with a penalty on another pass."""

    def step(self, batch):
        self.optimizer.zero_grad()
        self.value(batch).backward()
        (0.1 * functional.mse_loss(self.model(batch[0]), X[:8, :3])).backward()
        self.optimizer.step()


PAIRS = {
    "gradients-not-cleared": (NotCleared, InTwoPasses),
    "gradients-discarded": (ClearsAtEach, Accumulates),
    "schedule-ends-training": (ScheduledPerBatch, Scheduled),
    "step-in-eval-mode": (StaysInEval, Evaluates),
    "step-learns-less": (Undoes, Loop),
}


def found(loop, **given):
    result = survey(
        loop.model, BATCHES, loss=CROSS, optimizer=loop.optimizer, step=loop.step,
        measures=["checks"], progress=False, **given,
    )  # fmt: skip
    return {f.rule: f for f in find(result)}


def alarms(loop):
    return {r for r, f in found(loop).items() if f.severity in ("sick", "warning")}


@pytest.mark.parametrize(
    "kind", [ClearedBetween, Detached, NoUpdate, ClipsToNothing, NotUnscaled]
)
def test_a_step_that_does_not_train_is_compared_with_a_plain_one(kind):
    assert "step-learns-less" in found(kind())


@pytest.mark.parametrize("twin", [ByHand, Clips, Scaled])
def test_a_step_in_other_words_is_sound(twin):
    assert not alarms(twin())


@pytest.mark.parametrize("name", PAIRS)
def test_a_fault_of_the_step_is_named_first_and_its_twin_is_sound(name):
    broken, twin = PAIRS[name]
    assert next(iter(found(broken()))) == name
    assert not alarms(twin())


def test_an_optimizer_of_another_model_changes_no_weight():
    assert (
        "No weight of the model changes" in found(OtherModel())["step-learns-less"].says
    )


def test_a_warm_up_is_sound_and_one_that_is_rounded_down_is_not():
    assert not alarms(WarmUp())
    assert "schedule-ends-training" in found(WarmUpOfZero())


def test_a_step_that_raises_is_a_finding():
    class Raises(Loop):
        def step(self, batch):
            self.value(batch).detach().backward()

    assert "does not require grad" in found(Raises())["training-fails"].says


def test_a_step_may_have_an_optimizer_that_is_not_given():
    loop = Loop()
    result = survey(
        loop.model, BATCHES, loss=CROSS, step=loop.step, measures=["checks"],
        progress=False,
    )  # fmt: skip
    assert not [f for f in find(result) if f.severity != "note"]


@pytest.mark.parametrize("kind", [Scheduled, Scaled, Accumulates, Evaluates, WarmUp])
def test_all_that_a_step_changes_is_as_found(kind):
    loop = kind()
    loop.optimizer.param_groups[0]["momentum"] = 0.9
    loop.step(BATCHES[0])
    held = [v for v in vars(loop).values() if hasattr(v, "__dict__")]
    held = [vars(loop), *(vars(value) for value in held)]
    tensors = [*loop.model.parameters(), *loop.model.buffers()]
    before = picture(held)[1], picture(tensors)[1], loop.model[0].training
    found(loop)
    assert (picture(held)[1], picture(tensors)[1], loop.model[0].training) == before


class Slots:
    """A counter without a __dict__."""

    __slots__ = ("count", "total")

    def __init__(self):
        self.count, self.total = 0, torch.zeros(2)


class Steps:
    """A counter of the class."""

    count = 0


def test_values_of_all_kinds_that_a_step_changes_are_as_found():
    """Also the batches, long lists, and attributes of classes and functions."""
    loop, slots, average = Loop(), Slots(), [torch.zeros(1) for _ in range(500)]
    total, array, history = torch.zeros(3), np.zeros(3), [0.0] * 5000
    twin, drawn = copy.deepcopy(loop.model), np.random.default_rng(0)
    batches = [(x.clone(), y.clone()) for x, y in BATCHES]

    def step(batch):
        batch[0].mul_(0.9)
        value = float(loop.step(batch).detach())
        total.add_(value)
        array[:] += value
        average[400].add_(value)
        slots.count, slots.total = slots.count + 1, slots.total + value
        slots.total.add_(value)
        Steps.count += 1
        step.count += 1
        drawn.random()
        history.append(value)
        with torch.no_grad():
            for p, q in zip(twin.parameters(), loop.model.parameters(), strict=True):
                p.lerp_(q, 0.1)

    step.count = 0
    started = slots.total

    def held():
        counts = slots.count, slots.total is started, Steps.count, step.count
        state = drawn.bit_generator.state["state"]["state"], len(history)
        values = [
            *batches[0],
            total,
            *average[395:405],
            slots.total,
            *twin.parameters(),
        ]
        versions = [p._version for p in twin.parameters()]
        return counts, state, versions, array.tolist(), [v.tolist() for v in values]

    before = held()
    survey(
        loop.model, batches, loss=CROSS, optimizer=loop.optimizer, step=step,
        measures=["checks"], progress=False,
    )  # fmt: skip
    assert held() == before


def test_counters_of_functions_are_as_found():
    loop, count, past = Loop(), 0, []

    def step(batch):
        nonlocal count
        count += 1
        past.append(count)
        loop.step(batch)

    survey(
        loop.model, BATCHES, loss=CROSS, optimizer=loop.optimizer, step=step,
        measures=["checks"], progress=False,
    )  # fmt: skip
    assert (count, past, loop.count) == (0, [], 0)
