"""Perturb results of torch by one rounding, to see how a network amplifies rounding."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..calls.listening import Listener
from ..differentiate.model_backward import is_transformed

_TF32 = 2.0**-11


class MovedResults(Listener):
    """Perturb every result of torch by one rounding unit, up or down at random.

    Results that share memory with their arguments are views or in place, and
    round nothing; those without a graph play no part in derivatives.

    Args:
        seed: Seed of the perturbations; None to change nothing and only record dtypes.
        eps: Rounding unit: that of the lowest precision in the graph.

    Attributes:
        eps: Rounding unit of the lowest precision among results so far.
    """

    def __init__(self, seed: int | None, eps: float = 0.0) -> None:
        self._generator = torch.Generator().manual_seed(seed or 0)
        self._idle, self.eps = seed is None, eps

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function, and perturb its results."""
        result = function(*args, **kwargs)
        if is_transformed():
            return result
        given = [*args, *kwargs.values()]
        known = {_storage(part) for part in given if isinstance(part, Tensor)}
        if type(result) is tuple:
            return tuple(self._moved(function, part, known) for part in result)
        return self._moved(function, result, known)

    def _moved(self, func: Callable[..., Any], result: Any, known: set[int]) -> Any:
        if type(result) is not Tensor or not result.requires_grad or result.is_leaf:
            return result
        plain = result.layout is torch.strided and result.is_floating_point()
        if not plain or result.numel() < 2 or _storage(result) in known:
            return result
        self.eps = max(self.eps, torch.finfo(result.dtype).eps)
        if self._idle:
            return result
        # One for all samples, so that graphs hold little more.
        shape = (1, *result.shape[1:]) if result.ndim > 1 else result.shape
        signs = (
            torch.randint(0, 2, shape, generator=self._generator, device="cpu") * 2 - 1
        )
        eps = max(self.eps, _TF32 if _on_tensor_cores(func, result) else 0.0)
        factors = 1 + eps * signs.to(result.device, torch.float64)
        return result * factors.to(result.dtype)


def _storage(tensor: Tensor) -> int:
    strided = tensor.layout is torch.strided
    return tensor.untyped_storage().data_ptr() if strided else id(tensor)


def _on_tensor_cores(func: Callable[..., Any], result: Tensor) -> bool:
    """Whether a GPU may round the factors of a product in float32 to TF32."""
    if not result.is_cuda or result.dtype is not torch.float32:
        return False
    folded = "conv" in getattr(func, "__name__", "")
    switch = torch.backends.cudnn if folded else torch.backends.cuda.matmul
    try:
        return bool(switch.allow_tf32)
    except RuntimeError:  # which torch says where its newer switches were used
        return True
