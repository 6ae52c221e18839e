"""The kernel of CUDA C, compiled for a CPU, descends as the plain loop does."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.training.stacked_truth import make, rates_of, settings_of, train_alone
from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.training.engines.stacked import engine as stacked
from theodolite.training.engines.stacked import lanes
from theodolite.training.engines.stacked.engine import StackedEngine
from theodolite.training.engines.stacked.nvrtc import as_c

HERE = Path(__file__).parent
RELU = ShortcutBlueprint(width=6, depth=4, mid="relu", init="xavier")
PLAIN = RELU.with_(width=5, depth=6, shortcut=3, skip=False)
LINEAR = ShortcutBlueprint(width=4, depth=2, shortcut=1, init="xavier")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def on_cpu(text, folder, blocks):
    """Compile what would be compiled for a device; return it as the engine calls it."""
    before, after = (HERE / f"lanes_on_cpu.{end}" for end in ("hpp", "cpp"))
    (folder / "lanes.cpp").write_text(
        f'#include "{before}"\n{text}\n#include "{after}"'
    )
    library = folder / "lanes.so"
    options = ["-std=c++20", "-O0", "-w", "-pthread", "-shared", "-fPIC"]
    subprocess.run(
        ["g++", *options, folder / "lanes.cpp", "-o", library], check=True, timeout=60
    )
    found = ctypes.CDLL(str(library))

    def launched(name):
        return lambda grid, *given: found[name](*grid, *(as_c(one) for one in given))

    return SimpleNamespace(
        passes=launched("launch_lanes"), sums=launched("launch_sums"), blocks=blocks
    )


@needs_compiler
@pytest.mark.parametrize("blueprint", [RELU, PLAIN, LINEAR], ids=str)
def test_descends_as_the_plain_loop(blueprint, tmp_path, monkeypatch):
    """Blocks share tiles across points, the last tile is not full, one point stops."""
    made = on_cpu(lanes.source(blueprint), tmp_path, blocks=4)
    monkeypatch.setattr(lanes, "kernels", lambda text, device: made)
    monkeypatch.setattr(stacked, "_lanes", lambda *given: lanes.LanesPasses)
    data, weights = make(blueprint, samples=300, points=3)
    rates, settings = rates_of(blueprint, 3, points=3), settings_of(3)
    losses, _ = train_alone(blueprint, data, weights, rates, settings, 1, "float32")
    settings["floor"][1] = 0.5 * (losses[0] + losses[1])
    engine = StackedEngine(
        blueprint, *data, dtype="float32", device="cpu", method="cuda"
    )
    placed, velocity = engine.place(weights), engine.place(np.zeros_like(weights))
    done = engine.advance(placed, velocity, rates, **settings)
    for point in (0, 2):
        wanted, after = train_alone(
            blueprint, data, weights, rates, settings, point, "float32"
        )
        np.testing.assert_allclose(done.losses[point], wanted, rtol=1e-5)
        np.testing.assert_allclose(engine.fetch(placed, point), after, atol=1e-6)
    np.testing.assert_array_equal(done.taken, [3, 1, 3])
    np.testing.assert_allclose(done.stopped[1], losses[1], rtol=1e-5)
    assert "(cuda)" in engine.name
    tiles = engine._passes.tiles * 3
    assert engine._updates.workspace.blocks == min(4, tiles)


def test_little_memory_makes_fewer_blocks_and_points(monkeypatch):
    monkeypatch.setattr(
        lanes, "kernels", lambda text, device: SimpleNamespace(blocks=2_000)
    )
    monkeypatch.setattr(stacked, "_lanes", lambda *given: lanes.LanesPasses)
    data, _ = make(RELU, samples=1_001)

    def passes(memory):
        given = {"dtype": "float32", "device": "cpu", "method": "cuda"}
        return StackedEngine(RELU, *data, **given, memory=memory)._passes

    roomy, tight = passes(2**30), passes(20_000)
    assert (roomy.room(50), roomy.blocks(50)) == (50, 50 * roomy.tiles)
    room = tight.room(50)
    assert 1 <= room < 50
    blocks = tight.blocks(room)
    assert 1 <= blocks < room * tight.tiles
    assert blocks * tight.block_bytes + room * tight.gradient_bytes <= 20_000


def test_what_the_kernel_cannot_take_is_said_in_a_sentence():
    def refused(reason, blueprint=RELU, dtype="float32", samples=20):
        data, _ = make(blueprint, samples=samples)
        with pytest.raises(ConfigError, match=reason):
            StackedEngine(blueprint, *data, dtype=dtype, device="cpu", method="cuda")

    refused("cannot take float64", dtype="float64")
    refused("width 13, only up to 12", RELU.with_(width=13))
    refused("shortcut 4, only up to 3", RELU.with_(shortcut=4))
    refused("device cpu, only CUDA devices")


def test_without_a_compiler_of_cuda_auto_goes_on(monkeypatch):
    def missing(text, device):
        raise OSError("libnvrtc.so.13 is neither on the system nor beside torch")

    monkeypatch.setattr(lanes, "kernels", missing)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    device = torch.device("cuda")
    reason = lanes.unfit(RELU, 20, torch.float32, device)
    assert reason is not None
    assert reason.startswith("this installation (libnvrtc.so.13")
    chosen = stacked._passes(RELU, 20, torch.float32, device, "auto")
    assert chosen is not lanes.LanesPasses
