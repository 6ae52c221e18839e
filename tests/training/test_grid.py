"""Grids: every strategy equals the plain loop, diverged points are retired alone."""

import os
import signal
import subprocess
import sys
import time
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from theodolite import networks
from theodolite.core import (
    ConfigError,
    DataError,
    PreactivationBlueprint,
    RunError,
    ShortcutBlueprint,
    UnknownNameError,
)
from theodolite.runs import InProcess
from theodolite.training import (
    AtLosses,
    AtSteps,
    Descent,
    Every,
    GridWarning,
    LogSpaced,
    Probe,
    ProbeWarning,
    train,
    train_grid,
)
from theodolite.training.grid import pieces

LINEAR = ShortcutBlueprint(width=4, depth=6)
IMAGES = PreactivationBlueprint(width=4, depth=8)
RELU = LINEAR.with_(mid="relu")
TANH = LINEAR.with_(mid="tanh")


@pytest.fixture
def data(rng_data):
    return rng_data


@pytest.fixture(name="rng_data")
def _rng_data():
    rng = np.random.default_rng(5)
    return rng.normal(size=(60, 4)), rng.normal(size=(60, 4))


def norms(snapshot):
    """Frobenius norm of all weights, and the loss seen by the probe itself."""
    with torch.no_grad():
        squares = sum(float(p.square().sum()) for p in snapshot.model.parameters())
        x, y = snapshot.data
        loss = float(snapshot.criterion(snapshot.model(x), y))
    return {"norm": squares**0.5, "loss": loss}


def fails(snapshot):
    raise ValueError("not today")


def plainly(plan, data, *, seed, lr, steps, dtype=torch.float64, probes=(), **more):
    network = networks.build(plan, seed=seed, dtype=dtype)
    settings = Descent(lr=lr, **more)
    return train(network, data, optimiser=settings, steps=steps, probes=probes)


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
        plan, data, axes, steps=60, record=Every(1), strategy=strategy, dtype=dtype
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
                    steps=60,
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


def scaled(snapshot, k=1):
    return float(k)


class Scaled:
    def __init__(self, k):
        self.k, self.lock = k, object()

    def __call__(self, snapshot):
        return float(self.k)

    def measure(self, snapshot):
        return float(self.k)


def closed_over(k):
    return lambda snapshot: float(k)


def defaulted(k):
    def measure(snapshot, k=k):
        return float(k)

    return measure


@pytest.mark.parametrize(
    "make",
    [
        lambda k: partial(scaled, k=k),
        lambda k: partial(partial(scaled), k=k),
        lambda k: partial(lambda k, at: float(k.sum()), np.full(2, k / 2)),
        lambda k: partial(lambda k, at: float(k), torch.tensor(k)),
        lambda k: closed_over(k),
        lambda k: closed_over(np.float64(k)),
        lambda k: partial(closed_over(k)),
        lambda k: defaulted(k),
        lambda k: Scaled(k),
        lambda k: Scaled(k).measure,
        lambda k: (lambda at: 1.0) if k == 1 else (lambda at: 2.0),
    ],
)
def test_a_grid_is_not_resumed_with_another_probe(data, tmp_path, make):
    def found(k):
        grid = train_grid(
            LINEAR, data, {"lr": [0.1]}, steps=2, folder=tmp_path,
            probes=[Probe("p", make(k))],
        )  # fmt: skip
        return set(grid.probed("p").values())

    assert found(1) == {1.0}
    assert found(1) == {1.0}
    with pytest.raises(RunError, match=r"other settings .*probes"):
        found(2)


IDENTITY = """
import numpy as np
from functools import partial
from theodolite.training.grid.identity import identity
class Thing:
    __slots__ = ()
class Holder:
    def __init__(self):
        self.thing, self.names, self.me = Thing(), {"a", "b", "c"}, self
    def __call__(self, at):
        return 1.0
def outer(n):
    def again(at, m=Thing()):
        return again if at in {"x", "y", "z"} else (lambda: n)
    return again
for measure in (Holder(), outer(3), partial(outer(3), k=[np.ones(2), Holder()]), sum,
                Holder().__call__):
    print(identity(measure))
"""


def test_a_probe_is_known_in_every_process():
    def said(seed):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", IDENTITY]
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout.splitlines()

    first = said("1")
    assert len(set(first)) == 5
    assert said("2") == first


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
        optimiser=Descent(lr=1e3),
        steps=50,
        divergence=float("inf"),
    )
    assert grid.diverged_at[0] == run.diverged_at


def test_without_a_folder_a_failed_piece_is_one_sentence(data, monkeypatch):
    def fail(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(pieces, "_stacked", fail)
    with pytest.raises(RunError, match=r"1 of 1 pieces .*no room.*pass a folder"):
        train_grid(LINEAR, data, {"lr": [0.1]}, steps=5)


def test_a_grid_cut_into_other_pieces_is_not_resumed(data, tmp_path, monkeypatch):
    axes = {"seed": [0, 1, 2], "lr": [0.1]}
    train_grid(LINEAR, data, axes, steps=5, folder=tmp_path)
    monkeypatch.setattr(pieces, "_LARGEST", 2)
    with pytest.raises(RunError, match="pieces"):
        train_grid(LINEAR, data, axes, steps=5, folder=tmp_path)


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
    found = labelled.final_loss.sel(network="plain", depth=4, lr=0.1)
    assert float(found) == grid.final_loss[1, 1, 0]


def test_a_pool_gives_the_values_of_one_process(data):
    axes = {"seed": [0, 1], "lr": [0.05, 0.1]}
    plans = {"linear": LINEAR, "relu": RELU, "tanh": TANH}
    here = train_grid(plans, data, axes, steps=30, jobs=0)
    pool = train_grid(plans, data, axes, steps=30, jobs=2)
    np.testing.assert_array_equal(here.final_loss, pool.final_loss)
    assert len(here.methods) == 3


GRID = """
import sys
import numpy as np
from theodolite.core import ShortcutBlueprint
from theodolite.training import train_grid
from theodolite.training.grid import pieces
pieces._SECONDS = 0.2
rng = np.random.default_rng(0)
x, y = rng.normal(size=(100, 6)), rng.normal(size=(100, 6))
grid = train_grid(ShortcutBlueprint(width=6, depth=4, mid="tanh"), (x, y),
                  {"seed": range(9), "lr": [0.01]}, steps=160,
                  folder=sys.argv[1], jobs=0)
np.save(sys.argv[2], grid.final_loss)
"""


def test_a_killed_grid_resumes_and_redoes_nothing(tmp_path, monkeypatch):
    folder, result = tmp_path / "grid", tmp_path / "found.npy"
    command = [sys.executable, "-c", GRID, str(folder), str(result)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    first = subprocess.Popen(command, env=environment)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and first.poll() is None:
        if list(folder.glob("runs/*/*/*/cells/*.jsonl")):  # of three
            break
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not result.exists()
    saved = {p: p.stat().st_mtime_ns for p in folder.glob("runs/*/*/*/cells/*.jsonl")}
    assert saved
    subprocess.run(command, env=environment, check=True)
    for path, when in saved.items():
        assert path.stat().st_mtime_ns == when
    monkeypatch.setattr(pieces, "_SECONDS", 0.2)
    x, y = np.random.default_rng(0).normal(size=(2, 100, 6))
    plan, axes = ShortcutBlueprint(width=6, depth=4, mid="tanh"), {"seed": range(9)}
    fresh = train_grid(plan, (x, y), {**axes, "lr": [0.01]}, steps=160, jobs=0)
    np.testing.assert_array_equal(np.load(result), fresh.final_loss)


def test_a_folder_keeps_one_grid(data, tmp_path):
    axes = {"seed": [0, 1], "lr": [0.1]}
    first = train_grid(LINEAR, data, axes, steps=20, folder=tmp_path)
    again = train_grid(LINEAR, data, axes, steps=20, folder=tmp_path)
    np.testing.assert_array_equal(first.final_loss, again.final_loss)
    with pytest.raises(RunError, match=r"other settings \(steps 20, not 30\)"):
        train_grid(LINEAR, data, axes, steps=30, folder=tmp_path)
    with pytest.raises(RunError, match="data"):
        train_grid(LINEAR, (data[0], 2 * data[1]), axes, steps=20, folder=tmp_path)
    kept = train_grid(LINEAR, data, axes, steps=20, folder=tmp_path)
    np.testing.assert_array_equal(first.final_loss, kept.final_loss)


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
        ({"axes": [("lr", [0.1])]}, ConfigError, "axes are .* mapping"),
        ({"axes": {"lr": [0.1], "seed": [True]}}, ConfigError, "seeds"),
        ({"axes": {"lr": 0.1}}, ConfigError, "pass a list"),
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
        ({"plan": None}, ConfigError, "is None: pass a ShortcutBlueprint"),
        ({"plan": IMAGES}, ConfigError, "is Preact.*: pass a ShortcutBlueprint"),
        ({"plan": {"a": 3}}, ConfigError, "network 'a' is 3"),
        ({"plan": {1: LINEAR}}, ConfigError, "network 1"),
        ({"divergence": "high"}, ConfigError, "divergence is 'high'"),
        ({"drops": [3]}, ConfigError, "step to factor"),
        ({"record": 5}, ConfigError, "record is 5: pass a schedule"),
        ({"record": AtLosses([1.0])}, ConfigError, "by steps"),
        ({"device": None}, ConfigError, "'None' is not there"),
        ({"data": (np.ones((5, 4)), np.ones((4, 4)))}, DataError, "shape"),
        ({"data": np.ones((5, 4))}, DataError, "pair"),
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
