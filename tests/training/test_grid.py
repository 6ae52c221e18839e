"""Grids: every strategy equals the plain loop, diverged points are retired alone."""

import warnings

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from tests.training.grid_cases import IMAGES, LINEAR, RELU, TANH, plainly, samples
from theodolite import networks
from theodolite.core import ConfigError, DataError, UnknownNameError
from theodolite.runs import InProcess
from theodolite.training import AtLosses, Descent, Every, GridWarning, train, train_grid
from theodolite.training.grid import pieces


@pytest.fixture
def data():
    return samples()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("plan", "strategy", "starts"),
    [
        (LINEAR, "auto", "moments"),
        (RELU, "auto", "fused"),
        (RELU.with_(shortcut=3), "fused", "fused"),
        (TANH, "auto", "plain"),
        (LINEAR.with_(bias=True), "auto", "plain"),
        (RELU, "plain", "plain"),
    ],
)
def test_every_strategy_is_the_plain_loop(data, plan, strategy, starts, dtype):
    axes = {"seed": [0, 3], "lr": [0.02, 0.1], "init": ["small", "xavier"]}
    grid = train_grid(
        plan, data, axes, steps=30, record=Every(1), strategy=strategy, dtype=dtype
    )
    assert all(method.startswith(starts) for method in grid.methods)
    rtol = 1e-9 if dtype == "float64" else 1e-5
    for seed in axes["seed"]:
        for lr in axes["lr"]:
            for init in axes["init"]:
                run = plainly(
                    plan.with_(init=init),
                    data,
                    seed=seed,
                    lr=lr,
                    steps=30,
                    dtype=getattr(torch, dtype),
                )
                steps, losses = grid.losses(seed=seed, lr=lr, init=init)
                assert steps.tolist() == run.steps.tolist()
                assert_close(losses, run.loss, rtol=rtol, atol=0)


def test_momentum_decay_and_drops_are_those_of_the_plain_loop(data):
    axes = {"lr": [0.05], "momentum": [0.0, 0.9], "weight_decay": [0.0, 0.01]}
    for plan in (LINEAR, RELU, TANH):
        grid = train_grid(
            plan, data, axes, steps=60, drops={20: 0.1, 40: 5.0}, record=Every(1)
        )
        for momentum in axes["momentum"]:
            for decay in axes["weight_decay"]:
                run = plainly(
                    plan,
                    data,
                    seed=0,
                    lr=0.05,
                    steps=60,
                    momentum=momentum,
                    weight_decay=decay,
                    drops={20: 0.1, 40: 5.0},
                )
                _, losses = grid.losses(momentum=momentum, weight_decay=decay)
                assert_close(losses, run.loss, rtol=1e-9, atol=0)


@pytest.mark.filterwarnings("ignore::theodolite.training.grid.grid.GridWarning")
@pytest.mark.parametrize("plan", [LINEAR, RELU, TANH])
def test_a_diverged_point_is_retired_with_its_step_and_harms_nobody(data, plan):
    rates = [0.05, 1e3, 0.1]
    grid = train_grid(plan, data, {"seed": [0, 1], "lr": rates}, steps=80)
    alone = train_grid(plan, data, {"seed": [0, 1], "lr": [0.05, 0.1]}, steps=80)
    np.testing.assert_array_equal(grid.final_loss[:, [0, 2]], alone.final_loss)
    assert np.isnan(grid.final_loss[:, 1]).all()
    assert np.isnan(grid.diverged_at[:, [0, 2]]).all()
    for seed in (0, 1):
        run = plainly(plan, data, seed=seed, lr=1e3, steps=80)
        assert run.diverged
        assert grid.diverged_at[seed, 1] == run.diverged_at
    statuses = {row["lr"]: row["status"] for row in grid.rows}
    assert statuses == {0.05: "finished", 1e3: "diverged", 0.1: "finished"}


def test_a_rate_that_loses_every_point_is_said_in_a_sentence(data):
    with pytest.warns(GridWarning, match=r"all 2 points with lr=1000 diverged .*lower"):
        grid = train_grid(LINEAR, data, {"seed": [0, 1], "lr": [0.1, 1e3]}, steps=50)
    assert len(grid.notes) == 1
    assert np.isfinite(grid.final_loss[:, 0]).all()


def test_warnings_made_errors_lose_no_results(data, caplog):
    huge = tuple(1e152 * part for part in data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grid = train_grid(LINEAR, data, {"lr": [0.1, 1e3]}, steps=50)
        train_grid(LINEAR, huge, {"lr": [1e-306]}, steps=5)  # its ceiling overflows
    assert np.isfinite(grid.final_loss[0])
    assert "points with lr=1000 diverged" in caplog.text


def test_an_endless_bound_retires_at_infinity_only(data):
    with pytest.warns(GridWarning):
        grid = train_grid(
            LINEAR, data, {"lr": [1e3]}, steps=50, divergence=float("inf")
        )
    run = train(
        networks.build(LINEAR, seed=0, dtype=torch.float64),
        data,
        optimizer=Descent(lr=1e3),
        steps=50,
        divergence=float("inf"),
    )
    assert grid.diverged_at[0] == run.diverged_at


def test_trackers_hear_of_every_row(data):
    class Told:
        def __init__(self):
            self.rows, self.ended = [], False

        def start(self, spec):
            self.study = spec["study"]

        def log(self, rows, step):
            self.rows += list(rows)

        def finish(self):
            self.ended = True

    told = Told()
    axes = {"seed": [0, 1], "lr": [0.1]}
    grid = train_grid(LINEAR, data, axes, steps=np.int64(5), trackers=[told])
    assert told.study == "grid"
    ends = [row for row in told.rows if row["quantity"] == "final_loss"]
    assert sorted(row["value"] for row in ends) == sorted(grid.final_loss.ravel())


def test_networks_by_name_are_an_axis(data):
    plans = {"two": LINEAR, "plain": LINEAR.with_(skip=False, init="orthogonal")}
    grid = train_grid(plans, data, {"depth": [2, 4], "lr": [0.1]}, steps=20)
    assert list(grid.axes) == ["network", "depth", "lr"]
    run = plainly(plans["plain"].with_(depth=4), data, seed=0, lr=0.1, steps=20)
    assert_close(grid.final_loss[1, 1, 0], run.final_loss, rtol=1e-9, atol=0)
    labelled = grid.to_xarray()
    loss = labelled.final_loss.sel(network="plain", depth=4, lr=0.1)
    assert float(loss) == grid.final_loss[1, 1, 0]


def test_a_pool_gives_the_values_of_one_process(data):
    axes = {"seed": [0, 1], "lr": [0.05, 0.1]}
    plans = {"linear": LINEAR, "relu": RELU, "tanh": TANH}
    here = train_grid(plans, data, axes, steps=30, jobs=0)
    pool = train_grid(plans, data, axes, steps=30, jobs=1)  # one process more
    np.testing.assert_array_equal(here.final_loss, pool.final_loss)
    assert len(here.methods) == 3


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"axes": {"lr": []}}, ConfigError, "axis 'lr' is empty"),
        ({"axes": {"seed": [0]}}, ConfigError, "no learning rate"),
        ({"axes": {"lr": [0.1], "seed": []}}, ConfigError, "axis 'seed' is empty"),
        ({"axes": {"lr": [-0.1]}}, ConfigError, "lr is -0.1: pass a positive"),
        ({"axes": {"lr": [0.0]}}, ConfigError, "pass a positive"),
        ({"axes": {"lr": [float("nan")]}}, ConfigError, "finite"),
        ({"axes": {"lr": [0.1, 0.1]}}, ConfigError, "twice"),
        ({"axes": {"lr": [1, 1.0]}}, ConfigError, "twice"),
        ({"axes": {"lr": [0.1], "depth": [[2]]}}, ConfigError, "single numbers"),
        ({"axes": [("lr", [0.1])]}, ConfigError, "axes is .*: pass Mapping"),
        ({"axes": {"lr": [0.1], "seed": [True]}}, ConfigError, "seeds"),
        ({"axes": {"lr": 0.1}}, ConfigError, r"axes is .*: pass Mapping"),
        ({"axes": {"lr": [0.1], "seed": [-1]}}, ConfigError, "seeds"),
        ({"axes": {"lr": [0.1], "seed": [0.5]}}, ConfigError, "seeds"),
        ({"axes": {"lr": [0.1], "detph": [2]}}, UnknownNameError, "'depth'"),
        ({"axes": {"lr": [0.1], "depth": [3]}}, ConfigError, "multiple of shortcut"),
        ({"steps": -1}, ConfigError, "steps is -1"),
        ({"pool": InProcess(), "jobs": 2}, ConfigError, "leave one of them out"),
        ({"divergence": 0.5}, ConfigError, "divergence"),
        ({"dtype": "float16"}, ConfigError, "float32"),
        ({"strategy": "magic"}, UnknownNameError, "moments"),
        ({"plan": TANH, "strategy": "moments"}, ConfigError, "try 'auto'"),
        ({"plan": {}}, ConfigError, "no network"),
        ({"plan": None}, ConfigError, "is None: pass ShortcutBlueprint"),
        ({"plan": IMAGES}, ConfigError, "is Preact.*: pass ShortcutBlueprint"),
        ({"plan": {"a": 3}}, ConfigError, "blueprint is {'a': 3}"),
        ({"plan": {1: LINEAR}}, ConfigError, "blueprint is {1: "),
        ({"divergence": "high"}, ConfigError, "divergence is 'high'"),
        ({"drops": [3]}, ConfigError, "drops is"),
        ({"record": 5}, ConfigError, "record is 5: pass Schedule"),
        ({"record": AtLosses([1.0])}, ConfigError, "by steps"),
        ({"device": None}, ConfigError, "device is None"),
        ({"data": (np.ones((5, 4)), np.ones((4, 4)))}, DataError, "shape"),
        ({"data": np.ones((5, 4))}, DataError, "pass tuple"),
        ({"data": (np.full((5, 4), np.nan), np.ones((5, 4)))}, DataError, "20 of the"),
        ({"data": (np.ones((5, 3)), np.ones((5, 3)))}, ConfigError, "width"),
        ({"data": (1j * np.ones((5, 4)), np.ones((5, 4)))}, DataError, "complex"),
        (
            {"data": (np.full((5, 4), 1e60), np.ones((5, 4))), "dtype": "float32"},
            DataError,
            "20 of the 20 numbers of the inputs are .* in float32",
        ),
    ],
)
def test_bad_input_is_a_sentence_and_leaves_the_folder_alone(
    data, tmp_path, change, error, words
):
    given = {"plan": LINEAR, "data": data, "axes": {"lr": [0.1]}, "steps": 5, **change}
    with pytest.raises(error, match=words) as caught:
        train_grid(
            given.pop("plan"),
            given.pop("data"),
            given.pop("axes"),
            folder=tmp_path / "grid",
            **given,
        )
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.rglob("*.jsonl"))


def test_memory_does_not_grow_with_the_points(data, monkeypatch):
    import tracemalloc

    monkeypatch.setattr(pieces, "_LARGEST", 256)

    def peak(n_seeds):
        tracemalloc.start()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            train_grid(
                LINEAR, data, {"seed": range(n_seeds), "lr": [0.1]}, steps=400, jobs=0
            )
        high = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return high

    peak(10)
    few, many = peak(300), peak(900)
    # From one full piece to several: what grows is a row a point, not its trajectory.
    assert many - few < 600 * 400 * 8 / 2
