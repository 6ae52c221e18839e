"""Replace operators whose second derivative in torch is wrong, slow or missing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils import checkpoint as library

from theodolite.core import safe_point

from .activations_twice import ACTIVATIONS, activation
from .attention_twice import attention
from .batch_norm_twice import BATCH_NORMS, INSTANCE_NORMS, batch_norm, instance_norm
from .convolution_twice import CONVOLUTIONS, convolution
from .elementary_norms import GROUP_NORMS, group_norm
from .layer_norm_twice import LAYER_NORMS, layer_norm
from .model_backward import BACKWARD_FUNCTIONS, run_backward
from .rectifier_twice import RECTIFIERS, hard_sigmoid, rectifier

_C: Any = torch._C
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


# Called by torch around code under non-reentrant checkpointing.
_GENERATOR = "_checkpoint_without_reentrant_generator"


class _Recomputing:
    """Makes checkpointed code run without checkpointing, wherever it was imported.

    The first to enter replaces the function that torch's ``checkpoint`` calls, and the
    last to leave restores it, in any order of threads and sessions.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._generator: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._generator = getattr(library, _GENERATOR)
                setattr(library, _GENERATOR, lambda *args, **kwargs: iter([None]))
                library.CheckpointFunction.apply = staticmethod(_call_directly)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                setattr(library, _GENERATOR, self._generator)
                del library.CheckpointFunction.apply  # which it inherits


def _call_directly(function: Callable[..., Any], _: bool, *args: Any) -> Any:
    return function(*args)


without_recomputing = _Recomputing()


# The torch functions that are replaced, wherever they are called.
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
        functional.hardsigmoid,
        torch._grouped_mm,  # pyright: ignore[reportPrivateImportUsage]
    ]
)
# Layers before which a pass may stop: no code that restores a state calls them.
_LAYERS: frozenset[Callable[..., Any]] = REPLACED | {
    functional.linear,
    torch.matmul,
    Tensor.matmul,
    Tensor.__matmul__,
    torch.mm,
    torch.bmm,
    torch.einsum,
}


@contextmanager
def differentiable_twice(model: nn.Module | None = None) -> Iterator[None]:
    """Make second derivatives correct for all code that runs inside.

    Weight normalisation is computed from elementary operators, because the double
    backward of the fused one fails ``gradgradcheck`` (torch 2.13: Hessians off by their
    own size). Attention uses plain matrix products, or torch's plain backend, the only
    one with a second derivative. Convolutions use standard kernels, and batch norms
    with given statistics few passes, where these are faster. Layer and instance norms
    and activations take fewer operators. If the model has recurrent layers, cuDNN is
    off, since it has no second derivative for them. Embeddings have dense gradients,
    and embedding bags second ones. Grouped matrix products, which torch lacks in
    float64 (2.13), run one by one there. Activation checkpointing is off: it recomputes
    outside of these replacements, and its reentrant form has no second derivative.
    Norms with a bias and no weight get a weight of ones.
    """
    recurrent = model is not None and any(
        isinstance(module, nn.RNNBase) for module in model.modules()
    )
    with ExitStack() as stack:
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(_Replace())
        stack.enter_context(without_recomputing)
        if (
            recurrent
        ):  # not by cudnn.flags, which fails where TF32 is set by newer names
            stack.callback(_C._set_cudnn_enabled, _C._get_cudnn_enabled())
            _C._set_cudnn_enabled(False)
        yield


@contextmanager
def differentiating() -> Iterator[None]:
    """Record graphs, even if the caller switched grad mode off."""
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
        if func in _LAYERS:
            safe_point()
        if func not in REPLACED:
            if func in BACKWARD_FUNCTIONS:
                return run_backward(func, args, kwargs)
            return func(*args, **kwargs)
        if func in CONVOLUTIONS:
            return convolution(func, args, kwargs)
        if func in BATCH_NORMS:
            return batch_norm(func, args, kwargs)
        if func in RECTIFIERS:
            return rectifier(func, args, kwargs)
        if func is functional.hardsigmoid:
            return hard_sigmoid(*args, **kwargs)
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
        if func is torch._grouped_mm:  # pyright: ignore[reportPrivateImportUsage]
            return _grouped_products(func, *args, **kwargs)
        if func is functional.embedding:
            return embedding(*args, **kwargs)
        return embedding_bag(*args, **kwargs)


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return g v / ‖v‖, the norm over all axes except one, or over all for dim −1."""
    if dim == -1:
        return v * (g / v.square().sum().sqrt())
    axes = [axis for axis in range(v.ndim) if axis != dim % v.ndim]
    return v * (g / v.square().sum(axes, keepdim=True).sqrt())


def _grouped_products(
    func: Callable[..., Tensor], a: Tensor, b: Tensor, *given: Any, **settings: Any
) -> Tensor:
    """Multiply groups of matrices; one by one in float64, which torch lacks.

    Groups lie along the first axis where there are three; else ``offs`` says where they
    end: along rows of the first, columns of the second, or what is summed over.
    """
    known = {
        **dict(zip(("offs", "bias", "out_dtype"), given, strict=False)),
        **settings,
    }
    offs = known.pop("offs", None)
    if a.dtype is not torch.float64 or any(part is not None for part in known.values()):
        return func(a, b, *given, **settings)
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
