"""Many updates of one stack, without waiting for the device in between.

All that an update reads or writes lies in buffers that stay where they are: rates and
limits of every point, which points still move, and the losses so far. So on CUDA one
update is captured as a graph and replayed, and the host looks only now and then.
"""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from theodolite.instruments import full_precision

from ..protocol import Advance, Rule

# Updates between two looks at which points still move.
_STRIDE = 50


class Workspace(Protocol):
    """Passes over a stack of a fixed number of points."""

    def evaluate(self, weights: Tensor, alive: Tensor) -> tuple[Tensor, Tensor]:
        """Return losses as float64, shape (points,), and gradients.

        ``weights`` have the shape (points, depth, width, width). Only points that are
        ``alive`` need be computed.
        """
        ...


class Updates:
    """Descend with up to ``points`` points at once.

    Args:
        workspace: What computes losses and gradients.
        like: A stack of weights of as many points as the workspace has.
    """

    def __init__(self, workspace: Workspace, like: Tensor) -> None:
        self.workspace, self.points = workspace, len(like)
        self.weights, self.velocity = torch.zeros_like(like), torch.zeros_like(like)
        column = (self.points, 1, 1, 1)
        self.rates = like.new_zeros(self.points, _STRIDE)
        self.momentum, self.decay = like.new_zeros(column), like.new_zeros(column)
        exact = like.new_zeros(self.points, dtype=torch.float64)
        self.floor, self.ceiling = exact.clone(), exact.clone()
        self.stopped = exact.clone()
        self.alive = torch.zeros_like(exact, dtype=torch.bool)
        self.taken = torch.zeros_like(exact, dtype=torch.int64)
        self.losses = exact.new_zeros(self.points, _STRIDE)
        self.step = torch.zeros(1, dtype=torch.int64, device=like.device)
        self.graph = self._capture() if like.is_cuda else None

    def _capture(self) -> torch.cuda.CUDAGraph:
        """Record one update; nothing moves, since no point is alive yet."""
        side = torch.cuda.Stream(self.weights.device)
        side.wait_stream(torch.cuda.current_stream(self.weights.device))
        with torch.cuda.stream(side), full_precision():
            for _ in range(2):
                self._update()
        torch.cuda.current_stream(self.weights.device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with full_precision(), torch.cuda.graph(graph):
            self._update()
        return graph

    def _update(self) -> None:
        """Compare every point's loss, then move those that go on."""
        loss, gradient = self.workspace.evaluate(self.weights, self.alive)
        goes_on = (loss > self.floor) & (loss <= self.ceiling)
        ends = self.alive & ~goes_on
        self.stopped.copy_(torch.where(ends, loss, self.stopped))
        self.alive &= goes_on
        self.taken += self.alive
        noted = loss.masked_fill(~self.alive, torch.nan)
        self.losses.index_copy_(1, self.step, noted[:, None])
        moves = self.alive[:, None, None, None]
        rate = self.rates.index_select(1, self.step)[:, :, None, None]
        velocity = self.momentum * self.velocity + gradient
        velocity += self.decay * self.weights
        self.velocity.copy_(torch.where(moves, velocity, self.velocity))
        moved = self.weights - rate * velocity
        self.weights.copy_(torch.where(moves, moved, self.weights))
        self.step += 1

    def run(self, weights: Tensor, velocity: Tensor, rule: Rule) -> Advance:
        """Move a stack of at most :attr:`points` points in place."""
        rates = rule.rates
        count, steps = rates.shape
        self._load(weights, velocity, rule)
        losses = np.full((count, steps), np.nan)
        with full_precision(), torch.cuda.device_of(weights):
            for start in range(0, steps, _STRIDE):
                some = slice(start, min(start + _STRIDE, steps))
                losses[:, some] = self._some(rates[:, some])[:count]
                if not self.alive.any():
                    break
        weights.copy_(self.weights[:count])
        velocity.copy_(self.velocity[:count])
        taken, stopped = (t[:count].cpu().numpy() for t in (self.taken, self.stopped))
        return Advance(losses=losses, taken=taken.copy(), stopped=stopped.copy())

    def _load(self, weights: Tensor, velocity: Tensor, rule: Rule) -> None:
        """Copy a stack and its rule in; points beyond it stay still."""
        count = len(weights)
        self.weights[:count].copy_(weights)
        self.velocity[:count].copy_(velocity)
        buffers = self.momentum, self.decay, self.floor, self.ceiling
        for buffer, numbers in zip(buffers, rule[1:], strict=True):
            value = torch.tensor(numbers, dtype=buffer.dtype, device="cpu")
            buffer[:count].view(count).copy_(value)
        self.alive.zero_()
        self.alive[:count] = True
        self.taken.zero_()
        self.stopped.fill_(torch.nan)

    def _some(self, rates: np.ndarray) -> np.ndarray:
        """Make a few updates; return the losses before each."""
        count, steps = rates.shape
        value = torch.tensor(np.asarray(rates), dtype=self.rates.dtype, device="cpu")
        self.rates[:count, :steps].copy_(value)
        self.step.zero_()
        for _ in range(steps):
            if self.graph is None:
                self._update()
            else:
                self.graph.replay()
        return self.losses[:, :steps].cpu().numpy()
