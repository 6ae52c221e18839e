"""Replace operators whose second derivative in torch is wrong, slow or missing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import checkpoint as library

from theodolite.core import safe_point

from ..calls.listening import Installed, Listener
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


def _recompute_nothing() -> Callable[[], None]:
    """Make checkpointed code run without checkpointing, wherever it was imported."""
    generator = getattr(library, _GENERATOR)
    setattr(library, _GENERATOR, lambda *args, **kwargs: iter([None]))
    library.CheckpointFunction.apply = staticmethod(_call_directly)

    def undo() -> None:
        setattr(library, _GENERATOR, generator)
        del library.CheckpointFunction.apply  # which it inherits

    return undo


def _call_directly(function: Callable[..., Any], _: bool, *args: Any) -> Any:
    return function(*args)


without_recomputing = Installed(_recompute_nothing)


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
        stack.enter_context(Replacements())
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


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return g v / ‖v‖, the norm over all axes except one, or over all for dim −1."""
    if dim == -1:
        return v * (g / v.square().sum().sqrt())
    axes = [axis for axis in range(v.ndim) if axis != dim % v.ndim]
    return v * (g / v.square().sum(axes, keepdim=True).sqrt())


def _grouped_products(
    func: Callable[..., Tensor], args: Sequence[Any], settings: Mapping[str, Any]
) -> Tensor:
    """Multiply groups of matrices; one by one in float64, which torch lacks.

    Groups lie along the first axis where there are three; else ``offs`` says where they
    end: along rows of the first, columns of the second, or what is summed over.
    """
    known = {
        **dict(zip(("self", "mat2", "offs", "bias", "out_dtype"), args, strict=False)),
        **settings,
    }
    a, b = known.pop("self"), known.pop("mat2")
    offs = known.pop("offs", None)
    if a.dtype is not torch.float64 or any(part is not None for part in known.values()):
        return func(*args, **settings)
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


def _by_arguments(replacement: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _, args, kwargs: replacement(*args, **kwargs)


# The torch functions that are replaced, wherever they are called, and what is called
# instead with the function, its arguments and its keywords.
REPLACED: dict[Callable[..., Any], Callable[..., Any]] = {
    **dict.fromkeys(CONVOLUTIONS, convolution),
    **dict.fromkeys(BATCH_NORMS, batch_norm),
    **dict.fromkeys(RECTIFIERS, rectifier),
    **dict.fromkeys(ACTIVATIONS, activation),
    **dict.fromkeys(LAYER_NORMS, layer_norm),
    **dict.fromkeys(INSTANCE_NORMS, instance_norm),
    **dict.fromkeys(GROUP_NORMS, group_norm),
    functional.scaled_dot_product_attention: lambda _, *given: attention(*given),
    torch._weight_norm: _by_arguments(_weight_norm),  # pyright: ignore
    functional.embedding: _by_arguments(embedding),
    functional.embedding_bag: _by_arguments(embedding_bag),
    functional.hardsigmoid: _by_arguments(hard_sigmoid),
    torch._grouped_mm: _grouped_products,  # pyright: ignore
}
_PRODUCTS = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.mm, torch.bmm)
# What is called in place of layers, None for the layer itself, and of functions that
# run a backward pass.
CALLED_INSTEAD: dict[Callable[..., Any], Callable[..., Any] | None] = {
    **dict.fromkeys((*_PRODUCTS, torch.einsum, functional.linear)),
    **dict.fromkeys(BACKWARD_FUNCTIONS, run_backward),
    **REPLACED,
}


class Replacements(Listener):
    """Calls what has a correct second derivative in place of torch's functions.

    Attributes:
        batch_norms: Computes batch norms instead, if it is set: the method of a
            listener that would be entered directly after this one.
    """

    def __init__(self) -> None:
        self.batch_norms: Callable[[Any, Any, Any], Any] | None = None

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function or what replaces it."""
        if self.batch_norms is not None and function in BATCH_NORMS:
            instead = self.batch_norms
        elif function not in CALLED_INSTEAD:
            return function(*args, **kwargs)
        else:
            instead = CALLED_INSTEAD[function]
        # A pass may stop before a layer: no code that restores a state calls one.
        if instead is not run_backward:
            safe_point()
        if instead is None:
            return function(*args, **kwargs)
        return instead(function, args, kwargs)
