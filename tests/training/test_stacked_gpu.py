"""On a CUDA device the stacked engine descends as the plain loop does."""

import numpy as np
import pytest
import torch

from tests.training.stacked_truth import CASES, make, rates_of, settings_of, train_alone
from theodolite.core import ShortcutBlueprint
from theodolite.training.engines.protocol import Rule
from theodolite.training.engines.stacked.engine import StackedEngine

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
WAYS = {
    "torch, float64": ("torch", "float64", 1e-9),
    "torch, float32": ("torch", "float32", 1e-5),
    "cuda, float32": ("cuda", "float32", 1e-5),
}
RELU = ShortcutBlueprint(width=10, depth=8, mid="relu", init="xavier")


def advance(engine, weights, rates, settings):
    placed, velocity = engine.place(weights), engine.place(np.zeros_like(weights))
    return engine.advance(placed, velocity, Rule.of(rates, **settings)), placed


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("blueprint", CASES, ids=str)
def test_trajectories_are_those_of_the_plain_loop(blueprint, way):
    method, dtype, tolerance = WAYS[way]
    data, weights = make(blueprint)
    rates, settings = rates_of(blueprint, 60), settings_of(3)
    engine = StackedEngine(blueprint, *data, dtype=dtype, method=method)
    done, placed = advance(engine, weights, rates, settings)
    for point in range(3):
        losses, after = train_alone(
            blueprint, data, weights, rates, settings, point, dtype
        )
        np.testing.assert_allclose(done.losses[point], losses, rtol=tolerance)
        scale = np.abs(after).max()
        np.testing.assert_allclose(
            engine.fetch(placed, point), after, atol=tolerance * scale
        )
    np.testing.assert_array_equal(done.taken, 60)
    assert f"({method})" in engine.name
    assert engine.name.endswith(", CUDA graph")
    assert engine._updates is not None
    assert engine._updates.graph is not None


@pytest.mark.parametrize("width", [10, 7])
def test_fused_kernel_over_many_tiles(width):
    """Several tiles a program, several programs a point, the last tile not full."""
    blueprint = RELU.with_(width=width)
    data, weights = make(blueprint, samples=20_011)
    rates, settings = 0.2 * rates_of(blueprint, 30), settings_of(3)
    engine = StackedEngine(blueprint, *data, dtype="float32", method="cuda")
    done, _ = advance(engine, weights, rates, settings)
    exact = StackedEngine(blueprint, *data, dtype="float64", method="torch")
    wanted, _ = advance(exact, weights, rates, settings)
    np.testing.assert_allclose(done.losses, wanted.losses, rtol=1e-5)
    again, _ = advance(engine, weights, rates, settings)
    np.testing.assert_array_equal(again.losses, done.losses)


def test_narrow_networks_take_the_fused_kernel_and_wide_ones_torch():
    for width, label in ((12, "cuda"), (13, "torch")):
        blueprint = RELU.with_(width=width)
        data, _ = make(blueprint, samples=40)
        assert f"({label})" in StackedEngine(blueprint, *data).name


@pytest.mark.parametrize("method", ["torch", "cuda"])
def test_points_stop_and_leave_the_others_alone(method):
    data, weights = make(RELU)
    rates, settings = rates_of(RELU, 120), settings_of(3)
    rates[1] = 1e3
    alone = {name: value[[0, 2]] for name, value in settings.items()}

    def engine():
        return StackedEngine(RELU, *data, dtype="float32", method=method)

    free, _ = advance(engine(), weights[[0, 2]], rates[[0, 2]], alone)
    settings["floor"][2] = free.losses[1, 70]
    stacked = engine()
    done, placed = advance(stacked, weights, rates, settings)
    assert done.taken[0] == 120
    assert done.taken[1] < 120
    assert abs(done.taken[2] - 70) <= 1
    np.testing.assert_allclose(done.losses[0], free.losses[0], rtol=1e-6)
    assert torch.isfinite(placed[[0, 2]]).all()
    kept = stacked.keep(placed, np.array([2, 0]))
    np.testing.assert_allclose(
        stacked.losses(kept), stacked.losses(placed)[[2, 0]], rtol=1e-6
    )


@pytest.mark.parametrize("method", ["torch", "cuda"])
def test_little_memory_changes_nothing(method):
    data, weights = make(RELU, samples=1_001)
    rates, settings = rates_of(RELU, 10), settings_of(3)
    whole, _ = advance(
        StackedEngine(RELU, *data, method=method), weights, rates, settings
    )
    small = StackedEngine(RELU, *data, method=method, memory=70_000)
    parts, _ = advance(small, weights, rates, settings)
    np.testing.assert_allclose(parts.losses, whole.losses, rtol=1e-5)
