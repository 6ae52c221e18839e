"""Functions of torch that add tensors, as code calls them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

_PLAIN = ("input", "other")
# By name, what keyword arguments would be called in place of positional ones.
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
# By the name under which torch knows a function, its plain name and whether it writes.
# A table, since a compiler can look a name up and not take it apart.
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
    """One call of a function that adds.

    Attributes:
        name: Of the function, without marks of operators and in-place writing.
        in_place: Whether the first operand is written to.
        operands: What is added, in order; of ``addmm`` and its like also the factors.
        options: The remaining keyword arguments.
    """

    name: str
    in_place: bool
    operands: tuple[Any, ...]
    options: dict[str, Any]


def read_sum(
    func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None
) -> TorchSum | None:
    """Return what a function of torch adds, None if it is no sum of tensors.

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
