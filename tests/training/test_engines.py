"""The engines of a CPU against autograd and torch's SGD, step by step."""

import hashlib
import os
import platform
import subprocess
import sys
import time
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.networks import build, get_weights, initial_weights
from theodolite.training.engines.cpu import FusedEngine, MomentsEngine
from theodolite.training.engines.protocol import Rule
from theodolite.training.engines.stacked.engine import StackedEngine
from theodolite.training.engines.strategies import choose

WIDTH = 5
stacked = partial(StackedEngine, device="cpu", method="torch")
# With the activation at mid that each is made for; stacks know both.
ENGINES = [
    pytest.param(MomentsEngine, "identity", id="moments"),
    pytest.param(FusedEngine, "relu", id="fused"),
    pytest.param(stacked, "identity", id="stacked moments"),
    pytest.param(stacked, "relu", id="stacked"),
]
every_engine = pytest.mark.parametrize(("make", "mid"), ENGINES)


def samples(count=300, width=WIDTH, rank=None):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(count, width))
    if rank:
        x = x[:, :rank] @ rng.normal(size=(rank, width))
    y = x @ rng.normal(size=(width, width)) / 3 + 0.3 * rng.normal(size=x.shape)
    return x, y


def plain_loop(plan, x, y, rates, *, seed=0, dtype="float64", momentum=0.0, decay=0.0):
    """What a user of torch writes; returns losses before updates, and weights."""
    kind = getattr(torch, dtype)
    network = build(plan, seed=seed, dtype=kind)
    x, y = torch.as_tensor(x, dtype=kind), torch.as_tensor(y, dtype=kind)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=0.1, momentum=momentum, weight_decay=decay
    )
    losses = []
    for rate in rates:
        optimizer.param_groups[0]["lr"] = float(rate)
        optimizer.zero_grad()
        loss = 0.5 * (network(x) - y).square().sum() / len(x)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses), get_weights(network)


def advance(engine, plan, rates, *, seeds=(0,), **rule):
    """Run points of some seeds; return what was done and the placed weights."""
    drawn = np.stack([initial_weights(plan, seed=s) for s in seeds])
    weights, velocity = engine.place(drawn), engine.place(0 * drawn)
    rates = np.broadcast_to(rates, (len(seeds), np.shape(rates)[-1]))
    return engine.advance(weights, velocity, Rule.of(rates, **rule)), weights


def compare(make, plan, x, y, rates, *, dtype="float64", **rule):
    engine = make(plan, x, y, dtype=dtype)
    done, weights = advance(
        engine,
        plan,
        rates,
        momentum=rule.get("momentum", 0.0),
        weight_decay=rule.get("decay", 0.0),
    )
    # A last step at rate 0 only tells the loss at the end.
    seen, final = plain_loop(plan, x, y, [*rates, 0.0], dtype=dtype, **rule)
    losses, after = seen[:-1], seen[-1]
    rtol = 1e-9 if dtype == "float64" else 1e-5
    assert losses[-1] < losses[0]
    assert_allclose(done.losses[0], losses, rtol=rtol)
    assert done.taken[0] == len(rates)
    assert np.isnan(done.stopped[0])
    atol = rtol * np.abs(final).max() * 10
    assert_allclose(engine.fetch(weights, 0), final, rtol=rtol * 10, atol=atol)
    assert_allclose(engine.losses(weights), [after], rtol=rtol)


PLANS = [
    pytest.param({"shortcut": 1, "depth": 3}, id="1-shortcut"),
    pytest.param({"shortcut": 2, "depth": 6}, id="2-shortcut"),
    pytest.param({"shortcut": 3, "depth": 6, "init": "xavier"}, id="3-shortcut"),
    pytest.param({"depth": 4, "skip": False, "init": "orthogonal"}, id="no-skip"),
    pytest.param(
        {"shortcut": 1, "depth": 3, "skip": False, "init": "xavier"}, id="chain"
    ),
]


@pytest.mark.parametrize("settings", PLANS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@every_engine
def test_every_loss_is_that_of_the_plain_loop(make, mid, dtype, settings):
    plan = ShortcutBlueprint(width=WIDTH, mid=mid, **settings)
    x, y = samples()
    rates = 0.05 / (1 + np.arange(20) / 10)
    compare(make, plan, x, y, rates, dtype=dtype)
    compare(make, plan, x, y, rates, dtype=dtype, momentum=0.8, decay=0.01)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@every_engine
def test_a_thousand_steps_stay_with_the_plain_loop(make, mid, dtype):
    # Gently for ReLU: a kink passed a step earlier parts float32 runs for good.
    rate, init = (0.01, "xavier") if mid == "relu" else (0.05, "small")
    plan = ShortcutBlueprint(width=WIDTH, depth=8, mid=mid, init=init, shortcut=2)
    compare(make, plan, *samples(), np.full(1000, rate), dtype=dtype)


@pytest.mark.parametrize("make", [MomentsEngine, partial(stacked, dtype="float64")])
def test_a_tiny_loss_keeps_its_digits(make):
    # Targets that a linear map reaches: tr Σ_YY is 1e20 times the last loss.
    plan = ShortcutBlueprint(width=WIDTH, depth=2, shortcut=1)
    x, _ = samples()
    y = x @ (np.eye(WIDTH) + 0.3 * np.ones((WIDTH, WIDTH)))
    done, _ = advance(make(plan, x, y), plan, np.full(400, 0.2))
    losses, _ = plain_loop(plan, x, y, np.full(400, 0.2))
    # The gap to the targets is exact to 1e-16 of them, so the loss to 1e-16 / gap.
    seen = losses > 1e-20 * losses[0]
    assert losses.min() < 1e-18 * losses[0]
    assert_allclose(done.losses[0][seen], losses[seen], rtol=1e-5)


@every_engine
@pytest.mark.parametrize(("count", "rank"), [(300, 2), (3, None)])
def test_singular_moments_train_like_any(make, mid, count, rank):
    plan = ShortcutBlueprint(width=WIDTH, depth=6)
    x, y = samples(count, rank=rank)
    assert np.linalg.matrix_rank(x) < WIDTH
    compare(make, plan, x, y, np.full(100, 0.02))


@every_engine
def test_widths_beyond_one_vector(make, mid):
    plan = ShortcutBlueprint(width=19, depth=4, mid=mid)
    compare(make, plan, *samples(700, 19), np.full(30, 0.02))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_moments_and_tiles_agree_on_linear_networks(dtype):
    plan = ShortcutBlueprint(width=WIDTH, depth=6, init="xavier")
    x, y = samples(2000)
    runs = [
        advance(make(plan, x, y, dtype=dtype), plan, np.full(50, 0.02))[0].losses
        for make in (MomentsEngine, FusedEngine)
    ]
    assert_allclose(*runs, rtol=1e-11 if dtype == "float64" else 1e-5)


@every_engine
def test_a_diverging_point_leaves_the_others_alone(make, mid):
    plan = ShortcutBlueprint(width=WIDTH, depth=4, init="xavier")
    engine = make(plan, *samples(), dtype="float64")
    rates = np.repeat([[0.02], [50.0], [0.05]], 80, axis=1)
    seeds = (3, 4, 5)
    with np.errstate(all="ignore"):
        done, weights = advance(engine, plan, rates, seeds=seeds, ceiling=1e6)
    assert 0 < done.taken[1] < 80
    assert not done.stopped[1] <= 1e6
    assert_allclose(engine.losses(weights)[1], done.stopped[1], rtol=1e-9)
    assert np.isnan(done.losses[1, done.taken[1] :]).all()
    assert (done.losses[1, : done.taken[1]] <= 1e6).all()
    for point in (0, 2):
        alone, own = advance(engine, plan, rates[point], seeds=seeds[point : point + 1])
        assert_array_equal(alone.losses[0], done.losses[point])
        assert_array_equal(own[0], weights[point])


@every_engine
def test_nan_stops_a_point_under_any_ceiling(make, mid):
    plan = ShortcutBlueprint(width=WIDTH, depth=4, init="xavier")
    engine = make(plan, *samples(), dtype="float64")
    with np.errstate(all="ignore"):
        done, _ = advance(engine, plan, np.full(300, 1e3))
    assert done.taken[0] < 300
    assert np.isnan(done.losses[0, done.taken[0]])


@every_engine
def test_floor_stops_before_the_update(make, mid):
    plan = ShortcutBlueprint(width=WIDTH, depth=4)
    engine = make(plan, *samples(), dtype="float64")
    whole, _ = advance(engine, plan, np.full(40, 0.05))
    floor = whole.losses[0, 25]
    done, weights = advance(engine, plan, np.full(40, 0.05), floor=floor)
    assert done.taken[0] == 25
    assert done.stopped[0] == floor
    assert_array_equal(done.losses[0, :25], whole.losses[0, :25])
    first, _ = advance(engine, plan, np.full(25, 0.05))
    assert np.isnan(first.stopped[0])
    assert_allclose(engine.losses(weights)[0], floor, rtol=1e-12)


@every_engine
def test_two_calls_are_one(make, mid):
    plan = ShortcutBlueprint(width=WIDTH, depth=4)
    engine = make(plan, *samples(), dtype="float64")
    start = np.stack([initial_weights(plan, seed=s) for s in range(3)])
    rule = {"momentum": [0.5, 0.0, 0.9], "weight_decay": [0.0, 0.1, 0.01]}
    rates = np.array([[0.02], [0.05], [0.01]]) * np.ones(20)
    ends = []
    for cuts in ((0, 20), (0, 7, 20)):
        w, v = engine.place(start), engine.place(0 * start)
        for a, b in pairwise(cuts):
            engine.advance(w, v, Rule.of(rates[:, a:b], **rule))
        ends.append((w, v))
    assert_array_equal(ends[0], ends[1])
    assert_array_equal(engine.keep(ends[0][0], np.array([2, 0])), ends[0][0][[2, 0]])
    for point in range(3):
        _, final = plain_loop(
            plan,
            *samples(),
            rates[point],
            seed=point,
            momentum=rule["momentum"][point],
            decay=rule["weight_decay"][point],
        )
        assert_allclose(ends[0][0][point], final, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [FusedEngine, stacked])
def test_relu_is_flat_at_zero(make):
    # All inputs of the ReLU are 0: torch says that nothing passes back.
    plan = ShortcutBlueprint(width=WIDTH, depth=2, mid="relu")
    engine = make(plan, *samples(), dtype="float64")
    start = np.zeros((1, 2, WIDTH, WIDTH))
    start[0, 1] = 1.0
    weights = engine.place(start)
    engine.advance(weights, 0 * weights, Rule.of(np.ones((1, 1)), floor=0.0))
    assert_array_equal(weights, start)


def test_cost_of_moments_does_not_depend_on_samples():
    plan = ShortcutBlueprint(width=WIDTH, depth=8)
    x, y = samples(100)
    few = MomentsEngine(plan, x, y)
    many = MomentsEngine(plan, np.tile(x, (2000, 1)), np.tile(y, (2000, 1)))
    rates, best, losses = np.full(100, 0.05), {}, {}
    for name, engine in [("few", few), ("many", many)] * 4:
        start = time.process_time()
        done, _ = advance(engine, plan, rates)
        spent = time.process_time() - start
        best[name] = min(best.get(name, np.inf), spent)
        losses[name] = done.losses
    assert_allclose(losses["few"], losses["many"], rtol=1e-10)
    assert best["many"] < 5 * best["few"]


@pytest.mark.parametrize("make", [MomentsEngine, FusedEngine])
def test_misuse_is_told_in_a_sentence(make):
    plan, (x, y) = ShortcutBlueprint(width=WIDTH, depth=2), samples(20)
    bad = x.copy()
    bad[3, 1] = np.nan
    for change in ({"mid": "tanh"}, {"pre": "relu"}, {"bias": True}):
        with pytest.raises(ConfigError, match="plain loop"):
            make(plan.with_(**change), x, y)
    with pytest.raises(ConfigError, match="not finite"):
        make(plan, bad, y)
    with pytest.raises(ConfigError, match="not finite in float32"):
        make(plan, 1e39 * x, y, dtype="float32")
    with pytest.raises(ConfigError, match=r"x of shape \(20, 4\)"):
        make(plan, x[:, :4], y)
    with pytest.raises(ConfigError, match="20 inputs and 19 targets"):
        make(plan, x, y[:19])
    with pytest.raises(ConfigError, match="'float16'"):
        make(plan, x, y, dtype="float16")
    engine = make(plan, x, y)
    with pytest.raises(ConfigError, match="through place"):
        engine.losses(np.zeros((1, 3, WIDTH, WIDTH)))
    weights = engine.place(np.zeros((2, 2, WIDTH, WIDTH)))
    with pytest.raises(ConfigError, match="one number per point"):
        Rule.of(np.ones((2, 1)), floor=np.zeros(1))
    with pytest.raises(ConfigError, match="one velocity per point"):
        engine.advance(weights, 0 * weights, Rule.of(np.ones((3, 1))))


@pytest.mark.parametrize(
    ("make", "kernel"),
    [(MomentsEngine, "advance_moments"), (FusedEngine, "advance_fused")],
)
def test_read_only_arrays_compile_nothing_again(make, kernel):
    kernels = import_module(f"theodolite.training.engines.kernels.{make.kind}_kernel")
    plan = ShortcutBlueprint(width=WIDTH, depth=2)
    engine = make(plan, *samples(20))
    given = {name: np.zeros(1) for name in ("momentum", "weight_decay")}
    weights, rates = engine.place(np.zeros((1, 2, WIDTH, WIDTH))), np.ones((1, 2))
    engine.advance(weights, 0 * weights, Rule.of(rates, **given))
    compiled = len(getattr(kernels, kernel).signatures)
    for array in (rates, *given.values()):
        array.flags.writeable = False
    engine.advance(weights, 0 * weights, Rule.of(rates, **given))
    assert len(getattr(kernels, kernel).signatures) == compiled


def kernel_sources():
    """Return a digest of all that kernels are compiled from."""
    folder = Path(import_module("theodolite.training.engines.kernels").__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other instructions")
@pytest.mark.parametrize(
    ("name", "features", "register"),
    [
        ("haswell", "+avx,+avx2,+fma", 32),
        pytest.param("x86-64", "+sse2", 16, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "dtypes",
    [
        ("float64", "float32"),
        pytest.param(("float32", "float64"), marks=pytest.mark.slow),
    ],
    ids="-".join,
)
def test_processors_with_narrower_registers(cache, name, features, register, dtypes):
    """What numba compiles for, it reads from the environment when it is loaded.

    Compiled code is kept from one session to the next while no kernel changes. A
    quarter of them is enough for every day: each takes seconds to compile.
    """
    chosen = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}
    kept = cache.mkdir(f"kernels-{name}-{kernel_sources()}")
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-m",
            "tests.training.other_processor",
            *dtypes,
        ],
        env=os.environ | chosen | {"NUMBA_CACHE_DIR": str(kept)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == register


def test_without_numba_stacks_of_torch_take_over(monkeypatch):
    plan, (x, y) = ShortcutBlueprint(width=WIDTH, depth=2), samples(20)
    auto = partial(choose, strategy="auto", device="cpu")
    assert [auto(plan), auto(plan.with_(mid="relu"))] == ["moments", "fused"]
    monkeypatch.setitem(sys.modules, "numba", None)
    assert [auto(plan), auto(plan.with_(mid="relu"))] == ["stacked", "stacked"]
    with pytest.raises(ConfigError, match=r"pip install 'theodolite\[fast\]'"):
        FusedEngine(plan, x, y)
