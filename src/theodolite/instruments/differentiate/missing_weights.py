"""Norms with a bias and no weight, whose second derivative torch gets wrong.

It gives zeros for the bias, or stumbles over what is missing (2.13): a weight of ones
is put in.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

GROUP_NORMS: tuple[Callable[..., Any], ...] = (functional.group_norm, torch.group_norm)
_GROUP_NAMES = ("input", "num_groups", "weight", "bias", "eps", "cudnn_enabled")


def group_norm(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """Call group norm of torch, with a weight where it has a bias."""
    given = {**dict(zip(_GROUP_NAMES, args, strict=False)), **kwargs}
    return with_weight(func, given, args, kwargs)


def with_weight(
    func: Callable[..., Any],
    given: Mapping[str, Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Tensor:
    """Call a norm, with ones for a weight that is missing beside a bias.

    Args:
        func: The norm.
        given: All of its arguments by name.
        args: Those that came without.
        kwargs: Those that came with one.
    """
    x, bias = given.get("input"), given.get("bias")
    if given.get("weight") is not None or not isinstance(bias, Tensor):
        return func(*args, **kwargs)
    if not isinstance(x, Tensor):
        return func(*args, **kwargs)
    # What does not fit torch is to complain about.
    if tuple(bias.shape) != tuple(given.get("normalized_shape", x.shape[1:2])):
        return func(*args, **kwargs)
    return func(**{**given, "weight": torch.ones_like(bias)})
