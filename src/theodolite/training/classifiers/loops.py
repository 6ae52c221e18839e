"""Training loops: a stack of classifiers of one shape in lockstep, or one network.

Every step of a stack moves all of its networks by batched products, each as if it were
alone; on CUDA a step is replayed as a graph. A single network is a module, trained by
autograd and any optimiser of torch.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from theodolite.core import ClassifierBlueprint, stream
from theodolite.networks import ClassifierNetwork

from ..images.step import capture
from .layers import StackedLayers, loss_gradient, mean_loss
from .recipe import ClassifierRecipe


@dataclass(frozen=True)
class EpochCallback:
    """What happens after the epochs of a training."""

    epochs: set[int]  # epochs after which ``record`` is called
    # Takes the epoch and the weights; returns whether to go on.
    record: Callable[[int, list[Tensor]], bool]
    deadline: float  # time of ``time.monotonic`` at which to stop

    def after(
        self, epoch: int, recipe: ClassifierRecipe, weights: list[Tensor]
    ) -> bool | None:
        """Record; return whether the training finished, None if it goes on."""
        late = time.monotonic() > self.deadline
        if (epoch in self.epochs or late) and not self.record(epoch, weights):
            return True
        return epoch == recipe.epochs if late else None


class StackedStep:
    r"""A step of momentum descent of every run, all in place.

    $v \leftarrow \mu v + \nabla + w\,W$, $W \leftarrow W - \eta v$; every run has its
    rate and decay.

    Attributes:
        weights: One tensor per layer, (runs, rows, columns).
        index: Samples of the next batch, one row per group of runs that share it.
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
        error = loss_gradient(outputs.view(groups, -1, width, batch), wanted, self.loss)
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
    recorder: EpochCallback,
) -> bool:
    """Train a stack by its step; return whether it finished in time.

    ``recipe`` is that of the first run, the others differ in rate and decay only;
    ``seeds`` set the order of the samples, one per group.
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
        if (finished := recorder.after(epoch, recipe, step.weights)) is not None:
            return finished
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


MakeOptimizer = Callable[[ClassifierNetwork], torch.optim.Optimizer]


def train_plain(
    network: ClassifierNetwork,
    samples: tuple[Tensor, Tensor],
    recipe: ClassifierRecipe,
    seed: int,
    recorder: EpochCallback,
    optimizer: MakeOptimizer | None = None,
) -> bool:
    """Train one network in place by autograd; return whether it finished in time.

    Rate, momentum and decay of the recipe are not used where ``optimizer`` is given.
    """
    inputs, targets = samples
    if optimizer is None:
        weights, decay = network.parameters(), recipe.weight_decay
        rule = torch.optim.SGD(weights, recipe.rate, recipe.momentum, 0, decay)
    else:
        rule = optimizer(network)
    network.train()
    for epoch in range(1, recipe.epochs + 1):
        order = epoch_order([seed], epoch, len(inputs), recipe.batch_size)[0]
        wanted = targets
        if recipe.label_noise:
            (signs,) = label_signs([seed], epoch, *targets.shape)
            wanted = targets + recipe.label_noise * torch.from_numpy(signs).to(targets)
        for batch in torch.from_numpy(order).to(inputs.device):
            rule.zero_grad()
            loss = mean_loss(network(inputs[batch]), wanted[batch], recipe.loss)
            loss.backward()
            rule.step()
        finished = recorder.after(epoch, recipe, stacked(network))
        if finished is not None:
            return finished
    return True


def stacked(network: ClassifierNetwork) -> list[Tensor]:
    """Return the weights as a stack of one run."""
    return [w.detach().flatten(1)[None] for w in network.weights]
