"""What operators of torch do to series, by the operator's name."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .functions import (
    BY_SERIES,
    SMOOTH,
    elu,
    exponential,
    gelu,
    gelu_by_tanh,
    reciprocal,
    rsqrt,
    softplus,
    sqrt,
)
from .intervals import Interval
from .normalising import normalised
from .norms import UP, Convolutions, Kernels, Matrices
from .pools import max_pool
from .series import Series
from .softmax import log_softmax

# Operators that move, repeat or leave out entries.
MOVES = frozenset(
    "view _unsafe_view _reshape_alias t transpose permute squeeze unsqueeze clone "
    "detach alias lift_fresh expand slice select index index_select gather diagonal "
    "constant_pad_nd reflection_pad2d replication_pad2d flip roll repeat "
    "pixel_shuffle pixel_unshuffle "
    "upsample_nearest2d _to_copy im2col unfold tril triu".split()
)
# Those that read the memory of a tensor: parts of its series hold it in other orders.
_RESHAPES = frozenset("view _unsafe_view _reshape_alias".split())
# Those with several results.
SPLITS = frozenset("split split_with_sizes unbind".split())

Rule = Callable[..., Any]


class Operators:
    """Applies operators to series.

    Args:
        like: Any series of the run, which gives its order and length.
        kernels: Norms of kernels that are known from other runs.

    Attributes:
        names: Names of all operators that have a rule.
    """

    def __init__(self, like: Series, kernels: Kernels | None = None) -> None:
        self._like = like
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
            "avg_pool2d": lambda u, *rest: u.summed(
                lambda one: functional.avg_pool2d(one, *rest), _area(rest[0])
            ),
            "_adaptive_avg_pool2d": lambda u, size: u.summed(
                lambda one: functional.adaptive_avg_pool2d(one, size),
                math.prod(u.first.mid.shape[-2:]),
            ),
            "max_pool2d_with_indices": max_pool,
            "cat": lambda parts, dim=0: self._joined(torch.cat, parts, dim),
            "stack": lambda parts, dim=0: self._joined(torch.stack, parts, dim),
            "pow": self._pow,
            "masked_fill": self._filled,
            "gelu": lambda u, approximate="none": (
                u.apply(gelu) if approximate == "none" else gelu_by_tanh(u)
            ),
            "softplus": self._softplus,
            "elu": self._elu,
            "_softmax": lambda u, dim, half: log_softmax(u, dim).apply(exponential),
            "_safe_softmax": lambda u, dim: log_softmax(u, dim).apply(exponential),
            "_log_softmax": lambda u, dim, half: log_softmax(u, dim),
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
        self.names = {*self._rules, *SMOOTH, *BY_SERIES, *MOVES, *SPLITS}

    def __call__(self, operator: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Return the series of an operator's results, None for those of no signal."""
        if name in self._rules:
            return self._rules[name](*args, **kwargs)
        if name in SMOOTH:
            return args[0].apply(SMOOTH[name])
        if name in BY_SERIES:
            return BY_SERIES[name](*args, **kwargs)
        u, *rest = args
        if name == "constant_pad_nd" and len(rest) > 1 and rest[1]:
            raise KeyError("a pad that is not of zeros")
        if name in ("detach", "alias", "lift_fresh"):
            return u.scaled(1.0)
        if name in _RESHAPES and not isinstance(rest[0], torch.dtype):
            return u.moved(lambda one: one.reshape(rest[0]))
        if name in MOVES:
            return u.moved(lambda one: operator(one, *rest, **kwargs))
        moved = [
            u.moved(lambda one, at=at: operator(one, *rest, **kwargs)[at])
            for at in range(len(operator(u.first.mid, *rest, **kwargs)))
        ]
        return moved

    def series(self, given: Any) -> Series:
        """Return a series, or that of a constant tensor or number."""
        if isinstance(given, Series):
            return given
        value = torch.as_tensor(given, dtype=torch.float64, device="cpu")
        return self._like.constant(value)

    def _add(self, a: Any, b: Any, alpha: float = 1) -> Series:
        return self.series(a) + self.series(b).scaled(float(alpha))

    def _scaled(self, a: Any, b: Any) -> Series:
        if isinstance(b, int | float):
            return a.scaled(float(b))
        return self.series(a) * self.series(b)

    def _divided(self, a: Any, b: Any) -> Series:
        if isinstance(b, int | float):
            return a.scaled(1 / float(b))
        return self.series(a) * self.series(b).apply(reciprocal)

    def _matrices(self, form: Any, a: Any, b: Any) -> Series:
        a, b = self.series(a), self.series(b)
        return a.bilinear(form, b, a.first.mid.shape[-1], Matrices())

    def _addmm(self, c: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Any:
        product = self._matrices(torch.matmul, a, b).scaled(float(alpha))
        return product + self.series(c).scaled(float(beta))

    def _convolution(self, x: Any, w: Any, bias: Any, *settings: Any) -> Series:
        def form(a: Tensor, b: Tensor) -> Tensor:
            return torch.ops.aten.convolution(a, b, None, *settings)

        x, w = self.series(x), self.series(w)
        shape = w.first.mid.shape
        count = math.prod(shape[2:]) * max(shape[0], shape[1])
        norms = Convolutions(tuple(shape[2:]), settings[-1], self._kernels)
        result = x.bilinear(form, w, count, norms)
        if bias is None:
            return result
        spread = (1, -1, *[1] * (len(shape) - 2))
        return result + self.series(bias).moved(lambda one: one.reshape(spread))

    def _sum(self, kind: str, u: Series, rest: Any, named: Any) -> Series:
        size = u.first.mid.numel()

        def add(one: Tensor) -> Tensor:
            return getattr(torch, kind)(one, *rest, **named)

        count = size // max(add(u.first.mid).numel(), 1)
        norm = math.sqrt(count) if kind == "sum" else 1 / math.sqrt(max(count, 1))
        return u.summed(add, count, norm * UP)

    def _joined(self, join: Any, parts: Sequence[Any], dim: int) -> Series:
        series = [self.series(one) for one in parts]

        def joined(terms: Sequence[Interval | None]) -> Interval | None:
            if all(one is None for one in terms):
                return None
            pairs = zip(terms, series, strict=True)
            ones = [
                one or Interval(torch.zeros_like(whole.first.mid))
                for one, whole in pairs
            ]
            mid = join([one.mid for one in ones], dim)
            norm = math.hypot(*(one.reach for one in ones)) * UP
            return Interval(mid, join([one.radius for one in ones], dim), norm)

        first, slope, rest = (
            joined([one.terms[place] for one in series]) for place in range(3)
        )
        assert first is not None
        links = tuple(
            (one, partial(_own, join, [each.first.mid for each in series], dim, at))
            for at, one in enumerate(series)
            if one.bent
        )
        return Series((first, slope, rest), self._like.length, links)

    def _filled(self, u: Series, mask: Tensor, value: Any) -> Series:
        filled = torch.where(mask, float(value), torch.zeros_like(u.first.mid))
        if not filled.isfinite().all():
            raise KeyError("masked_fill with a value that is not finite")
        return u.moved(lambda one: one.masked_fill(mask, 0.0)) + self.series(filled)

    def _pow(self, u: Series, exponent: Any) -> Series:
        if not isinstance(exponent, int | float):
            raise KeyError("pow with an exponent that is a tensor")
        if exponent in (2, 3):
            return u * u if exponent == 2 else u * u * u
        if exponent in (0.5, -0.5, -1):
            return u.apply({0.5: sqrt, -0.5: rsqrt, -1: reciprocal}[exponent])
        raise KeyError(f"pow with exponent {exponent}")

    def _softplus(self, u: Series, beta: float = 1, threshold: float = 20) -> Series:
        if beta != 1 or threshold < 20:
            raise KeyError("softplus with a beta or a threshold below 20")
        # Above the threshold torch takes the identity, which differs by e^-threshold;
        # the bounds are those of the exact function.
        return u.apply(softplus)

    def _elu(
        self, u: Series, alpha: float = 1, scale: float = 1, inner: float = 1
    ) -> Series:
        if (alpha, inner) != (1, 1):
            raise KeyError("ELU with an alpha")
        return u.apply(elu).scaled(scale)

    def _weighted(self, u: Series, weight: Any, bias: Any, shape: Any) -> Series:
        if weight is not None:
            u = u * self.series(weight).moved(lambda one: one.reshape(shape))
        if bias is not None:
            u = u + self.series(bias).moved(lambda one: one.reshape(shape))
        return u

    def _batch_norm(
        self, u: Series, weight: Any, bias: Any, *rest: Any
    ) -> tuple[Series, None, None]:
        mean, variance, training, _, eps = (
            rest if len(rest) == 5 else (None, None, *rest)
        )
        dims = u.first.mid.ndim
        shape = (1, -1, *[1] * (dims - 2))
        if training:
            result = normalised(u, (0, *range(2, dims)), eps)
        else:
            spread = self.series(variance) + self.series(eps)
            held = self.series(mean).moved(lambda one: one.reshape(shape))
            inverse = spread.apply(rsqrt).moved(lambda one: one.reshape(shape))
            result = (u - held) * inverse
        return self._weighted(result, weight, bias, shape), None, None

    def _layer_norm(
        self, u: Series, shape: Sequence[int], weight: Any, bias: Any, eps: float
    ) -> tuple[Series, None, None]:
        dims = tuple(range(u.first.mid.ndim - len(shape), u.first.mid.ndim))
        result = normalised(u, dims, eps)
        return self._weighted(result, weight, bias, tuple(shape)), None, None

    def _group_norm(
        self, u: Series, weight: Any, bias: Any, n: int, c: int, *rest: Any
    ) -> tuple[Series, None, None]:
        _, groups, eps = rest
        shape = u.first.mid.shape
        grouped = u.moved(lambda one: one.reshape(n, groups, -1))
        normed = normalised(grouped, (2,), eps).moved(lambda one: one.reshape(shape))
        spread = (1, c, *[1] * (len(shape) - 2))
        return self._weighted(normed, weight, bias, spread), None, None

    def _vector_norm(
        self, u: Series, order: float = 2, dim: Any = None, keepdim: bool = False
    ) -> Series:
        if order != 2:
            raise KeyError("a norm that is not Euclidean")
        dims = list(range(u.first.mid.ndim)) if dim is None else dim
        return self._sum("sum", u * u, (dims, keepdim), {}).apply(sqrt)

    def _weight_norm(self, v: Any, g: Any, dim: int = 0) -> tuple[Series, None]:
        v = self.series(v)
        dims = [one for one in range(v.first.mid.ndim) if one != dim]
        length = self._vector_norm(v, 2, dims, True)
        return v * (self.series(g) * length.apply(reciprocal)), None

    def _mse(self, u: Any, target: Any, reduction: int = 1) -> Series:
        gap = self.series(u) - self.series(target)
        return self._reduced(gap * gap, reduction)

    def _logistic(
        self, u: Any, target: Any, weight: Any = None, positive: Any = None,
        reduction: int = 1,
    ) -> Series:  # fmt: skip
        if positive is not None or weight is not None:
            raise KeyError("binary cross-entropy with weights")
        loss = u.apply(softplus) - u * self.series(target)
        return self._reduced(loss, reduction)

    def _nll(
        self, u: Series, target: Tensor, weight: Any, reduction: int, ignored: int
    ) -> tuple[Series, None]:
        rows = u if u.first.mid.ndim > 1 else u.moved(lambda one: one[None])
        classes = target.reshape(-1)
        counts = (classes != ignored).double()
        safe = torch.where(classes == ignored, 0, classes)
        if weight is not None:
            counts = counts * weight.double()[safe]
        picked = rows.moved(lambda one: one.gather(1, safe[:, None])[:, 0])
        total = picked * self.series(-counts)
        if reduction == 0:
            return total, None
        result = self._reduced(total, 2)
        if reduction == 1:
            result = result.scaled(1 / math.fsum(counts.tolist()))
        return result, None

    def _reduced(self, u: Series, reduction: int) -> Series:
        if reduction == 0:
            return u
        return self._sum(("mean", "sum")[reduction - 1], u, (), {})


def _area(kernel: Any) -> int:
    return math.prod(kernel) if isinstance(kernel, Sequence) else kernel**2


def _own(
    join: Any, parts: list[Tensor], dim: int, place: int, by: Interval
) -> Interval:
    """Return the part of a joined tensor's derivatives that belongs to one part."""
    ids = [
        torch.full(one.shape, float(at), device="cpu") for at, one in enumerate(parts)
    ]
    mask = join(ids, dim) == place
    return by.moved(lambda one: one[mask].reshape(parts[place].shape))
