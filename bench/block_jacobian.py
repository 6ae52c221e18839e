"""Singular values of a residual block's Jacobian in train mode."""

import copy

import numpy as np
import torch
from torch import Tensor, nn

from bench.networks import Residual
from bench.peak_memory import both, rise_mib
from bench.timing import Result, cpu_seconds
from theodolite.instruments import SingularValues, singular_values

TITLE = "Jacobian of a residual block"
TASK = "singular values of a train-mode residual block, n = 6,272"
LARGE = "the same at n = 401,408, where a dense Jacobian takes 600 GiB"
PEER = "torch.func.jacrev + Gram + eigvalsh (buffers taken out, else it raises)"


class Bare(Residual):
    """The block without its last ReLU, whose Jacobian has full rank."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's outputs."""
        branch = torch.relu(self.norm1(self.conv1(x)))
        return x + self.norm2(self.conv2(branch))


def run() -> list[Result]:
    """Compare distributions first, within the bound that ours states, then costs."""
    return [
        _compared(Residual, "as in ResNet", "relu"),
        _compared(Bare, "without the last ReLU", "bare"),
        _large(),
    ]


def block(kind: type[nn.Module], samples: int, side: int) -> tuple[nn.Module, Tensor]:
    """Return a model of one block with 16 channels, and a batch of float32."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(kind(16)).train()
        return model, torch.randn(samples, 16, side, side)


def ours(model: nn.Module, x: Tensor) -> SingularValues:
    """Return the distribution; the way is chosen by size."""
    return singular_values(model, x, block="0", norm_mode="batch")


def dense(model: nn.Module, x: Tensor) -> np.ndarray:
    """Return all singular values from the whole Jacobian."""
    bare = copy.deepcopy(model)
    for norm in bare.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.track_running_stats = False
            norm.running_mean = norm.running_var = norm.num_batches_tracked = None
    jacobian = torch.func.jacrev(bare, chunk_size=128)(x).reshape(x.numel(), -1)
    squares = torch.linalg.eigvalsh(jacobian.detach() @ jacobian.detach().T)
    return squares.clamp_min(0).sqrt().numpy()


def _compared(kind: type[nn.Module], words: str, case: str) -> Result:
    model, x = block(kind, 8, 7)
    ours(model, x[:2])
    mine, reading = cpu_seconds(lambda: ours(model, x), 3)
    other, values = cpu_seconds(lambda: dense(model, x), 1)
    # In float32 a Gram matrix tells zero from values above 1e-2 of the largest only.
    points = reading.points[reading.points > 0.02 * reading.values[0]]
    measured = reading.cdf[-len(points) :]
    truth = np.searchsorted(values, points, side="right") / len(values)
    gap = float(np.abs(measured - truth).max())
    task = f"{TASK}, {words}"
    if gap > reading.bound:
        return Result(task, PEER, None, f"no: {gap:.1e}", "results differ")
    return Result(
        task,
        PEER,
        other / mine,
        f"to {gap:.0e} of the distribution",
        f"bound {reading.bound:.2g} printed, by {reading.method}; rank "
        f"{reading.rank:,} ± {reading.rank_error}",
        both("bench.block_jacobian", f"peer, {case}", f"ours, {case}"),
    )


def _large() -> Result:
    model, x = block(Residual, 32, 28)
    seconds, reading = cpu_seconds(lambda: ours(model, x), 1)
    peak = rise_mib("bench.block_jacobian", "ours, large")
    return Result(
        LARGE,
        "none can",
        None,
        f"stated: within {reading.bound:.2g} at level {reading.level}",
        f"{reading.method}, {reading.status}; within a minute of processor time: "
        f"{'yes' if seconds < 60 else 'no'}",
        "" if peak is None else f"{peak:.0f} MiB",
    )


def _case(function, kind, samples, side):
    def prepare():
        model, x = block(kind, samples, side)
        ours(model, x[:2, :, :4, :4])
        return lambda: function(model, x)

    return prepare


CASES = {
    "ours, relu": _case(ours, Residual, 8, 7),
    "peer, relu": _case(dense, Residual, 8, 7),
    "ours, bare": _case(ours, Bare, 8, 7),
    "peer, bare": _case(dense, Bare, 8, 7),
    "ours, large": _case(ours, Residual, 32, 28),
}
