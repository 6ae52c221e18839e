"""Losses of classifiers and their slopes, by formula."""

import torch
from torch import Tensor
from torch.nn import functional


def slope(outputs: Tensor, targets: Tensor, loss: str) -> Tensor:
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
