"""Run by a test in a process of its own, in which Triton interprets its kernels."""

import numpy as np

from tests.training.stacked_truth import make, rates_of, settings_of, train_alone
from theodolite.core import ShortcutBlueprint
from theodolite.training.engines.stacked import triton as stacked_triton
from theodolite.training.engines.stacked.engine import StackedEngine

TILE = stacked_triton.Tile
RELU = ShortcutBlueprint(width=5, depth=2, mid="relu", init="xavier")
PLAIN = ShortcutBlueprint(
    width=17, depth=3, shortcut=3, mid="relu", skip=False, init="xavier"
)
LINEAR = ShortcutBlueprint(width=3, depth=2, shortcut=1, init="xavier")
# What to train, how it is laid out, samples, and bytes: few make a program go round.
CASES = {
    "relu": (RELU, TILE(16), 70, 8_800),
    "plain": (PLAIN, TILE(16, precision="tf32x3"), 20, None),
    "linear": (LINEAR, TILE(16), 20, None),
}


def compare(blueprint, tile, samples, memory):
    """Train two points, of which one stops, on a tile that is not full."""
    data, weights = make(blueprint, samples=samples, points=2)
    rates, settings = rates_of(blueprint, 2, points=2), settings_of(2)
    losses, _ = train_alone(blueprint, data, weights, rates, settings, 1, "float32")
    settings["floor"][1] = 0.5 * (losses[0] + losses[1])
    engine = StackedEngine(
        blueprint, *data, dtype="float32", device="cpu", method="triton", memory=memory
    )
    engine._passes.tile = tile
    placed, velocity = engine.place(weights), engine.place(np.zeros_like(weights))
    done = engine.advance(placed, velocity, rates, **settings)
    wanted, after = train_alone(blueprint, data, weights, rates, settings, 0, "float32")
    np.testing.assert_allclose(done.losses[0], wanted, rtol=1e-5)
    np.testing.assert_allclose(engine.fetch(placed, 0), after, atol=1e-6)
    np.testing.assert_array_equal(done.taken, [2, 1])
    np.testing.assert_allclose(done.stopped[1], losses[1], rtol=1e-5)
    assert "(triton)" in engine.name
    if memory is not None:
        workspace = engine._updates.workspace
        assert 1 < workspace.splits < workspace.tiles


if __name__ == "__main__":
    for name, case in CASES.items():
        compare(*case)
        print(name)
