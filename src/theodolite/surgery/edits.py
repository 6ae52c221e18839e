"""Edits of a tensor: scale it, zero it, add an identity, normalise it, shift it.

Edits are modules that their owner does not register: they hold no parameters, and run
as separate visits, so that their operations do not count as the owner's code.
Parameters and norms that they use are registered with the owner and read by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

_PLAIN = ("input", "other")
# By function name, the keyword names of its positional arguments.
_OPERANDS = {
    "add": _PLAIN,
    "sub": _PLAIN,
    "rsub": _PLAIN,
    "subtract": _PLAIN,
    "addcmul": ("input", "tensor1", "tensor2"),
    "addcdiv": ("input", "tensor1", "tensor2"),
    "addmm": ("input", "mat1", "mat2"),
    "baddbmm": ("input", "batch1", "batch2"),
    "addbmm": ("input", "batch1", "batch2"),
    "addmv": ("input", "mat", "vec"),
    "addr": ("input", "vec1", "vec2"),
}
# By torch's name of a function, its plain name and whether it writes in place. A table,
# since ``torch.compile`` supports lookups but not parsing of names.
_NAMES = {
    **{name: (name, False) for name in _OPERANDS},
    **{f"{name}_": (name, True) for name in _OPERANDS},
    "__add__": ("add", False),
    "__radd__": ("add", False),
    "__iadd__": ("add", True),
    "__sub__": ("sub", False),
    "__rsub__": ("rsub", False),
    "__isub__": ("sub", True),
}


@dataclass(frozen=True, kw_only=True)
class TorchSum:
    """One call of a torch function that adds."""

    name: str  # plain name of the function, without underscores
    in_place: bool  # whether the first operand is written to
    # What is added, in order; of ``addmm`` and its like also the factors.
    operands: tuple[Any, ...]
    options: dict[str, Any]  # the remaining keyword arguments


def read_sum(
    func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None
) -> TorchSum | None:
    """Return the sum that a torch function computes, None if it adds no tensors.

    Example:
        >>> import torch
        >>> x = torch.ones(2)
        >>> read_sum(torch.Tensor.add_, (x, x), {}).in_place
        True
        >>> read_sum(torch.add, (x, 1), {}) is None
        True
    """
    written = getattr(func, "__name__", "")
    if written not in _NAMES:
        return None
    name, in_place = _NAMES[written]
    options = dict(kwargs or {})
    operands = tuple(args)
    for keyword in _OPERANDS[name][len(operands) :]:
        if keyword in options:
            operands = (*operands, options.pop(keyword))
    if len(operands) != len(_OPERANDS[name]) or "out" in options:
        return None
    if not all(isinstance(operand, Tensor) for operand in operands):
        return None
    return TorchSum(name=name, in_place=in_place, operands=operands, options=options)


Factor = float | str


class Edit(nn.Module):
    """Base of all edits: ``edit(owner, value, beside)`` returns the new value."""


class ScaleEdit(Edit):
    """Multiplies by a number, or by a parameter of the owner, given by name."""

    def __init__(self, by: Factor) -> None:
        super().__init__()
        self.by = by

    def forward(self, owner: nn.Module, value: Tensor, beside: Any) -> Tensor:
        """Multiply a value."""
        return value * factor_of(owner, self.by)


class ZeroEdit(Edit):
    """Replaces a value by zeros."""

    def forward(self, owner: nn.Module, value: Tensor, beside: Any) -> Tensor:
        """Return zeros."""
        return torch.zeros_like(value)


class IdentityEdit(Edit):
    """Adds another value, mapped to this shape by an identity."""

    def __init__(self, identity_between: nn.Module, by: Factor) -> None:
        super().__init__()
        # In a tuple, so that it is not registered as a submodule.
        self.held = (identity_between,)
        self.by = by

    def forward(self, owner: nn.Module, value: Tensor, beside: Tensor) -> Tensor:
        """Add the other value, mapped to this shape."""
        straight = self.held[0](beside)
        if self.by != 1.0:
            straight = straight * factor_of(owner, self.by)
        return value + straight


class NormEdit(Edit):
    """Applies a submodule of the owner, given by name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, owner: nn.Module, value: Tensor, beside: Any) -> Tensor:
        """Normalise a value."""
        return getattr(owner, self.name)(value)


class ShiftEdit(Edit):
    """Adds a parameter of the owner, given by name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, owner: nn.Module, value: Tensor, beside: Any) -> Tensor:
        """Shift a value."""
        return value + getattr(owner, self.name)


def factor_of(owner: nn.Module, by: Factor) -> Tensor | float:
    """Return a factor: a number, or the parameter of that name."""
    return getattr(owner, by) if isinstance(by, str) else by
