"""Replace operators that torch differentiates twice wrongly, slowly or not at all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from theodolite.instruments.differentiate.activations_twice import (
    ACTIVATIONS,
    activation,
)
from theodolite.instruments.differentiate.attention_twice import attention
from theodolite.instruments.differentiate.batch_norm_given import (
    BATCH_NORMS,
    batch_norm,
)
from theodolite.instruments.differentiate.convolution_twice import (
    CONVOLUTIONS,
    convolution,
)
from theodolite.instruments.differentiate.embeddings import embedding, embedding_bag
from theodolite.instruments.differentiate.instance_norm_twice import (
    INSTANCE_NORMS,
    instance_norm,
)
from theodolite.instruments.differentiate.layer_norm_twice import (
    LAYER_NORMS,
    layer_norm,
)
from theodolite.instruments.differentiate.missing_weights import (
    GROUP_NORMS,
    group_norm,
)
from theodolite.instruments.differentiate.own_passes import PASSES_BACK, passed_back
from theodolite.instruments.differentiate.recomputing import without_recomputing
from theodolite.instruments.differentiate.rectifier_twice import RECTIFIERS, rectifier

# The functions of torch that are replaced, wherever they are called.
REPLACED: frozenset[Callable[..., Any]] = frozenset(
    [
        *CONVOLUTIONS,
        *BATCH_NORMS,
        *RECTIFIERS,
        *ACTIVATIONS,
        *LAYER_NORMS,
        *INSTANCE_NORMS,
        *GROUP_NORMS,
        functional.scaled_dot_product_attention,
        torch._weight_norm,  # pyright: ignore[reportPrivateImportUsage]
        functional.embedding,
        functional.embedding_bag,
    ]
)


@contextmanager
def differentiable_twice(model: nn.Module | None = None) -> Iterator[None]:
    """Make second derivatives right for all code that runs inside.

    Weight normalisation is computed from elementary operators, because the double
    backward of the fused one fails ``gradgradcheck`` (torch 2.13: Hessians off by their
    own size); attention takes plain products of matrices, or torch's plain backend, the
    only one with a second derivative; convolutions take standard kernels, and batch
    norms on given statistics few passes, where these are quicker; layer and instance
    norms and activations take fewer operators. If the model has recurrent layers, cuDNN
    is left out, which has no second derivative for them. Embeddings have dense
    gradients, and bags of them second ones. Nothing is recomputed: activation
    checkpointing runs outside of what is replaced here, and its reentrant form has no
    second derivative. Norms with a bias and no weight get one of ones.
    """
    recurrent = model is not None and any(
        isinstance(module, nn.RNNBase) for module in model.modules()
    )
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(_Replace())
        stack.enter_context(without_recomputing)
        if recurrent:
            stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        yield


@contextmanager
def differentiating() -> Iterator[None]:
    """Record graphs, whatever mode the caller is in."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


class _Replace(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func not in REPLACED:
            if func in PASSES_BACK:
                return passed_back(func, args, kwargs)
            return func(*args, **kwargs)
        if func in CONVOLUTIONS:
            return convolution(func, args, kwargs)
        if func in BATCH_NORMS:
            return batch_norm(func, args, kwargs)
        if func in RECTIFIERS:
            return rectifier(func, args, kwargs)
        if func in ACTIVATIONS:
            return activation(func, args, kwargs)
        if func in LAYER_NORMS:
            return layer_norm(func, args, kwargs)
        if func in INSTANCE_NORMS:
            return instance_norm(func, args, kwargs)
        if func in GROUP_NORMS:
            return group_norm(func, args, kwargs)
        if func is functional.scaled_dot_product_attention:
            return attention(args, kwargs)
        if func is torch._weight_norm:  # pyright: ignore[reportPrivateImportUsage]
            return _weight_norm(*args, **kwargs)
        if func is functional.embedding:
            return embedding(*args, **kwargs)
        return embedding_bag(*args, **kwargs)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return g v / ‖v‖, the norm over all axes but one, or over all for dim −1."""
    if dim == -1:
        return v * (g / v.square().sum().sqrt())
    axes = [axis for axis in range(v.ndim) if axis != dim % v.ndim]
    return v * (g / v.square().sum(axes, keepdim=True).sqrt())
