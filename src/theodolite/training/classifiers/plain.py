"""One classifier as a module, trained by autograd and any optimiser of torch."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from theodolite.networks import ClassifierNetwork
from theodolite.training.classifiers.losses import mean_loss
from theodolite.training.classifiers.recipe import ClassifierRecipe
from theodolite.training.classifiers.stack import Mark, epoch_order, label_signs

MakeOptimiser = Callable[[ClassifierNetwork], torch.optim.Optimizer]


def train_plain(
    network: ClassifierNetwork,
    samples: tuple[Tensor, Tensor],
    recipe: ClassifierRecipe,
    seed: int,
    marks: set[int],
    mark: Mark,
    deadline: float,
    optimiser: MakeOptimiser | None = None,
) -> bool:
    """Train one network to its end; say whether it came there in time.

    Args:
        network: Trained in place.
        samples: Inputs and targets.
        recipe: How; rate, momentum and decay are left to ``optimiser`` where given.
        seed: Of the order of the samples.
        marks: Epochs after which ``mark`` is called.
        mark: Takes the epoch and the matrices of all layers.
        deadline: Moment of ``time.monotonic`` to stop at.
        optimiser: Makes the optimiser of the network.
    """
    make: Any = optimiser or _descent(recipe)
    rule, (inputs, targets) = make(network), samples
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
        late = time.monotonic() > deadline
        if (epoch in marks or late) and not mark(epoch, stacked(network)):
            return True
        if late:
            return epoch == recipe.epochs
    return True


def stacked(network: ClassifierNetwork) -> list[Tensor]:
    """Return the weights as a stack of one run."""
    return [w.detach().flatten(1)[None] for w in network.weights]


def _descent(recipe: ClassifierRecipe) -> MakeOptimiser:
    return lambda network: torch.optim.SGD(
        network.parameters(),
        lr=recipe.rate,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
    )
