"""Batch norm by running statistics, with a cheap second derivative.

torch's own is put together from some forty kernels. Most are over one number a channel,
which on a card take as long to be launched as those over all activations; a dozen are
over activations, on a processor a seventh of a Hessian product of a small
convolutional net in float32, and a quarter in float64.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional

from theodolite.instruments.differentiate.line_twice import line_twice

BATCH_NORMS = (functional.batch_norm, torch.batch_norm)
# Numbers from which a line is quicker on a processor; with a tenth of them torch's own
# was, by a tenth.
_WORTH = 2**15
_TENSORS = ("input", "running_mean", "running_var", "weight", "bias")


def fixed_norm(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call batch norm, as a line in each channel where that is quicker.

    Statistics of the batch, and whatever is unusual, are left to torch.
    """
    given = batch_norm_arguments(func, args, kwargs)
    if not _ordinary(given) or not quicker(given["input"]):
        return func(*args, **kwargs)
    mean, weight, bias = (given[n] for n in ("running_mean", "weight", "bias"))
    scale = (given["running_var"] + given["eps"]).rsqrt()
    level = torch.zeros_like(mean) if bias is None else bias
    return line_twice(
        given["input"], mean, scale if weight is None else weight * scale, level
    )


def quicker(x: Tensor) -> bool:
    """Say whether a line is quicker here than torch's double backward."""
    if x.device.type != "cpu":
        return x.device.type == "cuda"
    return x.numel() >= _WORTH and x.dtype in (torch.float32, torch.float64)


def _ordinary(given: dict[str, Any]) -> bool:
    """Say whether a call records a graph of plain tensors by given statistics."""
    tensors = [given.get(name) for name in _TENSORS]
    if given["training"] or any(tensor is None for tensor in tensors[:3]):
        return False
    held: list[Any] = [tensor for tensor in tensors if tensor is not None]
    plain = all(type(tensor) in (Tensor, torch.nn.Parameter) for tensor in held)
    nested = torch._C._are_functorch_transforms_active()
    if not plain or nested or forward_ad._current_level >= 0:
        return False
    x, mean, variance = held[:3]
    alike = len({(t.dtype, t.device, t.layout) for t in held}) == 1
    constant = not mean.requires_grad and not variance.requires_grad
    cast = torch.is_autocast_enabled(x.device.type)
    graph = torch.is_grad_enabled() and any(t.requires_grad for t in held)
    fits = x.ndim >= 2 and all(t.shape == x.shape[1:2] for t in held[1:])
    return alike and constant and graph and fits and not cast


def batch_norm_arguments(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of either spelling of batch norm, by name."""
    head = ("input", "running_mean", "running_var", "weight", "bias")
    if func is torch.batch_norm:
        head = ("input", "weight", "bias", "running_mean", "running_var")
    names = (*head, "training", "momentum", "eps")
    defaults = {"weight": None, "bias": None, "training": False, "eps": 1e-5}
    return {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
