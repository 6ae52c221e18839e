r"""Compare hand-written derivatives of other people with finite differences.

An autograd function may break second derivatives in two ways. Its backward may lose the
graph of the cotangent, as NumPy, ``no_grad()`` and kernels without a derivative do.
Then $u^\top (Jv) = (J^\top u)^\top v$ fails for the function alone, with $J$ its
Jacobian and $v = J^\top u$; this holds to rounding in any type. Or its backward may use
a value that it saved without a graph. The matrix is then symmetric and wrong, and only
differences show it.

A difference over the step $h$ has an error of truncation, of order $h^2$; an error of
rounding, of order $1/h$; and where the step crosses a kink, a jump over $2h$. All three
change with $h$, and a wrong derivative does not. So a function is refused if
differences over several steps agree with one another and none with the product. The
last steps are so small that even a batch with $10^9$ rectifiers crosses few kinks. That
takes float64: coarser models are compared as a copy in float64. Where there is none
only the first check is made, and a warning says so.

A backward that is not the derivative of its forward has no right second derivative: it
may be a mistake, or a straight-through estimator. Its products are measured as the
backward is written, and a warning says so, unless they are not even symmetric.

Values that the model itself takes out of the graph, by ``detach()``, ``.data``,
``item()`` or ``no_grad()`` in its forward pass, are constants by intent: stopped
gradients, targets, power iterations. Products hold them fixed, so differences may do so
as well. A backward may read such a value while its forward computes with the live one.
A step away it is then no longer the derivative, and it is refused.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from theodolite.core import MeasurementError

from ..calls.listening import Listener
from ..differentiate.derivatives import (
    Parts,
    filled,
    flat,
    pull_back,
    pull_back_with_graph,
)
from ..differentiate.twice import custom_functions

# Step sizes, relative to the size of each variable.
_STEPS = (1e-5, 1e-7, 1e-9)
# The distance at which a gradient with held values must still be the derivative.
_AWAY = 1e-3
# Roundings of the values that are subtracted, granted to a difference; and how closely
# the differences must agree, in parts of their distance from the product. Both by
# choice: of 498 sound networks none was refused; of 149 with a wrong second derivative
# one was missed, with an error of 9e-8.
_ROUNDINGS, _STABLE = 100.0, 0.25
_TAKES_OUT = (
    Tensor.detach,
    torch.detach,
    Tensor.data.__get__,  # pyright: ignore
    Tensor.item,
    Tensor.__float__,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckedFunction:
    """A function that products differentiate and that may have custom derivatives.

    Attributes:
        run: Computes it and its graph.
        variables: Leaves; they are changed, and restored bit for bit.
        twice: Whether products are with its second derivative, or with its first.
    """

    run: Callable[[], Tensor]
    variables: Sequence[Tensor]
    twice: bool

    def check(self) -> bool:
        """Refuse wrong derivatives; finite differences are taken in float64 only.

        Returns:
            Whether it depends on the variables through custom functions.
        """
        outputs = self.run()
        names = set(custom_functions(outputs, self.variables).values())
        if not names:
            return False
        dual = (torch.ones_like if self.twice else _drawn)(outputs.detach())
        dual.requires_grad_()
        graph = pull_back_with_graph([outputs], self.variables, [dual])
        refuse_lost_graphs(outputs, self.variables)
        if all(part is None for part in graph):
            return False
        named = " and ".join(sorted(names))
        if {v.dtype for v in (outputs, *self.variables)} == {torch.float64}:
            self._compare(dual, graph, named)
        elif self.twice:
            warnings.warn(
                f"the second derivatives of {named} were not compared with "
                "differences, since that takes a copy of the model in float64 and "
                "there is none: check them by torch.autograd.gradgradcheck",
                RuntimeWarning,
                stacklevel=2,
            )
        return True

    def _compare(self, dual: Tensor, graph: Any, named: str) -> None:
        """Compare a product with finite differences; refuse it, or warn."""
        along = [_scaled(variable) for variable in self.variables]
        product = pull_back(graph, self.variables, along) if self.twice else []
        wrong = self._disagreement(along, flat(product)) if self.twice else None
        if self.twice and wrong is None:
            return
        change = pull_back(graph, [dual], along)
        first = replace(self, twice=False)._disagreement(along, flat(change))
        if wrong is not None and (first is None or self._skew(graph, along, product)):
            raise MeasurementError(
                f"the derivatives of {named} are wrong: products with the Hessian "
                f"disagree with differences of gradients by {wrong:.1e} of their size "
                "at every step, so that the matrix may not even be symmetric; use "
                "save_for_backward for all that the backward reads, and check it by "
                "torch.autograd.gradgradcheck"
            )
        if first is not None:
            warnings.warn(
                f"the backward of {named} is not the derivative of its forward: "
                f"products disagree with differences by {first:.1e} of their size at "
                "every step; what is measured is the matrix of the backward as it is "
                "written, as for straight-through estimators",
                RuntimeWarning,
                stacklevel=2,
            )

    def _skew(self, graph: Any, along: Parts, product: Parts) -> bool:
        r"""Return whether $u^\top Hv$ and $v^\top Hu$ differ, for $u = Hv$."""
        hv, v = flat(product), flat(along)
        hhv = flat(pull_back(graph, self.variables, product))
        scale = float(hv @ hv + v.norm() * hhv.norm())
        return abs(float(hv @ hv - v @ hhv)) > torch.finfo(v.dtype).eps ** 0.5 * scale

    def _disagreement(self, along: Parts, product: Tensor) -> float | None:
        """Return the distance between differences and product, None if explained.

        Detached values of the model may change or stay constant; either may explain it.
        """
        distance = self._distance(along, product, nullcontext())
        if distance is None:
            return None
        held = _Held()
        self._value(held)
        if self._distance(along, product, held) is not None:
            return distance
        return distance if self.twice and self._off_away(along, held) else None

    def _off_away(self, along: Parts, held: "_Held") -> bool:
        """Return whether the gradient is wrong a step away, with values held."""
        with _at(self.variables, along, _AWAY):
            slope = (self._value(held) @ flat(along)).reshape(1)
            values = replace(self, twice=False)
            return values._distance(along, slope, held) is not None

    def _distance(self, along: Parts, product: Tensor, held: Any) -> float | None:
        """Return the distance between differences and product, None if explained.

        Args:
            along: Direction.
            product: Product with it.
            held: Context that holds values that the model detaches, or a null context.
        """
        differences: Parts = []
        sums: Parts = []
        gaps: list[float] = []
        eps = torch.finfo(torch.float64).eps
        for step in _STEPS:
            ends = [self._moved(along, sign * step, held) for sign in (1, -1)]
            differences.append((ends[0] - ends[1]) / (2 * step))
            gap, scale = (
                float((differences[-1] - product).norm()),
                _size(differences[-1], product),
            )
            rounding = _ROUNDINGS * eps * (_size(*ends) + scale) / step
            # A gap that does not shrink is not rounding, however small.
            shrinks = gap <= min(gaps, default=float("inf")) / 2
            if shrinks and gap <= eps**0.5 * scale + rounding:
                return None
            gaps.append(gap)
            sums.append(ends[0] + ends[1])
        # The first step may cross kinks that the others do not.
        stable = _size(differences[-1] - differences[-2]) <= _STABLE * min(gaps)
        # At a kink the differences to both sides differ at every step, and any number
        # between them is a derivative.
        bend = _size(sums[1] - 2 * self._value(held)) / (2 * _STEPS[1])
        sure = stable and min(gaps) > 2 * bend
        return max(gaps) / _size(product, differences[-1]) if sure else None

    def _moved(self, along: Parts, step: float, held: Any) -> Tensor:
        with _at(self.variables, along, step):
            return self._value(held)

    def _value(self, held: Any) -> Tensor:
        """Return the gradient, or the outputs, as one vector."""
        with held:
            outputs = self.run()
        if not self.twice:
            return flat([outputs])
        gradient = pull_back_with_graph([outputs], self.variables, keep=False)
        return flat(filled(gradient, self.variables))


def refuse_lost_graphs(outputs: Tensor, variables: Sequence[Tensor]) -> None:
    """Refuse custom functions whose backward loses the graph of the cotangent."""
    for node, name in custom_functions(outputs, variables).items():
        share, rounding = _lost_share(node)
        if share > rounding:
            raise MeasurementError(
                f"the backward of {name} loses the graph of what it is given, so that "
                f"torch leaves {share:.1e} of its derivative out of products: compute "
                "it with torch operators alone, without no_grad(), detach() or NumPy, "
                "and check it by torch.autograd.gradgradcheck"
            )


def _lost_share(node: Any) -> tuple[float, float]:
    r"""Return $|u^\top J J^\top u / \|J^\top u\|^2 - 1|$ of a node, and rounding."""
    known = isinstance(node, BackwardCFunction)  # differences judge those in C++
    kinds = cast(Any, node)._input_metadata if known else []
    if not kinds or not all(kind.dtype.is_floating_point for kind in kinds):
        return 0.0, 0.0
    given = [
        _drawn(torch.empty(k.shape, dtype=k.dtype, device=k.device)).requires_grad_()
        for k in kinds
    ]
    try:  # with copies, since a backward may write to its inputs
        returned: Any = node.apply(*(cotangent.clone() for cotangent in given))
    except Exception:  # the product itself raises
        return 0.0, 0.0
    returned = returned if isinstance(returned, tuple) else (returned,)
    asked = zip(returned, node.needs_input_grad, strict=False)
    parts = [part for part, needed in asked if needed and isinstance(part, Tensor)]
    pushed = pull_back(parts, given, [part.detach() for part in parts])
    wanted = sum(float(part.detach().double().square().sum()) for part in parts)
    pairs = zip(given, pushed, strict=True)
    total = sum(float((u.detach().double() * change).sum()) for u, change in pairs)
    rounding = max(torch.finfo(kind.dtype).eps for kind in kinds) ** 0.5
    return abs(total / wanted - 1) if wanted > 0 else 0.0, rounding


class _Held(Listener):
    """Keep values that a model detaches on the first run, for all later runs."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._first, self._place, self._off = True, 0, False

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        self._first, self._place, self._off = False, 0, False

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        on = torch.is_grad_enabled()
        result = function(*args, **kwargs)
        if function is torch._C._set_grad_enabled:
            self._off = not args[0]
        # Within the forward of an autograd function no graph is recorded either, and
        # nobody said so by no_grad().
        taken = on if function in _TAKES_OUT else self._off and not on
        real = isinstance(result, Tensor) and result.is_floating_point()
        if not taken or not (real or isinstance(result, float)):
            return result
        written = any(result is given for given in (*args, *kwargs.values()))
        with torch._C.DisableTorchFunction():
            return self._same(result, written)

    def _same(self, result: Any, written: bool) -> Any:
        """Return the value of the first run, in the same tensor if it was written."""
        self._place += 1
        number = isinstance(result, float)
        if self._first:
            self._kept.append(result if number else result.detach().clone())
            return result
        if self._place > len(self._kept):
            return result
        kept = self._kept[self._place - 1]
        if number or isinstance(kept, float):
            return kept if type(kept) is type(result) else result
        if kept.shape != result.shape:
            return result
        return result.copy_(kept) if written else kept.clone()


@contextmanager
def _at(variables: Sequence[Tensor], along: Parts, step: float) -> Iterator[None]:
    """Move variables, by their data, so that graphs that hold them stay valid."""
    before = [variable.detach().clone() for variable in variables]
    try:
        for variable, part in zip(variables, along, strict=True):
            variable.data.add_(part, alpha=step)
        yield
    finally:
        for variable, value in zip(variables, before, strict=True):
            variable.data.copy_(value)


def _drawn(like: Tensor) -> Tensor:
    """Return normal numbers in the shape of a tensor, the same every time."""
    generator = torch.Generator().manual_seed(like.numel())
    drawn = torch.randn(
        like.shape, generator=generator, dtype=torch.float64, device="cpu"
    )
    return drawn.to(like)


def _scaled(variable: Tensor) -> Tensor:
    """Return a direction of the size of a variable, of 1 where that is zero."""
    size = float(variable.detach().square().mean().sqrt()) if variable.numel() else 0.0
    return _drawn(variable.detach()) * (size or 1.0)


def _size(*vectors: Tensor) -> float:
    return max(float(vector.norm()) for vector in vectors)
