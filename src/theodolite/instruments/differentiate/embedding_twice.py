"""Embeddings and grouped matrix products from operators with a second derivative."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_DENSE = {"scale_grad_by_freq": False, "sparse": False}


def embedding(*args: Any, **kwargs: Any) -> Tensor:
    """Return selected rows; gradients are dense, since products add them."""
    names = ("input", "weight", "padding_idx", "max_norm", "norm_type")
    given = dict(zip((*names, "scale_grad_by_freq", "sparse"), args, strict=False))
    return functional.embedding(**{**given, **kwargs, **_DENSE})


def embedding_bag(*args: Any, **kwargs: Any) -> Tensor:
    """Reduce bags of rows; torch's own kernel has no second derivative.

    If rows are rescaled when read (``max_norm``), torch's kernel is kept.
    """
    names = ("input", "weight", "offsets", "max_norm", "norm_type")
    names += ("scale_grad_by_freq", "mode", "sparse", "per_sample_weights")
    names += ("include_last_offset", "padding_idx")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    # The old form of the call has the weight first.
    if given.get("max_norm") is not None or given["input"].is_floating_point():
        return functional.embedding_bag(**{**given, **_DENSE})
    with torch.no_grad():
        functional.embedding_bag(**given)  # which refuses invalid arguments
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
        members = [rows[bags == bag] for bag in range(count)]
        return torch.stack([b.amax(0) if len(b) else empty for b in members])
    total = weight.new_zeros(count, weight.shape[1]).index_add(0, bags, rows)
    if given.get("mode", "mean") == "sum":
        return total
    sizes = torch.bincount(bags, minlength=count).clamp(min=1)
    return total / sizes.to(total).unsqueeze(1)


def _bags(given: dict[str, Any]) -> tuple[Tensor, Tensor, int]:
    """Return the selected rows, the bag of each, and the number of bags."""
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


def grouped_products(
    func: Callable[..., Tensor], args: Sequence[Any], settings: Mapping[str, Any]
) -> Tensor:
    """Multiply groups of matrices; one by one in float64, which torch lacks.

    Groups lie along the first axis where there are three; else ``offs`` says where they
    end: along rows of the first, columns of the second, or what is summed over.
    """
    known = {
        **dict(zip(("self", "mat2", "offs", "bias", "out_dtype"), args, strict=False)),
        **settings,
    }
    a, b = known.pop("self"), known.pop("mat2")
    offs = known.pop("offs", None)
    if a.dtype is not torch.float64 or any(part is not None for part in known.values()):
        return func(*args, **settings)
    if offs is None:
        return a @ b
    ends = offs.tolist()
    spans = [slice(*pair) for pair in zip([0, *ends], ends, strict=False)]
    left = a if a.ndim == 3 else [a[s] if b.ndim == 3 else a[:, s] for s in spans]
    right = b if b.ndim == 3 else [b[:, s] if a.ndim == 3 else b[s] for s in spans]
    products = [x @ y for x, y in zip(left, right, strict=True)]
    if a.ndim == b.ndim:
        return torch.stack(products)
    # Rows beyond the last group belong to none.
    if b.ndim == 3:
        return torch.cat([*products, a.new_zeros(len(a) - ends[-1], b.shape[2])])
    beyond = b.shape[1] - ends[-1]
    return torch.cat([*products, b.new_zeros(a.shape[1], beyond)], 1)
