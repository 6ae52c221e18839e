"""What operators of torch do to tubes, by the operator's name."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .bends import largest
from .functions import BOUNDED, BY_TUBES, LOCAL, gelu_by_tanh, smooth
from .normalising import normalised
from .norms import UP, Convolutions, Matrices
from .tubes import Form, Tube, bilinear, constant, gamma, linear

# Operators that move, repeat or leave out entries.
MOVES = frozenset(
    "view _unsafe_view _reshape_alias t transpose permute squeeze unsqueeze clone "
    "detach alias lift_fresh expand slice select index index_select gather diagonal "
    "constant_pad_nd reflection_pad2d replication_pad2d flip roll repeat "
    "pixel_shuffle pixel_unshuffle "
    "upsample_nearest2d _to_copy im2col unfold tril triu".split()
)
# Those that read the memory of a tensor: its values at knots hold it in other orders.
_RESHAPES = frozenset("view _unsafe_view _reshape_alias".split())
# Those with several results.
SPLITS = frozenset("split split_with_sizes unbind".split())


class Operators:
    """Applies operators to tubes.

    Args:
        exact: Whether products are computed from exact ones, which takes three.

    Attributes:
        names: Names of all operators that have a rule.
    """

    def __init__(self, exact: bool = False) -> None:
        self._product = partial(bilinear, exact=exact)
        self._products: dict[str, Callable[..., Tube]] = {
            **dict.fromkeys(("mm", "bmm", "mv", "dot"), self._matrices),
            **dict.fromkeys(("addmm", "baddbmm"), self._addmm),
            "convolution": self._convolution,
        }
        self.names = {*self._products, *RULES, *MOVES, *SPLITS}

    def __call__(self, operator: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Return the tubes of an operator's results, None for those of no signal."""
        rule = self._products.get(name) or RULES.get(name)
        if rule is not None:
            return rule(*args, **kwargs)
        u, *rest = args
        if name == "constant_pad_nd" and len(rest) > 1 and rest[1]:
            raise KeyError("a pad that is not of zeros")
        if name in ("detach", "alias", "lift_fresh"):
            return u
        if name in _RESHAPES and not isinstance(rest[0], torch.dtype):
            return u.moved(lambda one: one.reshape(rest[0]))
        if name in MOVES:
            return u.moved(lambda one: operator(one, *rest, **kwargs))
        return [
            u.moved(lambda one, at=at: operator(one, *rest, **kwargs)[at])
            for at in range(len(operator(u.a, *rest, **kwargs)))
        ]

    def _matrices(self, a: Any, b: Any) -> Tube:
        a, b = _tube(a), _tube(b)
        return self._product(torch.matmul, a, b, a.a.shape[-1], Matrices())

    def _addmm(self, c: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Tube:
        product = self._matrices(a, b).scaled(float(alpha))
        return product + _tube(c).scaled(float(beta))

    def _convolution(self, x: Any, w: Any, bias: Any, *settings: Any) -> Tube:
        def form(a: Tensor, b: Tensor) -> Tensor:
            return torch.ops.aten.convolution(a, b, None, *settings)

        x, w = _tube(x), _tube(w)
        shape = w.a.shape
        count = math.prod(shape[2:]) * max(shape[0], shape[1])
        stride, dilation = settings[0], settings[2]
        stride = tuple(stride) if set(dilation) == {1} else ()
        if len(stride) < len(shape) - 2:  # one number for all sides
            stride *= len(shape) - 2
        norms = Convolutions(tuple(shape[2:]), settings[-1], stride, settings[3])
        result = self._product(form, x, w, count, norms)
        return _weighted(result, None, bias, (1, -1, *[1] * (len(shape) - 2)))


def _tube(given: Any) -> Tube:
    """Return a tube, or that of a constant tensor or number."""
    if isinstance(given, Tube):
        return given
    return constant(torch.as_tensor(given, dtype=torch.float64, device="cpu"))


def _add(a: Any, b: Any, alpha: float = 1) -> Tube:
    return _tube(a) + _tube(b).scaled(float(alpha))


def _scaled(a: Any, b: Any) -> Tube:
    return a.scaled(float(b)) if isinstance(b, int | float) else _tube(a) * _tube(b)


def _divided(a: Any, b: Any) -> Tube:
    if isinstance(b, int | float):
        return a.scaled(1 / float(b))
    return _tube(a) * smooth(_tube(b), "reciprocal")


def _averaged(u: Tube, add: Form, count: int, column: float) -> Tube:
    """Return the tube of sums or means of at most ``count`` entries each.

    The squared norm is at most the largest sum of a row times that of a column.
    """
    norm = math.sqrt(float(add(torch.ones_like(u.a)).max()) * column) * UP
    return linear(add, (u,), (norm,), gamma(count + 4) * norm)


def _sum(kind: str, u: Tube, *rest: Any, **named: Any) -> Tube:
    def add(one: Tensor) -> Tensor:
        return getattr(torch, kind)(one, *rest, **named)

    count = max(u.a.numel() // max(add(u.a).numel(), 1), 1)
    return _averaged(u, add, count, 1.0 if kind == "sum" else 1 / count)


def _mean_pool(
    u: Tube, kernel: Any, stride: Any = (), padding: Any = 0, *rest: Any
) -> Tube:
    settings = [_pair(kernel), _pair(stride or kernel), _pair(padding), *rest]
    settings += [False, True, None][len(rest) :]
    return _pooled("avg_pool2d", u, settings, settings, math.prod(_pair(kernel)))


def _adaptive_pool(u: Tube, size: Any) -> Tube:
    sides = zip(u.a.shape[-2:], _pair(size), strict=True)
    count = math.prod(math.ceil(side / out) + 1 for side, out in sides)
    return _pooled("_adaptive_avg_pool2d", u, [_pair(size)], [], count)


def _pooled(name: str, u: Tube, settings: Any, back: Any, count: int) -> Tube:
    def add(one: Tensor) -> Tensor:
        return getattr(torch.ops.aten, name)(one, *settings)

    ones = torch.ones_like(add(u.a))
    columns = getattr(torch.ops.aten, f"{name}_backward")(ones, u.a, *back)
    return _averaged(u, add, count, float(columns.max()))


def _max_pool(
    u: Tube, kernel: Any, stride: Any = (), padding: Any = 0, *rest: Any
) -> tuple[Tube, None]:
    if rest and (_pair(rest[0]) != (1, 1) or any(rest[1:])):
        raise KeyError("a max pool with dilation or ceil_mode")
    shape = functional.max_pool2d(u.a, kernel, stride or kernel, padding).shape
    settings = {"stride": stride or kernel, "padding": padding}

    def windows(x: Tensor) -> Tensor:
        images = x.reshape(-1, 1, *x.shape[-2:])
        parts = functional.unfold(images, _pair(kernel), **settings)
        return parts.movedim(1, 0).reshape(-1, *shape)

    # Zeros at the edges are no larger than what is above the least entry.
    low = float(torch.minimum(u.a, u.b).min()) - 4 * u.reach - 1.0
    low = _tube(max(low, -1e300))
    return largest((u - low).moved(windows)) + low, None


def _joined(join: Any, parts: Sequence[Any], dim: int = 0) -> Tube:
    tubes = [_tube(one) for one in parts]
    return linear(lambda *given: join(given, dim), tubes, [1.0] * len(tubes))


def _filled(u: Tube, mask: Tensor, value: Any) -> Tube:
    filled = torch.where(mask, float(value), torch.zeros_like(u.a))
    if not filled.isfinite().all():
        raise KeyError("masked_fill with a value that is not finite")
    return u.moved(lambda one: one.masked_fill(mask, 0.0)) + _tube(filled)


def _pow(u: Tube, exponent: Any) -> Tube:
    if not isinstance(exponent, int | float):
        raise KeyError("pow with an exponent that is a tensor")
    if exponent in (2, 3):
        return u * u if exponent == 2 else u * u * u
    if exponent in (0.5, -0.5, -1):
        return smooth(u, {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}[exponent])
    raise KeyError(f"pow with exponent {exponent}")


def _softplus(u: Tube, beta: float = 1, threshold: float = 20) -> Tube:
    if beta != 1 or threshold < 20:
        raise KeyError("softplus with a beta or a threshold below 20")
    return smooth(u, "softplus")


def _elu(u: Tube, alpha: float = 1, scale: float = 1, inner: float = 1) -> Tube:
    if (alpha, inner) != (1, 1):
        raise KeyError("ELU with an alpha")
    return smooth(u, "elu").scaled(scale)


def _gelu(u: Tube, approximate: str = "none") -> Tube:
    return smooth(u, "gelu") if approximate == "none" else gelu_by_tanh(u)


def _weighted(u: Tube, weight: Any, bias: Any, shape: Any) -> Tube:
    if weight is not None:
        u = u * _tube(weight).moved(lambda one: one.reshape(shape))
    if bias is not None:
        u = u + _tube(bias).moved(lambda one: one.reshape(shape))
    return u


def _batch_norm(u: Tube, weight: Any, bias: Any, *rest: Any) -> tuple[Tube, None, None]:
    mean, variance, training, _, eps = rest if len(rest) == 5 else (None, None, *rest)
    dims = u.a.ndim
    shape = (1, -1, *[1] * (dims - 2))
    if training:
        result = normalised(u, (0, *range(2, dims)), eps)
    else:
        inverse = smooth(_tube(variance) + _tube(eps), "rsqrt")
        centred = _weighted(u, None, _tube(mean).scaled(-1.0), shape)
        result = _weighted(centred, inverse, None, shape)
    return _weighted(result, weight, bias, shape), None, None


def _layer_norm(
    u: Tube, shape: Sequence[int], weight: Any, bias: Any, eps: float
) -> tuple[Tube, None, None]:
    dims = tuple(range(u.a.ndim - len(shape), u.a.ndim))
    return _weighted(normalised(u, dims, eps), weight, bias, tuple(shape)), None, None


def _group_norm(
    u: Tube, weight: Any, bias: Any, n: int, c: int, _: int, groups: int, eps: float
) -> tuple[Tube, None, None]:
    shape = u.a.shape
    grouped = u.moved(lambda one: one.reshape(n, groups, -1))
    normed = normalised(grouped, (2,), eps).moved(lambda one: one.reshape(shape))
    spread = (1, c, *[1] * (len(shape) - 2))
    return _weighted(normed, weight, bias, spread), None, None


def _vector_norm(
    u: Tube, order: float = 2, dim: Any = None, keepdim: bool = False
) -> Tube:
    if order != 2:
        raise KeyError("a norm that is not Euclidean")
    dims = list(range(u.a.ndim)) if dim is None else dim
    return smooth(_sum("sum", u * u, dims, keepdim), "sqrt")


def _weight_norm(v: Any, g: Any, dim: int = 0) -> tuple[Tube, None]:
    v = _tube(v)
    dims = [one for one in range(v.a.ndim) if one != dim]
    return v * _divided(_tube(g), _vector_norm(v, 2, dims, True)), None


def _reduced(u: Tube, reduction: int) -> Tube:
    return u if reduction == 0 else _sum(("mean", "sum")[reduction - 1], u)


def _mse(u: Any, target: Any, reduction: int = 1) -> Tube:
    gap = _tube(u) - _tube(target)
    return _reduced(gap * gap, reduction)


def _logistic(
    u: Any, target: Any, weight: Any = None, positive: Any = None, reduction: int = 1
) -> Tube:
    if positive is not None or weight is not None:
        raise KeyError("binary cross-entropy with weights")
    return _reduced(smooth(u, "softplus") - u * _tube(target), reduction)


def _nll(
    u: Tube, target: Tensor, weight: Any, reduction: int, ignored: int
) -> tuple[Tube, None]:
    rows = u if u.a.ndim > 1 else u.moved(lambda one: one[None])
    classes = target.reshape(-1)
    counts = (classes != ignored).double()
    safe = torch.where(classes == ignored, 0, classes)
    if weight is not None:
        counts = counts * weight.double()[safe]
    picked = rows.moved(lambda one: one.gather(1, safe[:, None])[:, 0])
    result = _reduced(picked * _tube(-counts), 2 if reduction else 0)
    if reduction == 1:
        result = result.scaled(1 / math.fsum(counts.tolist()))
    return result, None


def _pair(given: Any) -> tuple[int, int]:
    values = tuple(given) if isinstance(given, Sequence) else (given,)
    return (values * 2)[:2] if len(values) == 1 else values[:2]  # type: ignore[return-value]


RULES: dict[str, Callable[..., Any]] = {
    **{name: partial(smooth, name=name) for name in (*BOUNDED, *LOCAL)},
    **BY_TUBES,
    "add": _add,
    "sub": lambda a, b, alpha=1: _add(a, b, alpha=-alpha),
    "rsub": lambda a, b, alpha=1: _add(b, a, alpha=-alpha),
    "mul": _scaled,
    "div": _divided,
    "mean": partial(_sum, "mean"),
    "sum": partial(_sum, "sum"),
    "avg_pool2d": _mean_pool,
    "_adaptive_avg_pool2d": _adaptive_pool,
    "max_pool2d_with_indices": _max_pool,
    "cat": partial(_joined, torch.cat),
    "stack": partial(_joined, torch.stack),
    "pow": _pow,
    "masked_fill": _filled,
    "gelu": _gelu,
    "softplus": _softplus,
    "elu": _elu,
    "log_sigmoid_forward": lambda u: (smooth(u, "log_sigmoid_forward"), None),
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit_no_training": lambda u, w, b, m, v, momentum, eps: (
        _batch_norm(u, w, b, m, v, False, momentum, eps)
    ),
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "linalg_vector_norm": _vector_norm,
    "_weight_norm_interface": _weight_norm,
    "mse_loss": _mse,
    "nll_loss_forward": _nll,
    "binary_cross_entropy_with_logits": _logistic,
    "embedding": lambda u, places, *_: u.moved(lambda one: one[places]),
}
