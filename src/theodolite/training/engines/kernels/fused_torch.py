"""Tiles of samples through a small network and back, in torch without autograd."""

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ShortcutBlueprint
from theodolite.training.engines.kernels.compiled import Log, Rule

TILE = 2048  # samples; fewer, and the calls cost more than the products


class TorchTiles:
    """Gradient descent of points, one after the other.

    Args:
        blueprint: Shape of the networks.
        x: Inputs, shape (samples, width).
        y: Targets, the same shape.
    """

    def __init__(
        self, blueprint: ShortcutBlueprint, x: np.ndarray, y: np.ndarray
    ) -> None:
        self._plan, self._samples = blueprint, len(x)
        self._relu = blueprint.mid == "relu"
        tiles = -(-len(x) // TILE)
        self._tiles = [
            tuple(torch.from_numpy(np.ascontiguousarray(part.T)) for part in pair)
            for pair in zip(
                np.array_split(x, tiles), np.array_split(y, tiles), strict=True
            )
        ]

    def advance(
        self, weights: np.ndarray, velocity: np.ndarray, rule: Rule, log: Log
    ) -> None:
        """Move every point by its rates, or until it stops."""
        for point in range(len(weights)):
            w, v = torch.from_numpy(weights[point]), torch.from_numpy(velocity[point])
            matrices, gradient = list(w), torch.empty_like(w)
            for step, rate in enumerate(rule.rates[point]):
                wanted = rule.floor[point] < np.inf  # else only the loss
                loss = self._loss(matrices, list(gradient.zero_()) if wanted else None)
                if loss <= rule.floor[point] or not loss <= rule.ceiling[point]:
                    log.stopped[point] = loss
                    break
                log.losses[point, step] = loss
                log.taken[point] = step + 1
                gradient.div_(self._samples)
                gradient.add_(w, alpha=rule.weight_decay[point])
                v.mul_(rule.momentum[point]).add_(gradient)
                w.sub_(v, alpha=rate)

    def _loss(self, w: list[Tensor], gradients: list[Tensor] | None = None) -> float:
        """Return the loss; add the sums of gradients over samples where wanted."""
        total = 0.0
        for x, y in self._tiles:
            h = self._forward(w, x)
            gap = h[-1].sub_(y)
            flat = gap.double().reshape(-1)
            total += float(torch.dot(flat, flat))
            if gradients is not None:
                self._backward(w, h, gap, gradients)
        return 0.5 * total / self._samples

    def _forward(self, w: list[Tensor], x: Tensor) -> list[Tensor]:
        """Return the inputs of all layers, and the output."""
        n, h = self._plan.shortcut, [x]
        for layer, matrix in enumerate(w):
            if layer % n < n - 1:
                out = torch.mm(matrix, h[-1])
                h.append(out.relu_() if self._relu else out)
            elif self._plan.skip:
                h.append(torch.addmm(h[layer - n + 1], matrix, h[-1]))
            else:
                h.append(torch.mm(matrix, h[-1]))
        return h

    def _backward(
        self, w: list[Tensor], h: list[Tensor], gap: Tensor, gradients: list[Tensor]
    ) -> None:
        n = self._plan.shortcut
        unit = inner = gap
        for layer in reversed(range(len(w))):
            gradients[layer].addmm_(inner, h[layer].T)
            if not layer:
                return
            if layer % n:
                inner = torch.mm(w[layer].T, inner)
                if self._relu:
                    inner = torch.ops.aten.threshold_backward(inner, h[layer], 0)
            elif self._plan.skip:
                unit = inner = torch.addmm(unit, w[layer].T, inner)
            else:
                unit = inner = torch.mm(w[layer].T, inner)
