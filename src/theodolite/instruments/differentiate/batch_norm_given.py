"""Batch norm on given statistics with a cheap second derivative: it is a line.

torch's own double backward is right but takes a dozen passes over the activations, a
third of a Hessian-vector product of a small convolutional net; on a card it is some
forty kernels, most of them over one number a channel, which take as long to be launched
as those over all activations.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from theodolite.instruments.differentiate.line_twice import line_twice
from theodolite.instruments.differentiate.missing_weights import with_weight
from theodolite.instruments.differentiate.own_passes import is_transformed

BATCH_NORMS: tuple[Callable[..., Any], ...] = (functional.batch_norm, torch.batch_norm)
# Numbers from which a line is quicker on a processor; with a tenth of them torch's own
# was, by a tenth.
_WORTH = 2**15
_TENSORS = ("input", "running_mean", "running_var", "weight", "bias")


def batch_norm_arguments(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of either spelling of batch norm, by name."""
    head = ("input", "running_mean", "running_var", "weight", "bias")
    if func is torch.batch_norm:
        head = ("input", "weight", "bias", "running_mean", "running_var")
    names = (*head, "training", "momentum", "eps", "cudnn_enabled")
    defaults = {"weight": None, "bias": None, "training": False, "eps": 1e-5}
    return {**defaults, **dict(zip(names, args, strict=False)), **kwargs}


def batch_norm(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call batch norm of torch; on given statistics as the line that it is.

    What is not an ordinary call torch itself is asked for, with a weight.
    """
    given = batch_norm_arguments(func, args, kwargs)
    if given["training"] or not _ordinary(given) or not quicker(given["input"]):
        return with_weight(func, given, args, kwargs)
    mean, weight, bias = (given[n] for n in ("running_mean", "weight", "bias"))
    variance = given["running_var"] + given["eps"]
    slope = torch.ones_like(mean) if weight is None else weight
    level = torch.zeros_like(mean) if bias is None else bias
    return line_twice(given["input"], mean, slope, level, variance)


def quicker(x: Tensor) -> bool:
    """Say whether a line is quicker here than torch's double backward."""
    if x.device.type != "cpu":
        return x.device.type == "cuda"
    return x.numel() >= _WORTH


def _ordinary(given: Mapping[str, Any]) -> bool:
    """Say whether a call records a graph of plain tensors of one type."""
    tensors: list[Any] = [given[n] for n in _TENSORS if given.get(n) is not None]
    plain = all(type(tensor) in (Tensor, torch.nn.Parameter) for tensor in tensors)
    if not plain or any(given.get(name) is None for name in _TENSORS[:3]):
        return False
    if is_transformed() or not torch.is_grad_enabled():
        return False
    x, mean, variance = tensors[:3]
    alike = len({(t.dtype, t.device, t.layout) for t in tensors}) == 1
    fits = x.ndim > 1 and all(t.shape == x.shape[1:2] for t in tensors[1:])
    constant = not (mean.requires_grad or variance.requires_grad)
    recorded = any(t.requires_grad for t in tensors) and x.numel() > 0
    known = x.dtype in (torch.float32, torch.float64) and x.layout is torch.strided
    cast = torch.is_autocast_enabled(x.device.type)
    return fits and alike and constant and recorded and known and not cast
