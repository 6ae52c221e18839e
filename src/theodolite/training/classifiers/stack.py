"""Classifiers of one shape trained in lock-step, each as if it were alone.

Every step moves all of them by batched products. On CUDA a step is replayed as a
graph, on the CPU it runs eagerly.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ClassifierBlueprint, stream
from theodolite.training.classifiers.layers import StackedLayers
from theodolite.training.classifiers.losses import slope
from theodolite.training.classifiers.recipe import ClassifierRecipe
from theodolite.training.images.graphed import capture

Mark = Callable[[int, list[Tensor]], bool]


class StackedStep:
    r"""A step of momentum descent of every run, all in place.

    $v \leftarrow \mu v + \nabla + w\,W$, $W \leftarrow W - \eta v$, with a rate and a
    decay of its own for every run.

    Attributes:
        weights: A matrix a layer and run.
        index: Samples of the next batch, a row a group of runs that share it.
        signs: Signs of the label noise of this epoch, (groups, samples, outputs); None
            where there is none.
    """

    def __init__(
        self,
        blueprint: ClassifierBlueprint,
        weights: list[Tensor],
        samples: tuple[Tensor, Tensor],
        recipes: list[ClassifierRecipe],
        groups: int,
    ) -> None:
        self.layers, self.weights = StackedLayers(blueprint), weights
        self.inputs, self.targets = samples
        first, recipe = weights[0], recipes[0]
        self.momentum, self.loss = recipe.momentum, recipe.loss
        self.velocity = [torch.zeros_like(w) for w in weights]
        self.rate = _column(first, [-r.rate for r in recipes])
        decays = [r.weight_decay for r in recipes]
        self.decay = _column(first, decays) if any(decays) else None
        shape = (groups, recipe.batch_size)
        self.index = torch.zeros(shape, dtype=torch.int64, device=first.device)
        noises = [r.label_noise for r in recipes]
        self.noise = _column(first, noises).view(groups, -1, 1, 1)
        self.signs = None
        if any(noises):
            self.signs = first.new_zeros(groups, *self.targets.shape)

    @torch.no_grad()
    def compute(self) -> None:
        """Make one step on the samples of ``index``."""
        trace: list[object] = []
        outputs = self.layers.forward(
            self.weights, self.inputs[self.index], trace=trace
        )
        wanted = self.targets[self.index].transpose(1, 2)[:, None]
        groups, _, width, batch = wanted.shape
        if self.signs is not None:
            chosen = self.index[..., None].expand(-1, -1, width)
            signs = self.signs.gather(1, chosen).transpose(1, 2)
            wanted = wanted + self.noise * signs[:, None]
        error = slope(outputs.view(groups, -1, width, batch), wanted, self.loss)
        self.layers.backward(
            self.weights, trace, error.view_as(outputs), self.velocity, self.momentum
        )
        for weight, velocity in zip(self.weights, self.velocity, strict=True):
            if self.decay is not None:
                velocity.addcmul_(weight, self.decay)
            weight.addcmul_(velocity, self.rate)

    def state(self) -> list[Tensor]:
        """Return every tensor that a step changes."""
        return [*self.weights, *self.velocity]


def train_stack(
    step: StackedStep,
    recipe: ClassifierRecipe,
    seeds: list[int],
    marks: set[int],
    mark: Mark,
    deadline: float,
) -> bool:
    """Train a stack to its end; say whether it came there in time.

    Args:
        step: What moves it.
        recipe: Of the first run; others differ in rate and decay alone.
        seeds: One a group, for the order of the samples.
        marks: Epochs after which ``mark`` is called.
        mark: Takes the epoch and the weights; says whether to go on.
        deadline: Moment of ``time.monotonic`` to stop at.
    """
    samples, size = len(step.inputs), recipe.batch_size
    advance: Callable[[], None] = step.compute
    if step.inputs.is_cuda:
        advance = capture(step, torch.cuda.Stream())
    for epoch in range(1, recipe.epochs + 1):
        order = torch.from_numpy(epoch_order(seeds, epoch, samples, size))
        order = order.to(step.index.device)
        if step.signs is not None:
            signs = label_signs(seeds, epoch, *step.targets.shape)
            step.signs.copy_(torch.from_numpy(signs))
        for place in range(order.shape[1]):
            step.index.copy_(order[:, place])
            advance()
        late = time.monotonic() > deadline
        if (epoch in marks or late) and not mark(epoch, step.weights):
            return True
        if late:
            return epoch == recipe.epochs
    return True


def epoch_order(seeds: list[int], epoch: int, samples: int, size: int) -> np.ndarray:
    """Return the samples of every batch of an epoch, (seeds, batches, batch size)."""
    full = samples // size * size
    orders = [stream(s, "order", epoch).permutation(samples)[:full] for s in seeds]
    return np.stack(orders).reshape(len(seeds), -1, size)


def label_signs(seeds: list[int], epoch: int, samples: int, outputs: int) -> np.ndarray:
    """Return signs of the label noise of an epoch, (seeds, samples, outputs)."""
    shape = (samples, outputs)
    drawn = [stream(s, "label noise", epoch).integers(0, 2, shape) for s in seeds]
    return 2 * np.stack(drawn) - 1


def _column(like: Tensor, numbers: list[float]) -> Tensor:
    return torch.tensor(numbers, dtype=like.dtype, device=like.device)[:, None, None]
