"""What operators of torch do to tubes, by the operator's name."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .bends import largest
from .functions import BOUNDED, BY_TUBES, LOCAL, gelu_by_tanh, smooth
from .normalising import normalised
from .norms import UP, Convolutions, Kernels, Matrices
from .tubes import Tube, bilinear, constant, linear

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

Rule = Callable[..., Any]


class Operators:
    """Applies operators to tubes.

    Args:
        kernels: Norms of kernels that are known from other runs.
        exact: Whether products are computed from exact ones, which takes three.

    Attributes:
        names: Names of all operators that have a rule.
    """

    def __init__(self, kernels: Kernels | None = None, exact: bool = False) -> None:
        self._exact = exact
        self._kernels: Kernels = {} if kernels is None else kernels
        self._rules: dict[str, Rule] = {
            "add": self._add,
            "sub": lambda a, b, alpha=1: self._add(a, b, alpha=-alpha),
            "rsub": lambda a, b, alpha=1: self._add(b, a, alpha=-alpha),
            "mul": lambda a, b: self._scaled(a, b),
            "div": self._divided,
            "mm": lambda a, b: self._matrices(torch.matmul, a, b),
            "bmm": lambda a, b: self._matrices(torch.matmul, a, b),
            "mv": lambda a, b: self._matrices(torch.matmul, a, b),
            "dot": lambda a, b: self._matrices(torch.matmul, a, b),
            "addmm": self._addmm,
            "baddbmm": self._addmm,
            "convolution": self._convolution,
            "mean": lambda u, *rest, **named: self._sum("mean", u, rest, named),
            "sum": lambda u, *rest, **named: self._sum("sum", u, rest, named),
            "avg_pool2d": self._mean_pool,
            "_adaptive_avg_pool2d": self._adaptive_pool,
            "max_pool2d_with_indices": self._max_pool,
            "cat": lambda parts, dim=0: self._joined(torch.cat, parts, dim),
            "stack": lambda parts, dim=0: self._joined(torch.stack, parts, dim),
            "pow": self._pow,
            "masked_fill": self._filled,
            "gelu": lambda u, approximate="none": (
                smooth(u, "gelu") if approximate == "none" else gelu_by_tanh(u)
            ),
            "softplus": self._softplus,
            "elu": self._elu,
            "log_sigmoid_forward": lambda u: (smooth(u, "log_sigmoid_forward"), None),
            "native_batch_norm": self._batch_norm,
            "_native_batch_norm_legit": self._batch_norm,
            "_native_batch_norm_legit_no_training": lambda u, w, b, m, v, mom, eps: (
                self._batch_norm(u, w, b, m, v, False, mom, eps)
            ),
            "native_layer_norm": self._layer_norm,
            "native_group_norm": self._group_norm,
            "linalg_vector_norm": self._vector_norm,
            "_weight_norm_interface": self._weight_norm,
            "mse_loss": self._mse,
            "nll_loss_forward": self._nll,
            "binary_cross_entropy_with_logits": self._logistic,
            "embedding": lambda u, places, *rest: u.moved(lambda one: one[places]),
        }
        self.names = {*self._rules, *BOUNDED, *LOCAL, *BY_TUBES, *MOVES, *SPLITS}

    def __call__(self, operator: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Return the tubes of an operator's results, None for those of no signal."""
        if name in self._rules:
            return self._rules[name](*args, **kwargs)
        if name in BY_TUBES:
            return BY_TUBES[name](*args, **kwargs)
        if name in BOUNDED or name in LOCAL:
            return smooth(args[0], name)
        u, *rest = args
        if name == "constant_pad_nd" and len(rest) > 1 and rest[1]:
            raise KeyError("a pad that is not of zeros")
        if name in ("detach", "alias", "lift_fresh"):
            return u
        if name in _RESHAPES and not isinstance(rest[0], torch.dtype):
            return u.moved(lambda one: one.reshape(rest[0]))
        if name in MOVES:
            return u.moved(lambda one: operator(one, *rest, **kwargs))
        moved = [
            u.moved(lambda one, at=at: operator(one, *rest, **kwargs)[at])
            for at in range(len(operator(u.a, *rest, **kwargs)))
        ]
        return moved

    def tube(self, given: Any) -> Tube:
        """Return a tube, or that of a constant tensor or number."""
        if isinstance(given, Tube):
            return given
        return constant(torch.as_tensor(given, dtype=torch.float64, device="cpu"))

    def _add(self, a: Any, b: Any, alpha: float = 1) -> Tube:
        return self.tube(a) + self.tube(b).scaled(float(alpha))

    def _scaled(self, a: Any, b: Any) -> Tube:
        if isinstance(b, int | float):
            return a.scaled(float(b))
        return self.tube(a) * self.tube(b)

    def _divided(self, a: Any, b: Any) -> Tube:
        if isinstance(b, int | float):
            return a.scaled(1 / float(b))
        return self.tube(a) * smooth(self.tube(b), "reciprocal")

    def _matrices(self, form: Any, a: Any, b: Any) -> Tube:
        a, b = self.tube(a), self.tube(b)
        return bilinear(
            form, a, b, a.a.shape[-1], Matrices(), self._kernels, self._exact
        )

    def _addmm(self, c: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Any:
        product = self._matrices(torch.matmul, a, b).scaled(float(alpha))
        return product + self.tube(c).scaled(float(beta))

    def _convolution(self, x: Any, w: Any, bias: Any, *settings: Any) -> Tube:
        def form(a: Tensor, b: Tensor) -> Tensor:
            return torch.ops.aten.convolution(a, b, None, *settings)

        x, w = self.tube(x), self.tube(w)
        shape = w.a.shape
        count = math.prod(shape[2:]) * max(shape[0], shape[1])
        stride, dilation = settings[0], settings[2]
        stride = tuple(stride) if set(dilation) == {1} else ()
        if len(stride) < len(shape) - 2:  # one number for all sides
            stride *= len(shape) - 2
        norms = Convolutions(tuple(shape[2:]), settings[-1], stride, settings[3])
        result = bilinear(form, x, w, count, norms, self._kernels, self._exact)
        if bias is None:
            return result
        spread = (1, -1, *[1] * (len(shape) - 2))
        return result + self.tube(bias).moved(lambda one: one.reshape(spread))

    def _sum(self, kind: str, u: Tube, rest: Any, named: Any) -> Tube:
        size = u.a.numel()

        def add(one: Tensor) -> Tensor:
            return getattr(torch, kind)(one, *rest, **named)

        count = size // max(add(u.a).numel(), 1)
        norm = math.sqrt(count) if kind == "sum" else 1 / math.sqrt(max(count, 1))
        return u.summed(add, count, norm)

    def _mean_pool(self, u: Tube, kernel: Any, stride: Any = (), *rest: Any) -> Tube:
        kernel = _pair(kernel)
        stride = _pair(stride) if stride else kernel
        divisor = rest[3] if len(rest) > 3 and rest[3] else math.prod(kernel)
        # Windows at edges may have less entries than that.
        if (len(rest) > 1 and rest[1]) or (len(rest) > 2 and not rest[2]):
            divisor = 1
        norm = _overlap(kernel, stride) * math.sqrt(math.prod(kernel)) / divisor
        return u.summed(
            lambda one: functional.avg_pool2d(one, kernel, stride, *rest),
            math.prod(kernel),
            norm,
        )

    def _adaptive_pool(self, u: Tube, size: Any) -> Tube:
        shape = u.a.shape[-2:]
        count, norm = 1, 1.0
        for side, out in zip(shape, _pair(size), strict=True):
            count *= math.ceil(side / out) + 1
            # Windows that divide a side do not overlap.
            shared = 1 if side % out == 0 else math.ceil(out / side) + 1
            norm *= math.sqrt(shared / max(side // out, 1))
        return u.summed(
            lambda one: functional.adaptive_avg_pool2d(one, size), count, norm
        )

    def _max_pool(
        self, u: Tube, kernel: Any, stride: Any = (), padding: Any = 0, *rest: Any
    ) -> tuple[Tube, None]:
        if rest and (_pair(rest[0]) != (1, 1) or any(rest[1:])):
            raise KeyError("a max pool with dilation or ceil_mode")
        kernel, padding = _pair(kernel), _pair(padding)
        stride = _pair(stride) if stride else kernel
        pooled = functional.max_pool2d(u.a, kernel, stride, padding)
        rows, columns = pooled.shape[-2:]
        low = float(torch.minimum(u.a, u.b).min()) - 4 * u.reach - 1.0

        def windows(x: Tensor, low: float = low) -> Tensor:
            sides = padding[1], padding[1], padding[0], padding[0]
            wide = functional.pad(x, sides, value=low)
            return torch.stack([
                wide[..., i : i + stride[0] * rows : stride[0],
                     j : j + stride[1] * columns : stride[1]]
                [..., :rows, :columns]
                for i in range(kernel[0]) for j in range(kernel[1])
            ])  # fmt: skip

        gains = (_overlap(kernel, stride),)
        parts = linear(windows, (u,), gains, sizes=lambda x: windows(x, 0.0))
        return largest(parts), None

    def _joined(self, join: Any, parts: Sequence[Any], dim: int) -> Tube:
        tubes = [self.tube(one) for one in parts]
        result = linear(lambda *given: join(given, dim), tubes, [1.0] * len(tubes))
        gap = math.hypot(*(one.gap for one in tubes)) * UP
        slip = math.hypot(*(one.slip for one in tubes)) * UP
        return replace(result, gap=min(gap, result.gap), slip=slip)

    def _filled(self, u: Tube, mask: Tensor, value: Any) -> Tube:
        filled = torch.where(mask, float(value), torch.zeros_like(u.a))
        if not filled.isfinite().all():
            raise KeyError("masked_fill with a value that is not finite")
        return u.moved(lambda one: one.masked_fill(mask, 0.0)) + self.tube(filled)

    def _pow(self, u: Tube, exponent: Any) -> Tube:
        if not isinstance(exponent, int | float):
            raise KeyError("pow with an exponent that is a tensor")
        if exponent in (2, 3):
            return u * u if exponent == 2 else u * u * u
        if exponent in (0.5, -0.5, -1):
            return smooth(u, {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}[exponent])
        raise KeyError(f"pow with exponent {exponent}")

    def _softplus(self, u: Tube, beta: float = 1, threshold: float = 20) -> Tube:
        if beta != 1 or threshold < 20:
            raise KeyError("softplus with a beta or a threshold below 20")
        return smooth(u, "softplus")

    def _elu(
        self, u: Tube, alpha: float = 1, scale: float = 1, inner: float = 1
    ) -> Tube:
        if (alpha, inner) != (1, 1):
            raise KeyError("ELU with an alpha")
        return smooth(u, "elu").scaled(scale)

    def _weighted(self, u: Tube, weight: Any, bias: Any, shape: Any) -> Tube:
        if weight is not None:
            u = u * self.tube(weight).moved(lambda one: one.reshape(shape))
        if bias is not None:
            u = u + self.tube(bias).moved(lambda one: one.reshape(shape))
        return u

    def _batch_norm(
        self, u: Tube, weight: Any, bias: Any, *rest: Any
    ) -> tuple[Tube, None, None]:
        mean, variance, training, _, eps = (
            rest if len(rest) == 5 else (None, None, *rest)
        )
        dims = u.a.ndim
        shape = (1, -1, *[1] * (dims - 2))
        if training:
            result = normalised(u, (0, *range(2, dims)), eps)
        else:
            spread = self.tube(variance) + self.tube(eps)
            held = self.tube(mean).moved(lambda one: one.reshape(shape))
            inverse = smooth(spread, "rsqrt").moved(lambda one: one.reshape(shape))
            result = (u - held) * inverse
        return self._weighted(result, weight, bias, shape), None, None

    def _layer_norm(
        self, u: Tube, shape: Sequence[int], weight: Any, bias: Any, eps: float
    ) -> tuple[Tube, None, None]:
        dims = tuple(range(u.a.ndim - len(shape), u.a.ndim))
        result = normalised(u, dims, eps)
        return self._weighted(result, weight, bias, tuple(shape)), None, None

    def _group_norm(
        self, u: Tube, weight: Any, bias: Any, n: int, c: int, *rest: Any
    ) -> tuple[Tube, None, None]:
        _, groups, eps = rest
        shape = u.a.shape
        grouped = u.moved(lambda one: one.reshape(n, groups, -1))
        normed = normalised(grouped, (2,), eps).moved(lambda one: one.reshape(shape))
        spread = (1, c, *[1] * (len(shape) - 2))
        return self._weighted(normed, weight, bias, spread), None, None

    def _vector_norm(
        self, u: Tube, order: float = 2, dim: Any = None, keepdim: bool = False
    ) -> Tube:
        if order != 2:
            raise KeyError("a norm that is not Euclidean")
        dims = list(range(u.a.ndim)) if dim is None else dim
        return smooth(self._sum("sum", u * u, (dims, keepdim), {}), "sqrt")

    def _weight_norm(self, v: Any, g: Any, dim: int = 0) -> tuple[Tube, None]:
        v = self.tube(v)
        dims = [one for one in range(v.a.ndim) if one != dim]
        length = self._vector_norm(v, 2, dims, True)
        return v * (self.tube(g) * smooth(length, "reciprocal")), None

    def _mse(self, u: Any, target: Any, reduction: int = 1) -> Tube:
        gap = self.tube(u) - self.tube(target)
        return self._reduced(gap * gap, reduction)

    def _logistic(
        self, u: Any, target: Any, weight: Any = None, positive: Any = None,
        reduction: int = 1,
    ) -> Tube:  # fmt: skip
        if positive is not None or weight is not None:
            raise KeyError("binary cross-entropy with weights")
        loss = smooth(u, "softplus") - u * self.tube(target)
        return self._reduced(loss, reduction)

    def _nll(
        self, u: Tube, target: Tensor, weight: Any, reduction: int, ignored: int
    ) -> tuple[Tube, None]:
        rows = u if u.a.ndim > 1 else u.moved(lambda one: one[None])
        classes = target.reshape(-1)
        counts = (classes != ignored).double()
        safe = torch.where(classes == ignored, 0, classes)
        if weight is not None:
            counts = counts * weight.double()[safe]
        picked = rows.moved(lambda one: one.gather(1, safe[:, None])[:, 0])
        total = picked * self.tube(-counts)
        if reduction == 0:
            return total, None
        result = self._reduced(total, 2)
        if reduction == 1:
            result = result.scaled(1 / math.fsum(counts.tolist()))
        return result, None

    def _reduced(self, u: Tube, reduction: int) -> Tube:
        if reduction == 0:
            return u
        return self._sum(("mean", "sum")[reduction - 1], u, (), {})


def _pair(given: Any) -> tuple[int, int]:
    values = tuple(given) if isinstance(given, Sequence) else (given,)
    return (values * 2)[:2] if len(values) == 1 else values[:2]  # type: ignore[return-value]


def _overlap(kernel: tuple[int, int], stride: tuple[int, int]) -> float:
    """Return the norm of the map from an image to all windows of it."""
    pairs = zip(kernel, stride, strict=True)
    return math.sqrt(math.prod(math.ceil(side / step) for side, step in pairs))
