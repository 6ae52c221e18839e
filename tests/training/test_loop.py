"""The plain loop against one written by hand, and what it refuses."""

import math
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.training.probe_cases import (
    assert_same_state,
    broken,
    by_hand,
    data,
    half_square,
    moody,
    network,
    probes,
    state,
    weight_norm,
)
from theodolite.core import ConfigError, DataError, MeasurementError, Status, stream
from theodolite.training.loop.loop import train
from theodolite.training.optimizers.descent import Descent
from theodolite.training.probes.probe import Probe
from theodolite.training.probes.schedules import Every


def nameless(value):
    """Return text without addresses, the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"momentum": 0.9},
        {"weight_decay": 0.05},
        {"drops": {4: 0.1, 8: 0.5}},
        {"momentum": 0.5, "weight_decay": 0.01, "drops": {3: 0.2}},
    ],
    ids=nameless,
)
def test_the_loop_is_the_one_written_by_hand(settings):
    x, y = data()
    ours, theirs = network(), network()
    rates = [0.1] * 12
    for drop, factor in settings.get("drops", {}).items():
        rates = [r * factor if i >= drop else r for i, r in enumerate(rates)]
    run = train(ours, (x, y), optimizer=Descent(lr=0.1, **settings), steps=12)
    losses = by_hand(
        theirs,
        [(x, y)] * 13,
        rates,
        settings.get("momentum", 0.0),
        settings.get("weight_decay", 0.0),
    )
    np.testing.assert_allclose(run.loss, losses, rtol=1e-12)
    assert run.steps.tolist() == list(range(13))
    assert run.final_loss == run.loss[-1]
    assert run.cost.passes == 12
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(p, q, rtol=1e-12, atol=1e-14)


def test_minibatches_go_through_all_samples_in_a_new_order_each_epoch():
    x, y = data()
    ours, theirs = network(), network()
    run = train(ours, (x, y), optimizer=Descent(lr=0.05), steps=6, batch_size=5, seed=3)
    orders = [stream(3, "epoch", epoch).permutation(12) for epoch in range(3)]
    pieces = [torch.as_tensor(o[i : i + 5]) for o in orders for i in (0, 5, 10)]
    losses = by_hand(theirs, [(x[i], y[i]) for i in pieces[:7]], [0.05] * 6)
    np.testing.assert_allclose(run.loss, losses, rtol=1e-12)
    again = train(network(), (x, y), optimizer=Descent(lr=0.05), steps=6, batch_size=5)
    assert not np.allclose(again.loss, run.loss)


def test_adam_and_cross_entropy():
    x, _ = data()
    labels = torch.arange(12) % 2
    ours, theirs = network(), network()
    run = train(
        ours,
        (x, labels),
        optimizer=lambda p: torch.optim.Adam(p, lr=0.02),
        steps=10,
        loss=nn.CrossEntropyLoss(),
    )
    optim = torch.optim.Adam(theirs.parameters(), lr=0.02)
    losses = []
    for _ in range(10):
        optim.zero_grad()
        value = nn.functional.cross_entropy(theirs(x), labels)
        losses.append(value.item())
        value.backward()
        optim.step()
    assert run.loss[:-1].tolist() == losses
    assert_same_state(state(ours), state(theirs))


def test_the_last_look_leaves_running_statistics_and_dropout_alone():
    x, y = data()
    ours, theirs = moody(), moody()
    torch.manual_seed(7)
    train(ours, (x, y), optimizer=Descent(lr=0.1), steps=5)
    after = torch.rand(3)
    torch.manual_seed(7)
    theirs.train()
    optim = torch.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(5):
        optim.zero_grad()
        half_square(theirs, x, y).backward()
        optim.step()
    for name, value in theirs.state_dict().items():
        assert_close(ours.state_dict()[name], value, rtol=1e-12, atol=1e-14)
    assert torch.equal(after, torch.rand(3))


def test_divergence_is_retired_with_its_step_and_not_probed():
    seen = []
    run = train(
        network(), data(), optimizer=Descent(lr=50.0), steps=2000, divergence=1e3,
        probes=[Probe("seen", lambda at: seen.append(at.step) or 0.0, Every(1))],
    )  # fmt: skip
    assert run.diverged
    assert run.status is Status.DIVERGED
    assert math.isnan(run.final_loss)
    at = run.diverged_at
    assert run.steps[-1] == at < 2000
    assert (run.loss[:-1] <= 1e3 * run.loss[0]).all()
    assert not run.loss[-1] <= 1e3 * run.loss[0]
    assert seen == list(range(at))


def test_a_model_of_nan_diverges_at_once():
    model = network()
    with torch.no_grad():
        model[0].weight[0, 0] = math.nan
    run = train(model, data(), optimizer=Descent(lr=0.1), steps=5)
    assert run.diverged_at == 0


def test_a_first_loss_of_zero_is_not_a_ceiling():
    model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
    nn.init.ones_(model.weight)
    x = torch.tensor([[1.0], [1.0]], dtype=torch.float64)
    y = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    first = next(s for s in range(20) if stream(s, "epoch", 0).permutation(2)[0] == 0)
    settings = {"optimizer": Descent(lr=0.1), "steps": 4, "batch_size": 1}
    run = train(model, (x, y), seed=first, **settings)
    assert run.loss[0] == 0
    assert not run.diverged


def test_record_keeps_what_the_schedule_says_and_the_last():
    full = train(network(), data(), optimizer=Descent(lr=0.1), steps=11)
    some = train(
        network(), data(), optimizer=Descent(lr=0.1), steps=11, record=Every(4)
    )
    assert some.steps.tolist() == [0, 4, 8, 11]
    assert some.loss.tolist() == full.loss[[0, 4, 8, 11]].tolist()
    assert some.rows().column("step") == [0, 4, 8, 11]


def test_no_steps_give_the_first_loss():
    model = network()
    before = state(model)
    run = train(model, data(), optimizer=Descent(lr=0.1), steps=0, probes=probes())
    assert run.steps.tolist() == [0]
    assert_same_state(before, state(model))


def test_batches_depend_on_the_seed():
    given = {"optimizer": Descent(lr=0.05), "steps": 4, "batch_size": 6}
    runs = [train(network(), data(), **given, seed=seed).loss for seed in (0, 0, 1)]
    assert runs[0].tolist() == runs[1].tolist()
    assert not np.allclose(runs[0], runs[2])


def test_arrays_are_put_in_the_models_precision():
    model = network(dtype=torch.float32)
    x, y = (part.numpy() for part in data())
    x.setflags(write=False)  # as datasets are; torch would warn
    run = train(model, (x, y), optimizer=Descent(lr=0.1), steps=3)
    exact = train(network(), (x, y), optimizer=Descent(lr=0.1), steps=3)
    assert (run.loss_error > 1e6 * exact.loss_error).all()
    assert_close(run.loss, exact.loss, rtol=1e-5, atol=0)


x, y = data()
nan = x.clone()
nan[3, 1] = math.nan
good = {"data": (x, y), "optimizer": Descent(lr=0.1), "steps": 2}


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"data": (nan, y)}, DataError, "1 of the 36 numbers of the inputs are NaN"),
        ({"data": (x, y / 0)}, DataError, "of the targets are NaN or infinite"),
        ({"data": (x, y[:5])}, DataError, "12 inputs and 5 targets"),
        ({"data": (x[:0], y[:0])}, DataError, "at least one sample"),
        ({"data": x}, DataError, "not a pair"),
        ({"data": (1.0, 2.0)}, DataError, "pair of numbers"),
        ({"data": (x[:, :2], y)}, DataError, r"inputs of shape \(12, 2\)"),
        ({"data": (x, y[:, 0])}, MeasurementError, "wants equal shapes"),
        ({"loss": nn.MSELoss(reduction="none")}, DataError, "one number"),
        ({"steps": -1}, ConfigError, "steps is -1"),
        ({"steps": 1.5}, ConfigError, "steps is 1.5"),
        ({"divergence": 0.5}, ConfigError, "divergence is 0.5"),
        ({"batch_size": 0}, ConfigError, "batch_size is 0 for 12 samples"),
        ({"batch_size": 13}, ConfigError, "batch_size is 13"),
        ({"batch_size": 2.5}, ConfigError, "batch_size is 2.5"),
        ({"optimizer": lambda p: None}, ConfigError, "returned a NoneType"),
        ({"probes": [weight_norm]}, ConfigError, "is not a Probe"),
        ({"probes": [Probe("a", broken), Probe("a", broken)]}, ConfigError, "share"),
    ],
    ids=nameless,
)
def test_misuse_is_one_sentence(changes, error, says):
    model = network()
    before = state(model)
    with pytest.raises(error, match=says):
        train(model, **{**good, **changes})
    assert_same_state(before, state(model))


@pytest.mark.parametrize("model", [nn.Tanh(), network().requires_grad_(False)])
def test_nothing_to_train_is_refused(model):
    with pytest.raises(MeasurementError, match="nothing to train"):
        train(model, **good)


@pytest.mark.parametrize(
    "settings",
    [
        {"lr": -0.1}, {"lr": 0}, {"lr": math.nan}, {"lr": "fast"}, {"lr": True},
        {"lr": 1, "momentum": 1.0}, {"lr": 1, "momentum": -0.1},
        {"lr": 1, "weight_decay": -1}, {"lr": 1, "drops": {-1: 0.1}},
        {"lr": 1, "drops": {5: 0}}, {"lr": 1, "drops": {1.5: 0.1}},
    ],
    ids=nameless,
)  # fmt: skip
def test_descents_that_mean_nothing_are_refused(settings):
    with pytest.raises(ConfigError, match="pass"):
        Descent(**settings)
