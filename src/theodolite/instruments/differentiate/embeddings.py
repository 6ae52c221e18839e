"""Embeddings from operators that torch differentiates twice, and densely.

Gradients that torch scales by how often a row occurs (``scale_grad_by_freq``) are none
of the loss, so that nothing is scaled here.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_PLAIN = {"scale_grad_by_freq": False, "sparse": False}


def embedding(*args: Any, **kwargs: Any) -> Tensor:
    """Look rows up; gradients are dense, since products add and reshape them."""
    names = ("input", "weight", "padding_idx", "max_norm", "norm_type")
    given = dict(zip((*names, "scale_grad_by_freq", "sparse"), args, strict=False))
    return functional.embedding(**{**given, **kwargs, **_PLAIN})


def embedding_bag(*args: Any, **kwargs: Any) -> Tensor:
    """Reduce bags of rows; torch's own kernel has no second derivative.

    Where rows are scaled as they are read (``max_norm``) torch's kernel is kept.
    """
    names = ("input", "weight", "offsets", "max_norm", "norm_type")
    names += ("scale_grad_by_freq", "mode", "sparse", "per_sample_weights")
    names += ("include_last_offset", "padding_idx")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    # The old spelling gives the weight first.
    if given.get("max_norm") is not None or given["input"].is_floating_point():
        return functional.embedding_bag(**{**given, **_PLAIN})
    with torch.no_grad():
        functional.embedding_bag(**given)  # which refuses what is mistaken
    return _reduced(given)


def _reduced(given: dict[str, Any]) -> Tensor:
    places, bags, count = _bags(given)
    weight, padding = given["weight"], given.get("padding_idx")
    rows, kept = weight[places], torch.ones_like(places, dtype=torch.bool)
    if padding is not None:
        kept = places != padding % len(weight)
    if given.get("per_sample_weights") is not None:
        rows = rows * given["per_sample_weights"].reshape(-1, 1)
    rows, bags = rows[kept], bags[kept]
    if given.get("mode", "mean") == "max":
        empty = weight.new_zeros(weight.shape[1])
        found = [rows[bags == bag] for bag in range(count)]
        return torch.stack([b.amax(0) if len(b) else empty for b in found])
    total = weight.new_zeros(count, weight.shape[1]).index_add(0, bags, rows)
    if given.get("mode", "mean") == "sum":
        return total
    sizes = torch.bincount(bags, minlength=count).clamp(min=1)
    return total / sizes.to(total).unsqueeze(1)


def _bags(given: dict[str, Any]) -> tuple[Tensor, Tensor, int]:
    """Return the rows asked for, the bag of each, and how many bags there are."""
    places = given["input"]
    if places.ndim == 2:
        count, length = places.shape
        bags = torch.arange(count, device=places.device).repeat_interleave(length)
        return places.reshape(-1), bags, count
    offsets = given["offsets"]
    count = len(offsets) - bool(given.get("include_last_offset"))
    each = torch.arange(len(places), device=places.device)
    bags = torch.bucketize(each, offsets[:count].to(each), right=True) - 1
    return places, bags, count
