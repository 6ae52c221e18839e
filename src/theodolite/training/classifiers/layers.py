r"""Forward and backward through a stack of classifiers of one shape, by formula.

States lie as (runs, channels, batch, height, width), so that a layer is one batched
product of matrices and batch normalisation is a normalisation of rows. Runs that see
the same samples share the product of their first layer.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from theodolite.core import ClassifierBlueprint


def loss_gradient(outputs: Tensor, targets: Tensor, loss: str) -> Tensor:
    """Return the derivative of the mean loss by outputs (..., outputs, batch)."""
    batch = outputs.shape[-1]
    if loss == "square":
        return (outputs - targets) * (2 / batch)
    if outputs.shape[-2] == 1:
        return -targets * torch.sigmoid(-targets * outputs) / batch
    return (outputs.softmax(dim=-2) - targets) / batch


def mean_loss(outputs: Tensor, targets: Tensor, loss: str) -> Tensor:
    """Return the mean loss of outputs (samples, outputs)."""
    if loss == "square":
        return (outputs - targets).square().sum(dim=1).mean()
    if outputs.shape[1] == 1:
        return functional.softplus(-targets * outputs).mean()
    return functional.cross_entropy(outputs, targets)


EPS = 1e-5  # as torch's batch norms have it
# Functions of torch that run no Python code.
_aten: Any = torch.ops.aten
Statistics = list[tuple[Tensor, Tensor]]


def unfold(x: Tensor) -> Tensor:
    """Return windows of 3 x 3 pixels at stride 2, (runs, 9 channels, places).

    Args:
        x: (runs, channels, batch, height, width).
    """
    runs, channels, batch, height, width = x.shape
    padded = torch.nn.functional.pad(x, (1, 1, 1, 1))
    high, wide = (height + 1) // 2, (width + 1) // 2
    a, b, c, d, e = padded.stride()
    windows = padded.as_strided(
        (runs, channels, 3, 3, batch, high, wide), (a, b, d, e, c, 2 * d, 2 * e)
    )
    return windows.reshape(runs, channels * 9, batch * high * wide)


def fold(windows: Tensor, shape: torch.Size) -> Tensor:
    """Add windows back where they came from: the transpose of :func:`unfold`."""
    runs, channels, batch, height, width = shape
    high, wide = (height + 1) // 2, (width + 1) // 2
    parts = windows.view(runs, channels, 3, 3, batch, high, wide)
    padded = windows.new_zeros(runs, channels, batch, 2 * high + 1, 2 * wide + 1)
    for row in range(3):
        for column in range(3):
            padded[..., row : row + 2 * high : 2, column : column + 2 * wide : 2] += (
                parts[:, :, row, column]
            )
    return padded[..., 1 : height + 1, 1 : width + 1]


class StackedLayers:
    """Passes of classifiers of one blueprint through given weights.

    Attributes:
        blueprint: Their shape; norms at the start do not matter here.
    """

    def __init__(self, blueprint: ClassifierBlueprint) -> None:
        self.blueprint = blueprint
        self.images = blueprint.family == "convolutional"
        self.normalised = blueprint.norm == "batch"

    def forward(
        self,
        weights: list[Tensor],
        batch: Tensor,
        *,
        statistics: Statistics | None = None,
        trace: list[Any] | None = None,
        measured: Statistics | None = None,
    ) -> Tensor:
        """Return outputs (runs, outputs, batch).

        Args:
            weights: One tensor per layer, (runs, rows, columns).
            batch: Samples (groups, batch, ...); runs are in order of groups, equally
                many in each.
            statistics: Means and variances to normalise by; by default the batch's.
            trace: Filled with what :meth:`backward` needs.
            measured: Filled with the means and variances of the batch.
        """
        state = self._enter(batch)
        for place, weight in enumerate(weights):
            shape = state.shape
            columns = self._columns(state, place)
            made = _product(weight, columns)
            if place == len(weights) - 1:
                if trace is not None:
                    trace.append((columns, shape, None))
                return made
            held = statistics[place] if statistics else None
            made, spread = self._normalise(made, held, measured)
            active = made.relu_()
            if trace is not None:
                trace.append((columns, shape, (active, spread)))
            state = self._leave(active, place)
        raise AssertionError("a classifier has layers")

    def backward(
        self,
        weights: list[Tensor],
        trace: list[Any],
        error: Tensor,
        velocity: list[Tensor],
        momentum: float,
    ) -> None:
        """Decay velocities by the momentum and add the gradient to them."""
        for place in reversed(range(len(weights))):
            columns, shape, _ = trace[place]
            groups = len(columns)
            velocity[place].view(groups, -1, columns.shape[1]).baddbmm_(
                error.reshape(groups, -1, error.shape[-1]),
                columns.transpose(1, 2),
                beta=momentum,
            )
            if place == 0:
                return
            back = torch.bmm(weights[place].transpose(1, 2), error)
            back = self._return(back, shape, place)
            active, spread = trace[place - 1][2]
            error = _aten.threshold_backward(back.view_as(active), active, 0)
            if spread is not None:
                raw, mean, rstd = spread
                error = _aten.native_layer_norm_backward(
                    error, raw, raw.shape[-1:], mean, rstd, None, None,
                    [True, False, False],
                )[0]  # fmt: skip

    def _enter(self, batch: Tensor) -> Tensor:
        if self.images:
            shape = (*batch.shape[:2], *self.blueprint.inputs)
            return batch.reshape(shape).transpose(1, 2)
        return batch.flatten(2).transpose(1, 2)

    def _columns(self, state: Tensor, place: int) -> Tensor:
        if not self.images:
            return state
        if place < self.blueprint.depth - 1:
            return unfold(state)
        runs, _, batch = state.shape[:3]
        return state.permute(0, 1, 3, 4, 2).reshape(runs, -1, batch)

    def _leave(self, active: Tensor, place: int) -> Tensor:
        if not self.images:
            return active
        channels, height, width = self.blueprint.maps[place + 1]
        return active.view(len(active), channels, -1, height, width)

    def _return(self, back: Tensor, shape: torch.Size, place: int) -> Tensor:
        if not self.images:
            return back
        if place < self.blueprint.depth - 1:
            return fold(back, shape).contiguous()
        runs, channels, batch, height, width = shape
        whole = back.view(runs, channels, height, width, batch)
        return whole.permute(0, 1, 4, 2, 3).contiguous()

    def _normalise(
        self, made: Tensor, held: Any, measured: Statistics | None
    ) -> tuple[Tensor, Any]:
        if not self.normalised:
            return made, None
        if held is not None:
            mean, variance = held
            return (made - mean[..., None]) * (variance[..., None] + EPS).rsqrt(), None
        if measured is not None:
            variance, mean = torch.var_mean(made, dim=-1, correction=0)
            measured.append((mean, variance))
        out, mean, rstd = torch.native_layer_norm(
            made, made.shape[-1:], None, None, EPS
        )
        return out, (made, mean, rstd)


def _product(weight: Tensor, columns: Tensor) -> Tensor:
    """Multiply runs in groups of those that share their columns."""
    groups = len(columns)
    runs, rows, width = weight.shape
    made = torch.bmm(weight.view(groups, -1, width), columns)
    return made.view(runs, rows, -1)
