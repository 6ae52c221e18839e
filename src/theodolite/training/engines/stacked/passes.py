r"""The data of a stack of networks, and their losses and gradients in torch.

A ReLU network needs every sample. A linear one sees $m$ samples only through their
moments: with $X = QR$ (rows are samples) and any matrix $A$,
$\lVert X A^T - Y \rVert^2 = \lVert R A^T - Q^T Y \rVert^2 + \lVert Y - Q Q^T Y
\rVert^2$, so that $R$ and $Q^T Y$ replace the data as ``width`` samples. Unlike
$\Sigma_{XX}$ and $\Sigma_{YX}$, they lose no digits where the loss is small.

Activations have the shape (points, width, samples), so that one product moves all
points through a layer. The backward pass is written out: nothing is recorded, and the
memory is that of the activations of one chunk of samples.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ConfigError, ShortcutBlueprint


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples to train on, and how their squared errors make the loss."""

    x: np.ndarray  # inputs as float64, shape (samples, width)
    y: np.ndarray  # targets, the same shape
    scale: float  # one over the number of samples that the loss is the mean of
    constant: float  # what to add to the loss of these samples
    reduced: bool  # whether few samples stand in for many


def prepare_samples(
    blueprint: ShortcutBlueprint, x: np.ndarray, y: np.ndarray, *, dtype: str
) -> Samples:
    """Check the data, round it to ``dtype``, and reduce it if the blueprint is linear.

    Example:
        >>> x, plan = np.eye(2).repeat(3, axis=0), ShortcutBlueprint(width=2, depth=2)
        >>> prepare_samples(plan, x, x, dtype="float64").x.shape
        (2, 2)
    """
    x, y = (np.asarray(part).astype(dtype).astype(np.float64) for part in (x, y))
    wanted = (len(x), blueprint.width)
    if x.ndim != 2 or not len(x) or x.shape != wanted or y.shape != wanted:
        raise ConfigError(
            f"inputs of shape {x.shape} and targets of shape {y.shape} for a network "
            f"of width {blueprint.width}: pass both as (samples, {blueprint.width})"
        )
    scale = 1 / len(x)
    if not blueprint.linear or len(x) <= blueprint.width:
        return Samples(x, y, scale, 0.0, reduced=False)
    basis, inputs = np.linalg.qr(x)
    targets = basis.T @ y
    constant = 0.5 * scale * float(np.square(y - basis @ targets).sum())
    return Samples(inputs, targets, scale, constant, reduced=True)


# Fewer samples than this a chunk would starve the products before memory is short.
_FEW_SAMPLES = 8192


def even_part_size(total: int, at_most: int) -> int:
    """Return the size of the fewest equal parts that are at most a given size.

    Example:
        >>> even_part_size(10, 6)
        5
    """
    return math.ceil(total / math.ceil(total / max(1, at_most)))


class TorchPasses:
    """Losses and gradients of one blueprint by batched products, in chunks that fit.

    Args:
        blueprint: Architecture of every point, linear or with ReLU at mid.
        samples: What the points train on.
        dtype: Precision of weights and activations.
        device: Where to compute.
        memory: Bytes that activations may take.
    """

    label = "torch"

    def __init__(
        self,
        blueprint: ShortcutBlueprint,
        samples: Samples,
        *,
        dtype: torch.dtype,
        device: torch.device,
        memory: int,
    ) -> None:
        self.blueprint = blueprint
        self.scale, self.constant = samples.scale, samples.constant
        place = {"dtype": dtype, "device": device}
        self.x = torch.as_tensor(samples.x, **place).mT.contiguous()
        self.y = torch.as_tensor(samples.y, **place).mT.contiguous()
        # Inputs of all layers, the output, and three more for the way back.
        each = (blueprint.depth + 4) * blueprint.width * self.x.element_size()
        self.places = max(1, memory // each)

    def points_at_once(self, points: int) -> int:
        """Return how many points to move at once."""
        few = min(self.x.shape[1], _FEW_SAMPLES)
        return even_part_size(points, self.places // few)

    def workspace(self, points: int) -> "TorchWorkspace":
        """Return buffers, and the passes over them, for a stack of points."""
        return TorchWorkspace(self, points)


class TorchWorkspace:
    """Passes over one stack, in buffers that stay where they are."""

    def __init__(self, passes: TorchPasses, points: int) -> None:
        self.passes = passes
        x, blueprint = passes.x, passes.blueprint
        self.chunk = even_part_size(x.shape[1], passes.places // points)
        shape = (points, blueprint.width, self.chunk)
        self.acts = x.new_empty(blueprint.depth, *shape)
        square = (points, blueprint.depth, blueprint.width, blueprint.width)
        self.gradient = x.new_zeros(square)
        self.losses = x.new_zeros(points, dtype=torch.float64)

    def evaluate(self, weights: Tensor, alive: Tensor) -> tuple[Tensor, Tensor]:
        """Return every point's loss, as float64, and gradient; see ``Workspace``."""
        del alive
        self.gradient.zero_()
        self.losses.fill_(self.passes.constant)
        for start in range(0, self.passes.x.shape[1], self.chunk):
            x = self.passes.x[:, start : start + self.chunk]
            error = self._forward(weights, x)
            error -= self.passes.y[:, start : start + self.chunk]
            squares = error.square().sum((1, 2), dtype=torch.float64)
            self.losses.add_(squares, alpha=0.5 * self.passes.scale)
            self._backward(weights, x, error.mul_(self.passes.scale))
        return self.losses, self.gradient

    def _layer_input(self, layer: int, x: Tensor) -> Tensor:
        """Return what a layer reads: the samples, or what the layer before left."""
        if not layer:
            return x.expand(self.losses.shape[0], -1, -1)
        return self.acts[layer - 1, :, :, : x.shape[1]]

    def _forward(self, weights: Tensor, x: Tensor) -> Tensor:
        """Fill the activations and return the outputs."""
        blueprint = self.passes.blueprint
        unit_input = self._layer_input(0, x)
        for layer in range(blueprint.depth):
            before = self._layer_input(layer, x)
            after = self._layer_input(layer + 1, x)
            matrix = weights[:, layer]
            if (layer + 1) % blueprint.shortcut:
                torch.bmm(matrix, before, out=after)
                if not blueprint.linear:
                    after.relu_()
                continue
            if blueprint.skip:
                torch.baddbmm(unit_input, matrix, before, out=after)
            else:
                torch.bmm(matrix, before, out=after)
            unit_input = after
        return unit_input

    def _backward(self, weights: Tensor, x: Tensor, whole: Tensor) -> None:
        """Add this chunk's part to the gradient; ``whole`` is the slope of the loss."""
        blueprint = self.passes.blueprint
        now = whole
        for layer in reversed(range(blueprint.depth)):
            before = self._layer_input(layer, x)
            self.gradient[:, layer] += torch.bmm(now, before.mT)
            matrix = weights[:, layer].mT
            if layer % blueprint.shortcut:
                now = torch.bmm(matrix, now)
                if not blueprint.linear:
                    now.masked_fill_(before <= 0, 0)
            elif layer:
                now = (
                    torch.baddbmm(whole, matrix, now)
                    if blueprint.skip
                    else torch.bmm(matrix, now)
                )
                whole = now
