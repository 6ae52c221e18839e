"""Calls of torch whose result has a size that depends on values.

Python reads sizes without a call that a mode sees, and may choose its path by them.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

# Calls sized by the values of their first tensor.
_BY_FIRST = frozenset(
    "nonzero nonzero_numpy argwhere unique unique_consecutive unique_dim _unique "
    "_unique2 bincount one_hot".split()
)
# Calls sized by the values of later tensors, if there are any.
_BY_OTHERS = frozenset("masked_select tensor_split".split())
# Calls sized by numbers, which may be given as tensors.
_BY_NUMBERS = frozenset("arange linspace zeros ones empty full".split())
_BY_OTHER_NUMBERS = frozenset(
    "new_zeros new_ones new_empty new_full expand narrow view reshape repeat".split()
)


def sizing(name: str, flat: Sequence[Any]) -> list[Tensor]:
    """Return the arguments of a call whose values set the size of its result.

    Args:
        name: Name of the function.
        flat: Its arguments, not nested.
    """
    tensors = [entry for entry in flat if isinstance(entry, Tensor)]
    if name in _BY_FIRST or (name in ("where", "repeat_interleave") and len(flat) == 1):
        return tensors[:1]
    if name in _BY_OTHERS or name == "repeat_interleave":
        return tensors[1:]
    if name == "__getitem__":
        return [t for t in tensors[1:] if t.dtype in (torch.bool, torch.uint8)]
    if name in _BY_NUMBERS:
        return [tensor for tensor in tensors if not tensor.ndim]
    if name in _BY_OTHER_NUMBERS:
        return [tensor for tensor in tensors[1:] if not tensor.ndim]
    return []


def bounds(flat: Sequence[Any]) -> list[Any]:
    """Return where slices among arguments start and end."""
    slices = [e for e in pytree.tree_leaves(flat) if isinstance(e, slice)]
    return [bound for s in slices for bound in (s.start, s.stop, s.step)]
