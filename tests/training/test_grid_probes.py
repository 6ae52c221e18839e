"""Probes of grids: the networks of the plain loop, and none that harms another."""

import numpy as np
import pytest
from torch.testing import assert_close

from tests.training.grid_cases import LINEAR, RELU, TANH, fails, norms, plainly, samples
from theodolite.core import ConfigError
from theodolite.training import (
    AtLosses,
    AtSteps,
    Every,
    LogSpaced,
    Probe,
    ProbeWarning,
    train_grid,
)


@pytest.fixture
def data():
    return samples()


@pytest.mark.parametrize("plan", [LINEAR, RELU, TANH])
def test_probes_see_the_same_networks_as_in_the_plain_loop(data, plan):
    probes = [
        Probe("every", norms, Every(20)),
        Probe("log", norms, LogSpaced(3)),
        Probe("there", norms, AtSteps([7, 50])),
        Probe("level", norms, AtLosses([4.0, 2.5, 1.9, 0.0])),
    ]
    grid = train_grid(
        plan, data, {"seed": [0, 1], "lr": [0.1]}, steps=50, probes=probes
    )
    for seed in (0, 1):
        run = plainly(plan, data, seed=seed, lr=0.1, steps=50, probes=probes)
        mine = grid.rows.where(lambda row: "/" in row["quantity"], seed=seed)
        theirs = run.probe_rows
        assert len(mine) == len(theirs) > 10
        keys = ("quantity", "step", "level")
        assert [[r.get(k) for k in keys] for r in mine] == [
            [r.get(k) for k in keys] for r in theirs
        ]
        assert_close(mine.values(), theirs.values(), rtol=1e-9, atol=0)
        # What the probe evaluated on the network is the loss the engine reported.
        seen = mine.where(lambda row: row["quantity"].endswith("/loss"))
        assert_close(seen.values(), seen.values("loss"), rtol=1e-9, atol=0)


def test_a_level_is_measured_at_the_first_loss_at_or_below_it(data):
    probe = Probe("level", norms, AtLosses([2.5]))
    grid = train_grid(
        LINEAR, data, {"lr": [0.1]}, steps=200, probes=[probe], record=Every(1)
    )
    steps, losses = grid.losses()
    first = int(steps[np.flatnonzero(losses <= 2.5)[0]])
    assert 0 < first < 200
    assert {row["step"] for row in grid.probed("level/norm")} == {first}


@pytest.mark.filterwarnings("ignore::theodolite.training.grid.grid.GridWarning")
def test_a_probe_that_raises_is_retired_and_the_others_go_on(data):
    probes = [Probe("bad", fails, Every(10)), Probe("good", norms, Every(10))]
    with pytest.warns(ProbeWarning, match="not today") as caught:
        grid = train_grid(LINEAR, data, {"lr": [0.1]}, steps=30, probes=probes)
    said = [w for w in caught if issubclass(w.category, ProbeWarning)]
    assert len(said) == 1
    assert any("'bad' raised in 1 points" in note for note in grid.notes)
    assert len(grid.probed("good/norm")) == 4
    assert np.isfinite(grid.final_loss).all()


def test_a_probe_that_fails_in_many_points_is_said_once(data):
    axes = {"seed": range(10), "lr": [0.05, 0.1]}
    for plan in (LINEAR, TANH):
        with pytest.warns(ProbeWarning, match="'bad' raised in 20 points") as caught:
            grid = train_grid(
                plan, data, axes, steps=3, probes=[Probe("bad", fails)], jobs=0
            )
        assert len(caught) == len(grid.notes) == 1
        assert len(grid.rows.where(quantity="retired_probe")) == 20


@pytest.mark.parametrize("name", ["loss", "final_loss", "retired_probe"])
def test_a_probe_may_not_take_the_name_of_the_grid_s_own_rows(data, name):
    called = []
    probe = Probe(name, lambda at: called.append(at) or 1.0)
    with pytest.raises(ConfigError, match=f"named '{name}'.*another name") as caught:
        train_grid(LINEAR, data, {"lr": [0.1]}, steps=3, probes=[probe])
    assert "\n" not in str(caught.value)
    assert not called


def opaque(snapshot):
    return [{"quantity": "thing", "value": object()}]


def piecewise(snapshot):
    return [{"quantity": "thing", "chunk": 7, "value": 1.0}]


def spoils(snapshot):
    for part in snapshot.data:
        part.zero_()
    return 1.0


@pytest.mark.filterwarnings("ignore::theodolite.training.grid.grid.GridWarning")
@pytest.mark.parametrize("plan", [LINEAR, RELU, TANH])
def test_rows_that_cannot_be_saved_retire_their_probe_only(data, plan):
    probes = [Probe("bad", opaque, Every(10)), Probe("good", piecewise, Every(10))]
    with pytest.warns(ProbeWarning, match="not JSON"):
        grid = train_grid(plan, data, {"lr": [0.1]}, steps=30, probes=probes)
    assert np.isfinite(grid.final_loss).all()
    assert len(grid.probed("good/thing")) == 4
    assert not grid.probed("bad/thing")


@pytest.mark.parametrize("plan", [LINEAR, RELU, TANH])
def test_a_probe_that_spoils_the_data_harms_nobody(data, plan):
    for part in data:  # as datasets are
        part.setflags(write=False)
    before = [part.copy() for part in data]
    axes = {"seed": [0, 1], "lr": [0.1]}
    alone = train_grid(plan, data, axes, steps=20)
    probes = [Probe("spoils", spoils, Every(5)), Probe("norms", norms, Every(5))]
    grid = train_grid(plan, data, axes, steps=20, probes=probes)
    np.testing.assert_array_equal(grid.final_loss, alone.final_loss)
    for part in data:
        part.setflags(write=True)
    train_grid(plan, data, axes, steps=20, probes=probes)
    for part, was in zip(data, before, strict=True):
        np.testing.assert_array_equal(part, was)
