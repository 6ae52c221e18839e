"""Probes that are ready: they say what the instruments say, under short names."""

import pickle

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.instruments import (
    classifier_norms,
    collapse,
    extreme_eigenvalues,
    trace,
)
from theodolite.training import (
    Descent,
    Every,
    ProbeWarning,
    Watcher,
    probes,
    train_grid,
)
from theodolite.training import train as run

X, Y = torch.randn(24, 3).double(), torch.arange(24) % 3
LOSS = nn.CrossEntropyLoss()


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3)).double()


def measured(probe, **settings):
    """Return the rows of one step of training."""
    rows = run(
        network(), (X, Y), optimizer=Descent(lr=0.1), steps=1, loss=LOSS,
        probes=[probe], **settings,
    ).probe_rows  # fmt: skip
    return rows.where(step=0)


def test_sharpness_is_that_of_the_instrument():
    (row,) = measured(probes.sharpness())
    reading = extreme_eigenvalues(
        network(), (X, Y), loss=LOSS, norm_mode="batch", ends="largest", k=1, tol=1e-3
    )
    assert (row["quantity"], row["value"]) == ("sharpness", reading.eigenvalues[0])
    assert row["error"] == reading.errors[0]
    assert "rank" not in row
    assert row["norm_mode"] == "as_is"
    several = measured(probes.sharpness(k=2, name="top", norm_mode="eval"))
    assert several.column("quantity") == ["top", "top"]
    assert several.column("rank") == [0, 1]


@pytest.mark.parametrize("name", ["sharpness", "trace", "collapse", "margins"])
def test_frozen_norms_stay_frozen(name):
    model = network()
    model.insert(1, nn.BatchNorm1d(4).double())
    model.insert(3, nn.BatchNorm1d(4).double().eval())
    rivals = ({}, {"norm_mode": "as_is"}, {"norm_mode": "batch"}, {"norm_mode": "eval"})
    rows, *others = (
        Watcher([getattr(probes, name)(**one)]).step(
            model, batch=(X, Y), criterion=LOSS
        )
        for one in rivals
    )
    same = [np.array_equal(rows.values(), other.values(), True) for other in others]
    assert same == [True, False, False]
    assert set(rows.column("norm_layers")) == {"1 in train, 1 in eval"}
    assert not model[3].training


def test_trace_takes_data_and_loss_of_its_own():
    half = X[:12], Y[:12]
    probe = probes.trace(data=half, loss=nn.functional.cross_entropy, max_matvecs=8)
    (row,) = measured(probe)
    reading = trace(network(), half, loss=LOSS, norm_mode="batch", max_matvecs=8)
    assert (row["quantity"], row["value"]) == ("trace", reading.trace)
    assert row["error"] == reading.trace_error


@pytest.mark.parametrize(
    ("probe", "instrument", "quantity"),
    [
        (probes.collapse(), collapse, "nc1_noise"),
        (probes.margins(), classifier_norms, "least_margin"),
    ],
)
def test_numbers_of_a_reading_are_kept_and_lists_left_out(probe, instrument, quantity):
    rows = measured(probe)
    reading = instrument(network(), (X, Y), norm_mode="eval")
    assert rows.value(quantity=f"{probe.name}/{quantity}") == getattr(reading, quantity)
    assert len(rows) == len({row["quantity"] for row in rows})


def test_norms_and_gradient():
    rows = measured(probes.norms())
    weights = dict(network().named_parameters())
    assert rows.value(quantity="norms/0.weight") == pytest.approx(
        float(weights["0.weight"].detach().norm()), rel=1e-12
    )
    whole = torch.cat([p.detach().reshape(-1) for p in weights.values()]).norm()
    assert rows.value(quantity="norms/all") == pytest.approx(float(whole), rel=1e-12)
    model = network()
    LOSS(model(X), Y).backward()
    wanted = torch.cat([p.grad.reshape(-1) for p in model.parameters()]).norm()
    (row,) = measured(probes.gradient_norm())
    assert row["value"] == pytest.approx(float(wanted), rel=1e-12)


def test_what_is_missing_is_said():
    watcher = Watcher([probes.sharpness()])
    with pytest.warns(ProbeWarning, match="says no loss.*pass loss=…"):
        watcher.step(network(), batch=(X, Y))
    watcher = Watcher([probes.collapse()])
    with pytest.warns(ProbeWarning, match="shows no batch: pass data=…"):
        watcher.step(network())
    watcher = Watcher([probes.gradient_norm()])
    with pytest.warns(ProbeWarning, match="no parameter has a gradient at step 0"):
        watcher.step(network())
    with pytest.raises(ConfigError, match="when is 10: pass Schedule"):
        probes.norms(10)


def test_a_grid_takes_them_to_other_processes():
    probe = pickle.loads(pickle.dumps(probes.sharpness(Every(5))))
    x = np.random.default_rng(0).normal(size=(10, 2))
    grid = train_grid(
        ShortcutBlueprint(width=2, depth=2), (x, x[:, ::-1].copy()), {"lr": [0.1]},
        steps=5, probes=[probe], strategy="plain", jobs=0,
    )  # fmt: skip
    assert grid.probed("sharpness").column("step") == [0, 5]
