"""The kernel of CUDA C, compiled for a CPU, descends as the plain loop does."""

import ctypes
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.training.stacked_truth import make, rates_of, settings_of, train_alone
from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.training.engines.protocol import Rule
from theodolite.training.engines.stacked import cuda_kernel, nvrtc
from theodolite.training.engines.stacked import engine as stacked
from theodolite.training.engines.stacked.engine import StackedEngine
from theodolite.training.engines.stacked.nvrtc import CudaProgramError, as_ctypes

HERE = Path(__file__).parent
RELU = ShortcutBlueprint(width=6, depth=4, mid="relu", init="xavier")
PLAIN = RELU.with_(width=5, depth=6, shortcut=3, skip=False)
LINEAR = ShortcutBlueprint(width=4, depth=2, shortcut=1, init="xavier")
BARRIERS = "#include <barrier>\n#ifndef __cpp_lib_barrier\n#error\n#endif"


@pytest.fixture(scope="module")
def compiler():
    """Options of a compiler that knows barriers, as GCC does from 11 on."""
    options = ["g++", "-std=c++20"]
    check = [*options, "-fsyntax-only", "-x", "c++", "-"]
    if (
        shutil.which("g++") is None
        or subprocess.run(
            check, input=BARRIERS, text=True, capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no g++ with <barrier>")
    return [*options, "-O0", "-w", "-pthread", "-shared", "-fPIC"]


def on_cpu(compiler, text, folder, blocks):
    """Compile what would be compiled for a device; return it as the engine calls it."""
    before, after = (HERE / f"lanes_on_cpu.{end}" for end in ("hpp", "cpp"))
    (folder / "lanes.cpp").write_text(
        f'#include "{before}"\n{text}\n#include "{after}"'
    )
    library = folder / "lanes.so"
    subprocess.run(
        [*compiler, folder / "lanes.cpp", "-o", library], check=True, timeout=250
    )
    loaded = ctypes.CDLL(str(library))

    def launched(name):
        return lambda grid, *given: loaded[name](
            *grid, *(as_ctypes(one) for one in given)
        )

    return SimpleNamespace(
        passes=launched("launch_lanes"), sums=launched("launch_sums"), blocks=blocks
    )


@pytest.mark.parametrize("blueprint", [RELU, PLAIN, LINEAR], ids=str)
def test_descends_as_the_plain_loop(blueprint, compiler, tmp_path, monkeypatch):
    """Blocks share tiles across points, the last tile is not full, one point stops."""
    made = on_cpu(compiler, cuda_kernel.source(blueprint), tmp_path, blocks=4)
    monkeypatch.setattr(cuda_kernel, "kernels", lambda text, device: made)
    monkeypatch.setattr(stacked, "_unsupported_reason", lambda *given: None)
    data, weights = make(blueprint, samples=300, points=3)
    rates, settings = rates_of(blueprint, 3, points=3), settings_of(3)
    losses, _ = train_alone(blueprint, data, weights, rates, settings, 1, "float32")
    settings["floor"][1] = 0.5 * (losses[0] + losses[1])
    engine = StackedEngine(
        blueprint, *data, dtype="float32", device="cpu", method="cuda"
    )
    placed, velocity = engine.place(weights), engine.place(np.zeros_like(weights))
    done = engine.advance(placed, velocity, Rule.of(rates, **settings))
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


def planned(monkeypatch, memory, blueprint=RELU, samples=1_001):
    """Return the plan for a device of 2,000 blocks, which launches nothing."""
    device = SimpleNamespace(blocks=2_000)
    monkeypatch.setattr(cuda_kernel, "kernels", lambda text, where: device)
    monkeypatch.setattr(stacked, "_unsupported_reason", lambda *given: None)
    given = {"dtype": "float32", "device": "cpu", "method": "cuda"}
    data, _ = make(blueprint, samples=samples)
    return StackedEngine(blueprint, *data, **given, memory=memory)._passes


def held(workspace):
    """Return the bytes of all buffers of a workspace."""
    return sum(v.nbytes for v in vars(workspace).values() if torch.is_tensor(v))


@pytest.mark.parametrize("memory", [10_000, 20_000, 100_000, 2**30])
def test_buffers_take_no_more_than_their_memory(memory, monkeypatch):
    passes = planned(monkeypatch, memory)
    points_at_once = passes.points_at_once(50)
    workspace = passes.workspace(points_at_once)
    assert (
        held(workspace)
        == passes.stack_bytes(points_at_once, workspace.blocks)
        <= memory
    )
    if memory == 2**30:
        assert (points_at_once, workspace.blocks) == (50, 50 * passes.tiles)
    else:
        assert workspace.blocks < points_at_once * passes.tiles


@pytest.mark.parametrize("mebibytes", [2, 64])
def test_little_memory_goes_to_blocks_before_points(mebibytes, monkeypatch):
    """Points that wait cost a launch each; a card with few blocks stands still."""
    deep = RELU.with_(width=10, depth=64)
    passes = planned(monkeypatch, mebibytes * 2**20, deep, samples=60_000)
    most = passes.blocks(1)
    assert most >= 5 * mebibytes
    for points in (1, 90, 2_500):
        assert passes.blocks(passes.points_at_once(points)) >= 0.8 * most


def test_enough_memory_moves_all_points_at_once(monkeypatch):
    passes = planned(monkeypatch, 16 * 2**30)
    assert passes.points_at_once(10_000) == 10_000
    assert passes.blocks(10_000) == 2_000


def test_less_memory_than_one_point_takes_moves_one(monkeypatch):
    passes = planned(monkeypatch, 1)
    assert (passes.points_at_once(50), passes.blocks(1)) == (1, 1)


def test_what_the_kernel_cannot_take_is_said_in_a_sentence():
    def refused(reason, blueprint=RELU, dtype="float32", samples=20):
        data, _ = make(blueprint, samples=samples)
        with pytest.raises(ConfigError, match=reason):
            StackedEngine(blueprint, *data, dtype=dtype, device="cpu", method="cuda")

    refused("cannot take float64", dtype="float64")
    refused("width 13, only up to 12", RELU.with_(width=13))
    refused("shortcut 4, only up to 3", RELU.with_(shortcut=4))
    refused("device cpu, only CUDA devices")


CARD = torch.device("cuda")


@pytest.fixture
def card(monkeypatch):
    """A device that could run the kernel, as far as one asks before it is compiled."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device", lambda index: nullcontext())


def failing(problem):
    def kernels(text):
        raise problem

    return kernels


def test_without_a_compiler_of_cuda_auto_warns_once_and_goes_on(card, monkeypatch):
    problem = CudaProgramError("libnvrtc.so.13 is neither here nor there")
    monkeypatch.setattr(cuda_kernel, "Kernels", failing(problem))
    stacked._warn_of_failure.cache_clear()

    def twice():
        return [stacked._passes(RELU, 20, torch.float32, CARD, "auto") for _ in "12"]

    with pytest.warns(RuntimeWarning, match="libnvrtc.so.13 is neither") as told:
        chosen = twice()
    assert len(told) == 1
    assert cuda_kernel.CudaPasses not in chosen
    with pytest.raises(ConfigError, match=r"this installation \(libnvrtc.so.13"):
        stacked._passes(RELU, 20, torch.float32, CARD, "cuda")


def test_what_neither_nvrtc_nor_the_driver_says_is_raised(card, monkeypatch):
    monkeypatch.setattr(cuda_kernel, "Kernels", failing(RuntimeError("out of memory")))
    with pytest.raises(RuntimeError, match="out of memory"):
        stacked._passes(RELU, 20, torch.float32, CARD, "auto")


def test_kernels_are_of_the_device_that_is_current(card, monkeypatch):
    monkeypatch.setattr(cuda_kernel, "Kernels", lambda text: SimpleNamespace())
    text = "// of no other test"
    first = cuda_kernel.kernels(text, CARD)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    second = cuda_kernel.kernels(text, CARD)
    assert first is not second
    assert cuda_kernel.kernels(text, torch.device("cuda:0")) is first
    assert cuda_kernel.kernels(text, torch.device("cuda:1")) is second


class Refusing:
    """An NVRTC that compiles nothing, and says why on many lines."""

    log = b"kernel.cu(3): error: expected a ;\n\n  at\n" + 99 * b"1 error\n" + b"\0"

    def nvrtcCreateProgram(self, *given):
        return 0

    def nvrtcCompileProgram(self, *given):
        return 6

    def nvrtcGetProgramLogSize(self, program, size):
        size._obj.value = len(self.log)

    def nvrtcGetProgramLog(self, program, text):
        text.raw = self.log

    def nvrtcDestroyProgram(self, place):
        return 0


def test_what_nvrtc_says_is_one_short_line(card, monkeypatch):
    monkeypatch.setattr(nvrtc, "_nvrtc", Refusing)
    with pytest.raises(CudaProgramError) as refused:
        nvrtc.compiled("void f() {}")
    said = str(refused.value)
    assert said.startswith("NVRTC: kernel.cu(3): error: expected a ; at 1 error")
    assert "\n" not in said
    assert len(said) < 320
