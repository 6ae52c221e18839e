r"""Stacks of deep linear networks on a square root of the moments, in torch.

Calls cost more than products of small matrices, so points go through each call
together, and units too wherever they can: only the chain of whole units, there and
back, takes a call a unit.
"""

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ShortcutBlueprint

from .compiled import Log, Rule

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


CELLS = 32  # at once: more leave the cache


class TorchMoments:
    """Gradient descent of points on the columns of a root.

    Args:
        blueprint: Shape of the networks.
        root: Square root of the inputs' moments, shape (width, width).
        target: Targets of its columns, the same shape.
        least: Loss of the best linear map.
    """

    def __init__(
        self,
        blueprint: ShortcutBlueprint,
        root: np.ndarray,
        target: np.ndarray,
        least: float,
    ) -> None:
        self._plan, self._least = blueprint, least
        self._data = torch.from_numpy(root), torch.from_numpy(target)

    def advance(
        self, weights: np.ndarray, velocity: np.ndarray, rule: Rule, log: Log
    ) -> None:
        """Move every point by its rates, or until it stops."""
        for start in range(0, len(weights), CELLS):
            part = slice(start, start + CELLS)
            mine, seen = Rule(*(a[part] for a in rule)), Log(*(a[part] for a in log))
            self._advance_part(weights[part], velocity[part], mine, seen)

    def _advance_part(
        self, weights: np.ndarray, velocity: np.ndarray, rule: Rule, log: Log
    ) -> None:
        active, step = np.arange(len(weights)), 0
        while len(active):
            chain = _Chain(self._plan, weights[active], velocity[active], self._data)
            mine = Rule(*(part[active] for part in rule))
            step, losses = self._until_a_stop(chain, mine, log, active, step)
            weights[active], velocity[active] = chain.stacks()
            if losses is None:
                return
            stays = _stays(losses, mine)
            log.stopped[active[~stays]] = losses[~stays]
            active = active[stays]

    def _until_a_stop(
        self, chain: "_Chain", rule: Rule, log: Log, active: np.ndarray, first: int
    ) -> tuple[int, np.ndarray | None]:
        """Move all points until one must stop; return the step and the losses there."""
        move = _Move(chain, rule)
        steps = rule.rates.shape[1]
        for step in range(first, steps):
            losses = self._least + 0.5 * chain.squares()
            if not _stays(losses, rule).all():
                return step, losses
            log.losses[active, step] = losses
            log.taken[active] = step + 1
            chain.differentiate(move.into)
            move(step)
        return steps, None


def _stays(losses: np.ndarray, rule: Rule) -> np.ndarray:
    return (losses > rule.floor) & (losses <= rule.ceiling)


class _Move:
    """The update of all points; numbers that all points share are not spread out."""

    def __init__(self, chain: "_Chain", rule: Rule) -> None:
        self._w, self._v = chain.w, chain.v
        self._keep = _shared(rule.momentum, chain.v)
        self._decay = _shared(rule.weight_decay, chain.v)
        self._rates = [_shared(rates, chain.v) for rates in -rule.rates.T]
        plain = self._keep == 0.0 if isinstance(self._keep, float) else False
        # Without momentum the gradient is the velocity.
        self.into = chain.v if plain else torch.empty_like(chain.v)

    def __call__(self, step: int) -> None:
        _add_product(self.into, self._w, self._decay)
        if self.into is not self._v:
            self._v.mul_(self._keep).add_(self.into)
        _add_product(self._w, self._v, self._rates[step])


def _shared(values: np.ndarray, like: Tensor) -> float | Tensor:
    """Return the one number of all points, or a column of theirs."""
    if (values == values[0]).all():
        return float(values[0])
    return torch.from_numpy(values).to(like.dtype)[:, None, None]


def _add_product(total: Tensor, a: Tensor, factor: float | Tensor) -> None:
    if isinstance(factor, Tensor):
        total.addcmul_(a, factor)
    elif factor:
        total.add_(a, alpha=factor)


class _Chain:
    """A stack's matrices, shape (layer of the unit, unit, point, width, width).

    All views that a step needs are made once: making one costs as much as a product.
    """

    def __init__(
        self,
        plan: ShortcutBlueprint,
        weights: np.ndarray,
        velocity: np.ndarray,
        data: tuple[Tensor, Tensor],
    ) -> None:
        self._plan, self._target = plan, data[1]
        self._points, n, d = len(weights), plan.shortcut, plan.width
        self.w, self.v = self._arranged(weights), self._arranged(velocity)
        self._eye = torch.eye(d, dtype=self.w.dtype)
        flat = (plan.units * self._points, d, d)
        self._w = list(self.w.view(n, *flat).unbind())
        self._w_turned = [matrix.mT for matrix in self._w]
        bare = n == 1 and not plan.skip
        self._maps = self._w[0] if bare else torch.empty_like(self._w[0])
        # What enters every layer, and the gradient of what leaves it.
        inputs, pulls = (torch.empty_like(self.w) for _ in range(2))
        self._out = torch.empty_like(inputs[0, 0])
        self._gap = pulls[-1, -1]
        self._flat_gap = self._gap.view(self._points, 1, d * d)
        inputs[0, 0] = data[0]
        maps = self._maps.view(plan.units, self._points, d, d).unbind()
        enters = [*inputs[0].unbind(), self._out]
        self._up = list(zip(maps, enters[:-1], enters[1:], strict=True))
        leaves = pulls[-1].unbind()
        turned = [matrix.mT for matrix in maps]
        self._down = list(zip(turned[1:], leaves[1:], leaves[:-1], strict=True))[::-1]
        self._inputs = list(inputs.view(n, *flat).unbind())
        self._pulls = list(pulls.view(n, *flat).unbind())
        everything = (n * plan.units * self._points, d, d)
        self._gradient = pulls.view(everything), inputs.view(everything).mT

    def squares(self) -> np.ndarray:
        """Return the squared distance from the targets of every point."""
        self._fill_maps()
        for unit, enters, leaves in self._up:
            torch.bmm(unit, enters, out=leaves)
        torch.sub(self._out, self._target, out=self._gap)
        wide = self._flat_gap.double()
        return torch.bmm(wide, wide.mT).numpy()[:, 0, 0]

    def differentiate(self, into: Tensor) -> None:
        """Fill in the gradient with respect to all matrices, at the last squares."""
        for unit, leaves, enters in self._down:
            torch.bmm(unit, leaves, out=enters)
        last = len(self._w) - 1
        for layer in range(last):
            torch.bmm(self._w[layer], self._inputs[layer], out=self._inputs[layer + 1])
        for layer in range(last, 0, -1):
            torch.bmm(
                self._w_turned[layer], self._pulls[layer], out=self._pulls[layer - 1]
            )
        torch.bmm(*self._gradient, out=into.view(self._gradient[0].shape))

    def stacks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and velocity, shape (points, depth, width, width)."""
        plan = self._plan
        shape = (self._points, plan.depth, plan.width, plan.width)
        w, v = (
            part.numpy().transpose(2, 1, 0, 3, 4).reshape(shape)
            for part in (self.w, self.v)
        )
        return w, v

    def _fill_maps(self) -> None:
        inner = self._w[0]
        for matrix in self._w[1:-1]:
            inner = torch.bmm(matrix, inner)
        if len(self._w) > 1:
            torch.bmm(self._w[-1], inner, out=self._maps)
            if self._plan.skip:
                self._maps.add_(self._eye)
        elif self._plan.skip:
            torch.add(inner, self._eye, out=self._maps)

    def _arranged(self, stack: np.ndarray) -> Tensor:
        plan = self._plan
        n, d = plan.shortcut, plan.width
        parts = stack.reshape(self._points, plan.units, n, d, d)
        return torch.from_numpy(np.ascontiguousarray(parts.transpose(2, 1, 0, 3, 4)))
