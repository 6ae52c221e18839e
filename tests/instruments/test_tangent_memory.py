"""The tangent kernel keeps within the memory that it says it takes."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.core import MeasurementError
from theodolite.instruments import TangentKernel, Team, tangent_kernel
from theodolite.instruments.tangents.layer_sweep import Plan, Unit
from theodolite.instruments.tangents.product_strategy import kernel_noise
from theodolite.instruments.tangents.strategies import Share, share_out


@pytest.mark.parametrize(("room", "samples"), [(0, [2]), (2**30, [2, 16])])
def test_rounding_is_told_by_as_many_samples_a_pass_as_there_is_room_for(room, samples):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))
    x = torch.randn(20, 5)
    truth = tangent_kernel(model.double(), x.double(), norm_mode="eval").matrix
    moved = torch.as_tensor(truth + 1e-4 * np.eye(40))
    model, made = model.float(), []

    def make(micro_batch):
        made.append(micro_batch)
        return TangentKernel(model, x, norm_mode="eval", micro_batch=micro_batch)

    noise = kernel_noise(make, moved.float(), 1, Team(), room=room)
    assert made == samples
    # Bounds at 95 % on an error of the Frobenius norm 1e-4 · √40, not on much more.
    assert 1e-4 * 40**0.5 < noise.norm < 1e-3 * 40**0.5


MEMORY = """
import sys
import torch
from torch import nn
from theodolite.instruments import tangent_kernel

def peak():
    # Of this program alone: ru_maxrss starts at the peak of whoever started it.
    with open("/proc/self/status") as status:
        (line,) = [line for line in status if line.startswith("VmHWM")]
    return 1024 * int(line.split()[1])

def forget():
    with open("/proc/self/clear_refs", "w") as control:
        control.write("5")  # lets the peak start anew

torch.set_num_threads(1)
net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(),
    nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    nn.Linear(64, 10))
x = torch.randn(96, 3, 8, 8)
tangent_kernel(net, x[:4], norm_mode="eval")
for allowed in map(int, sys.argv[1:]):
    forget()
    before = peak()
    reading = tangent_kernel(net, x, norm_mode="eval", matrix_bytes=allowed)
    print(reading.peak_bytes, peak() - before)
    del reading
"""
ALLOWED = [70 * 2**20, 2 * 2**30]


@pytest.fixture(scope="module")
def peaks():
    """Forecast and peak memory by what was allowed, in a process of their own.

    What is freed goes back at once: glibc would keep more and more of it, in pieces.
    """
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, *map(str, ALLOWED)],
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": str(2**17)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    found = [tuple(map(int, line.split())) for line in lines]
    return dict(zip(ALLOWED, found, strict=True))


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="reads /proc"
)
@pytest.mark.parametrize("allowed", ALLOWED)
def test_memory_keeps_within_the_forecast(peaks, allowed):
    forecast, taken = peaks[allowed]
    assert forecast <= allowed
    # The activations' derivatives alone: a peak below them was not measured.
    assert taken >= 96 * 10 * 64 * 8 * 8 * 4
    assert taken <= 1.1 * forecast


@pytest.mark.parametrize(
    ("ranks", "least"),
    [
        (1, {"fixed": 100 * 40, "layer": 600, "column": 2 * 20 * 8}),
        # What all ranks have of a layer comes twice; a rank's block, and those of all.
        (3, {"fixed": 100 * 40 + 2 * 3 * 600, "layer": 600, "column": 2 * 7 * 5 * 8}),
    ],
)
def test_memory_is_shared_out_to_the_byte(ranks, least):
    """Ten rows of a matrix in float64, of twenty of a Jacobian, two layers and a rest.

    A matrix is held three times as it is and twice in float64.
    """
    rest = [nn.Parameter(torch.zeros(3))]
    sheet = Plan([Unit([], 600), Unit([], 300)], rest, 2)
    given = {"size": 10, "rows": 20, "itemsize": 8, "ranks": ranks, "most": 7}
    bare = sum(least.values())
    with pytest.raises(MeasurementError, match="20 outputs takes"):
        share_out(sheet, **given, matrix_bytes=bare - 1)
    found = share_out(sheet, **given, matrix_bytes=bare)
    column = least["column"]
    assert found == Share(1, 600, column, bare)
    # Half of what is left is for columns, then layers take theirs, then the rest.
    more = share_out(sheet, **given, matrix_bytes=bare + 4 * column + 100)
    left = 4 * column + 100 - 2 * column
    assert more == Share(3, 600 + min(300, left), 3 * column, more.peak)
    assert more.peak == bare + 2 * column + min(300, left)
    full = share_out(sheet, **given, matrix_bytes=10**9)
    assert full == Share(1 + 4096, 900, 4097 * column, full.peak)
