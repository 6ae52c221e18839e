"""Instance norm as what it is: batch norm of one sample that has a channel for each.

torch computes it so too, but its third derivatives are wrong, which a model wants that
differentiates inside its own pass.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from theodolite.instruments.differentiate.batch_norm_twice import batch_norm_twice
from theodolite.instruments.differentiate.missing_weights import with_weight
from theodolite.instruments.differentiate.own_passes import is_transformed

INSTANCE_NORMS: tuple[Callable[..., Any], ...] = (
    functional.instance_norm,
    torch.instance_norm,
)
_RUNNING, _AFFINE = ("running_mean", "running_var"), ("weight", "bias")
_LAST = ("use_input_stats", "momentum", "eps")


def instance_norm(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call instance norm of torch, with right derivatives of any order.

    On given statistics it is a line, whose derivatives torch has. That and what is not
    an ordinary call torch itself is asked for, with a weight.
    """
    given = _arguments(func, args, kwargs)
    if not given["use_input_stats"] or not _ordinary(given):
        return with_weight(func, given, args, kwargs)
    if any(given.get(name) is not None for name in _RUNNING):
        with torch.no_grad():
            func(*args, **kwargs)  # which moves the running statistics
    x: Tensor = given["input"]
    weight, bias = (
        None if given[name] is None else given[name].repeat(len(x)) for name in _AFFINE
    )
    flat = x.reshape(1, -1, *x.shape[2:])
    return batch_norm_twice(flat, weight, bias, given["eps"]).reshape(x.shape)


def _arguments(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of either spelling by name."""
    middle = (*_RUNNING, *_AFFINE)
    if func is torch.instance_norm:
        middle = (*_AFFINE, *_RUNNING)
    names = ("input", *middle, *_LAST, "cudnn_enabled")
    defaults = {"weight": None, "bias": None, "use_input_stats": True, "eps": 1e-5}
    return {**defaults, **dict(zip(names, args, strict=False)), **kwargs}


def _ordinary(given: Mapping[str, Any]) -> bool:
    """Say whether a call records a graph of plain tensors that fit together."""
    names = ("input", *_AFFINE)
    tensors: list[Any] = [given[n] for n in names if given.get(n) is not None]
    plain = all(type(part) in (Tensor, torch.nn.Parameter) for part in tensors)
    if not plain or given.get("input") is None or not torch.is_grad_enabled():
        return False
    x = tensors[0]
    # torch has a word to say about one value a channel.
    fits = x.ndim > 2 and x.numel() > 0 and x.shape[2:].numel() > 1
    fits = fits and all(part.shape == x.shape[1:2] for part in tensors[1:])
    alike = len({(part.dtype, part.device, part.layout) for part in tensors}) == 1
    known = x.dtype in (torch.float32, torch.float64) and x.layout is torch.strided
    recorded = is_transformed() or any(part.requires_grad for part in tensors)
    cast = torch.is_autocast_enabled(x.device.type)
    return fits and alike and known and recorded and not cast
