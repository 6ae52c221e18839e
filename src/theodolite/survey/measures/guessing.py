"""The loss of a guess that ignores the inputs."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.instruments import HalfSquareLoss

from ..subjects.hugging_face import own_loss
from .site import Site

# A loss of unknown kind that is this near to the cross-entropy is taken for it.
_ALIKE = 1e-3
# Regression losses; the best constant guess is the mean of the targets.
CONSTANT = (nn.MSELoss, HalfSquareLoss)


def _takes_softmax(site: Site, logits: Tensor, targets: Any) -> bool:
    """Return whether the loss is the cross-entropy of scores, by its kind or value."""
    if isinstance(site.loss, nn.CrossEntropyLoss):
        return True
    if not isinstance(targets, Tensor) or targets.is_floating_point():
        return False
    if site.loss is own_loss:
        return logits.ndim > 1 and logits.shape[-1] > 1
    value = _cross_entropy(logits, targets)
    return value is not None and math.isclose(
        value, site.sounding.loss, rel_tol=max(_ALIKE, site.rounding)
    )


def loss_of_a_guess(site: Site, logits: Tensor, targets: Any) -> float | None:
    """Return the loss of equal class probabilities, or of the best constant.

    Return None for an unknown loss, such as a sum of two.
    """
    if _takes_softmax(site, logits, targets):
        if not isinstance(site.loss, nn.CrossEntropyLoss):
            return math.log(_classes_last(logits, targets).shape[-1])
        return _valued(site.loss, torch.zeros_like(logits), targets)
    if isinstance(site.loss, nn.NLLLoss):
        equal = torch.full_like(logits, -math.log(max(logits.shape[1], 1)))
        return _valued(site.loss, equal, targets)
    if isinstance(site.loss, nn.BCEWithLogitsLoss):
        return _valued(site.loss, torch.zeros_like(logits), targets)
    if isinstance(site.loss, nn.BCELoss):
        return _valued(site.loss, torch.full_like(logits, 0.5), targets)
    if isinstance(site.loss, CONSTANT):
        if isinstance(targets, Tensor) and targets.shape == logits.shape:
            middle = targets.double().mean(0).expand(targets.shape)
            return _valued(site.loss, middle, targets) if len(targets) > 1 else None
    return None


def _valued(loss: nn.Module, outputs: Tensor, targets: Any) -> float | None:
    """Return a loss with its own weights and reduction, in float64 if it has none."""
    kept = [b.dtype for b in loss.buffers() if b.is_floating_point()]
    dtype = kept[0] if kept else torch.float64
    if isinstance(targets, Tensor) and targets.is_floating_point():
        targets = targets.to(dtype)
    with torch.no_grad():
        value = loss(outputs.to(dtype), targets)
    return float(value) if value.numel() == 1 else None


def _cross_entropy(logits: Tensor, targets: Tensor) -> float | None:
    """Return the mean cross-entropy over samples and places; None if shapes differ."""
    scores = _classes_last(logits, targets)
    if scores.ndim < 2 or scores.shape[-1] < 2 or targets.shape != scores.shape[:-1]:
        return None
    flat, wanted = scores.double().flatten(0, -2), targets.flatten()
    known = (wanted >= 0) & (wanted < scores.shape[-1])
    if not bool(known.any()):
        return None
    return float(functional.cross_entropy(flat[known], wanted[known]))


def _classes_last(logits: Tensor, targets: Tensor) -> Tensor:
    """Return scores with classes along the last axis; for images, moved from axis 1."""
    return logits.movedim(1, -1) if targets.ndim == 3 == logits.ndim - 1 else logits
