"""Dense Hessians by double backward: slow, and right by construction.

Nothing here uses theodolite, so that ours is judged by the same measure as the peers.
"""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from bench.networks import Data, norms

_LOSS = nn.CrossEntropyLoss()


def dense_hessian(model: nn.Module, batches: Sequence[Data]) -> np.ndarray:
    """Return the Hessian of the mean loss over batches of one size, in found modes."""
    model = copy.deepcopy(model)
    parameters = list(model.parameters())
    loss = torch.stack([_LOSS(model(x), y) for x, y in batches]).mean()
    gradient = torch.cat(
        [part.reshape(-1) for part in _grad(loss, parameters, create_graph=True)]
    )
    rows = [
        torch.cat([part.reshape(-1) for part in _grad(entry, parameters)])
        for entry in gradient
    ]
    return torch.stack(rows).numpy()


def difference_check(model: nn.Module, batches: Sequence[Data], step: float) -> float:
    """Return how far the dense Hessian is from central differences of the gradient."""
    exact = dense_hessian(model, batches)
    generator = torch.Generator().manual_seed(1)
    size = exact.shape[0]
    v = torch.randn(size, dtype=torch.float64, generator=generator)
    ahead, behind = (_gradient_at(model, batches, sign * step * v) for sign in (1, -1))
    product = exact @ v.numpy()
    differences = ((ahead - behind) / (2 * step)).numpy()
    return float(np.linalg.norm(product - differences) / np.linalg.norm(product))


def with_frozen_statistics(model: nn.Module, data: Data) -> nn.Module:
    """Return a copy whose batch norms hold the statistics of the data as constants."""
    model = copy.deepcopy(model).train()
    handles = [norm.register_forward_pre_hook(_freeze) for norm in norms(model)]
    with torch.no_grad():
        model(data[0])
    for handle in handles:
        handle.remove()
    return model


def without_statistics(model: nn.Module) -> nn.Module:
    """Return a copy whose batch norms keep no running statistics to write to."""
    model = copy.deepcopy(model)
    for norm in norms(model):
        norm.track_running_stats = False
        norm.running_mean = norm.running_var = norm.num_batches_tracked = None
    return model


def _freeze(norm: nn.BatchNorm2d, inputs: tuple[Tensor]) -> None:
    norm.running_mean = inputs[0].mean((0, 2, 3))
    norm.running_var = inputs[0].var((0, 2, 3), correction=0)
    norm.eval()


def _gradient_at(model: nn.Module, batches: Sequence[Data], move: Tensor) -> Tensor:
    model = copy.deepcopy(model)
    parameters = list(model.parameters())
    flat = nn.utils.parameters_to_vector(parameters).detach()
    nn.utils.vector_to_parameters(flat + move, parameters)
    loss = torch.stack([_LOSS(model(x), y) for x, y in batches]).mean()
    return torch.cat([part.reshape(-1) for part in _grad(loss, parameters)])


def _grad(value: Tensor, parameters: list[nn.Parameter], create_graph: bool = False):
    return torch.autograd.grad(
        value, parameters, create_graph=create_graph, retain_graph=True
    )
