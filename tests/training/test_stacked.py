"""What is special to the stacked engine; tests of all engines are in test_engines."""

import numpy as np
import pytest
import torch

from tests.training.stacked_truth import make, rates_of, settings_of
from theodolite.core import ConfigError, ShortcutBlueprint, UnknownNameError
from theodolite.training.engines.protocol import Rule
from theodolite.training.engines.stacked.engine import StackedEngine
from theodolite.training.engines.stacked.updates import full_precision

TOLERANCE = {"float64": 1e-9, "float32": 1e-5}
RELU = ShortcutBlueprint(width=5, depth=4, mid="relu", init="xavier")


def engine(blueprint, data, dtype="float64", **changes):
    given = {"dtype": dtype, "device": "cpu", "method": "torch"} | changes
    return StackedEngine(blueprint, *data, **given)


def advance(engine, weights, rates, settings):
    placed, velocity = engine.place(weights), engine.place(np.zeros_like(weights))
    return engine.advance(placed, velocity, Rule.of(rates, **settings)), placed


def test_points_stop_at_their_limits_and_leave_the_others_alone():
    data, weights = make(RELU)
    rates, settings = rates_of(RELU, 60), settings_of(3)
    free, _ = advance(engine(RELU, data), weights, rates, settings)
    floor, ceiling = free.losses[0, 20], free.losses[2, 0] * 0.999
    limits = settings | {
        "floor": np.array([floor, -np.inf, -np.inf]),
        "ceiling": np.array([np.inf, np.inf, ceiling]),
    }
    stacked = engine(RELU, data)
    done, placed = advance(stacked, weights, rates, limits)
    np.testing.assert_array_equal(done.taken, [20, 60, 0])
    np.testing.assert_array_equal(done.stopped, [floor, np.nan, free.losses[2, 0]])
    np.testing.assert_array_equal(done.losses[1], free.losses[1])
    np.testing.assert_array_equal(done.losses[0, :20], free.losses[0, :20])
    assert np.isnan(done.losses[0, 20:]).all()
    assert np.isnan(done.losses[2]).all()
    np.testing.assert_array_equal(stacked.fetch(placed, 2), weights[2])
    np.testing.assert_array_equal(stacked.losses(placed)[[0, 2]], done.stopped[[0, 2]])


@pytest.mark.parametrize("memory", [1, 20_000, 60_000])
def test_little_memory_changes_nothing(memory):
    data, weights = make(RELU)
    rates, settings = rates_of(RELU, 4), settings_of(3)
    whole, _ = advance(engine(RELU, data), weights, rates, settings)
    small = engine(RELU, data, memory=memory)
    parts, placed = advance(small, weights, rates, settings)
    np.testing.assert_allclose(parts.losses, whole.losses, rtol=1e-12)
    np.testing.assert_allclose(
        small.losses(placed), engine(RELU, data).losses(placed), rtol=1e-12
    )


def test_memory_is_flat_in_the_number_of_points():
    data, weights = make(RELU)
    stacked = engine(RELU, data, memory=100_000)
    sizes = []
    for points in (3, 30, 300):
        stacked.losses(stacked.place(weights[np.arange(points) % 3]))
        space = stacked._updates.workspace
        sizes.append(space.acts.numel() * space.acts.element_size())
    assert max(sizes) <= 100_000


def test_tf32_is_off_inside_and_as_before_outside():
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        with full_precision():
            assert torch.get_float32_matmul_precision() == "highest"
            assert not torch.backends.cuda.matmul.allow_tf32
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_what_it_cannot_train_is_said_in_a_sentence():
    data, _ = make(RELU)
    with pytest.raises(ConfigError, match="only activation is ReLU at mid"):
        engine(RELU.with_(mid="tanh"), data)
    with pytest.raises(ConfigError, match="pass both as"):
        engine(RELU, (data[0], data[1][:-1]))
    with pytest.raises(UnknownNameError, match="unknown method"):
        engine(RELU, data, method="opencl")
    with pytest.raises(UnknownNameError, match="unknown dtype"):
        engine(RELU, data, dtype="bfloat16")
