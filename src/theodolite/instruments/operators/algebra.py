"""Sums, multiples and compositions of operators.

They hold no model: products go to the operators that they combine, and so do graphs,
memory and passes. A combination is symmetric where that follows from how it is written:
sums of symmetric operators, $A + A^T$, $J^T J$, $J^T C J$, $H^2$.
"""

from collections import Counter
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.core import MeasurementError

from ..differentiate.derivatives import Layout
from .combined import Combined, is_given, multiply
from .operator import Operator


class Sum(Combined):
    """A sum of operators, each times a number.

    Args:
        factors: One number for each operator.
        parts: Operators of one shape.
    """

    def __init__(self, factors: Sequence[float], parts: Sequence[Operator]) -> None:
        super().__init__(parts)
        self.factors = tuple(factors)
        self.shape = parts[0].shape
        self.layout = next((one.layout for one in parts if one.layout), ())
        self.cancels = self.cancels or len(parts) > 1
        self._settle()

    @property
    def row_layout(self) -> Layout:
        """Names and shapes of the parameters along the rows."""
        return next((one.row_layout for one in self.parts if one.row_layout), ())

    def _apply(self, vectors: Tensor, *, many: bool = False) -> Tensor:
        rows = (len(vectors), self.shape[0]) if many else (self.shape[0],)
        total = torch.zeros(rows, dtype=self.torch_dtype, device=self.device)
        for factor, part in zip(self.factors, self.parts, strict=True):
            if factor:
                product = multiply(part, vectors, many=many)
                total.add_(product.to(total), alpha=factor)
        return total

    def key(self, *, flipped: bool = False) -> Any:
        """Return how the operator is written, or its transpose."""
        keys = [part.key(flipped=flipped) for part in self.parts]
        return frozenset(Counter(zip(self.factors, keys, strict=True)).items())

    def written(self, *, modes: bool = False) -> str:
        """Return the operator in words."""
        words = [part.written(modes=modes) for part in self.parts]
        terms = [
            f" {'-' if factor < 0 else '+'} "
            + ("" if abs(factor) == 1.0 else f"{abs(factor):g} ")
            + term
            for factor, term in zip(self.factors, words, strict=True)
        ]
        text = "".join(terms)
        return text[3:] if self.factors[0] >= 0 else text[1:]

    def __getitem__(self, key: Any) -> Operator:
        """Return the block of some parameters: the sum of the blocks."""
        if not all(part.layout and part.row_layout for part in self.parts):
            return super().__getitem__(key)
        return Sum(self.factors, [part[key] for part in self.parts])

    def rebuilt(self, parts: Sequence[Operator]) -> Operator:
        """Return the same sum of other operators."""
        return Sum(self.factors, parts)

    @property
    def T(self) -> Operator:
        """The transpose: the sum of the transposes."""
        if self.symmetric:
            return self
        return Sum(self.factors, [part.T for part in self.parts])


class Composition(Combined):
    """A product of operators, of which the last is applied first."""

    def __init__(self, parts: Sequence[Operator]) -> None:
        super().__init__(parts)
        first, last = parts[0], parts[-1]
        self.shape = (first.shape[0], last.shape[1])
        self.layout = last.layout or _beside(last, parts[-2].layout)
        self._row_layout = first.row_layout or _beside(first, parts[1].row_layout)
        self.cancels = True
        self._settle()

    @property
    def row_layout(self) -> Layout:
        """Names and shapes of the parameters along the rows."""
        return self._row_layout

    def _apply(self, vectors: Tensor, *, many: bool = False) -> Tensor:
        for part in reversed(self.parts):
            vectors = multiply(part, vectors, many=many)
        return vectors

    def key(self, *, flipped: bool = False) -> Any:
        """Return how the operator is written, or its transpose."""
        keys = [part.key(flipped=flipped) for part in self.parts]
        return tuple(reversed(keys) if flipped else keys)

    def written(self, *, modes: bool = False) -> str:
        """Return the operator in words."""
        words = [part.written(modes=modes) for part in self.parts]
        sums = [isinstance(part, Sum) for part in self.parts]
        pairs = zip(words, sums, strict=True)
        return " @ ".join(f"({text})" if inner else text for text, inner in pairs)

    def rebuilt(self, parts: Sequence[Operator]) -> Operator:
        """Return the composition of other operators."""
        return Composition(parts)

    @property
    def T(self) -> Operator:
        """The transpose: the transposes in reverse order."""
        if self.symmetric:
            return self
        return Composition([part.T for part in reversed(self.parts)])


def scaled(operator: Operator, factor: Any) -> Operator:
    """Return a multiple of an operator."""
    number = _number(factor)
    terms = _terms(operator)
    return Sum([number * one for one, _ in terms], [part for _, part in terms])


def divided(operator: Operator, divisor: Any) -> Operator:
    """Return an operator divided by a number."""
    number = _number(divisor)
    if number == 0:
        raise MeasurementError("an operator was divided by 0: pass another number")
    return scaled(operator, 1 / number)


def added(left: Operator, right: Any, sign: float) -> Operator:
    """Return the sum of two operators, or their difference."""
    if not isinstance(right, Operator):
        raise MeasurementError(
            f"an operator and a {type(right).__name__} cannot be added: for a multiple "
            "of the identity write operator + 0.1 * Identity(operator), and pass other "
            "matrices as MatrixOperator(matrix)"
        )
    same = left.shape == right.shape
    _check_fit(left, right, "added", same, (left.layout, right.layout))
    _check_fit(left, right, "added", same, (left.row_layout, right.row_layout))
    factors: dict[int, float] = {}
    terms = [*_terms(left), *((sign * one, part) for one, part in _terms(right))]
    for one, part in terms:
        factors[id(part)] = factors.get(id(part), 0.0) + one
    parts = {id(part): part for _, part in terms}
    return Sum(list(factors.values()), list(parts.values()))


def composed(left: Operator, right: Operator) -> Operator:
    """Return the composition of two operators, with numbers in front of it."""
    fits = left.shape[1] == right.shape[0]
    _check_fit(left, right, "composed", fits, (left.layout, right.row_layout))
    number, parts = 1.0, []
    for one in (left, right):
        inner = one
        if isinstance(one, Sum) and len(one.parts) == 1:
            number, inner = number * one.factors[0], one.parts[0]
        parts += inner.parts if isinstance(inner, Composition) else [inner]
    made = Composition(parts)
    return made if number == 1.0 else scaled(made, number)


def _terms(operator: Operator) -> list[tuple[float, Operator]]:
    if isinstance(operator, Sum):
        return list(zip(operator.factors, operator.parts, strict=True))
    return [(1.0, operator)]


def _number(given: Any) -> float:
    """Return a finite real number, or refuse what came in its place."""
    if isinstance(given, Tensor | np.ndarray) and given.ndim == 0:
        given = given.item()
    real = isinstance(given, Real) and not isinstance(given, bool)
    if not real or not np.isfinite(float(given)):
        came = repr(given) if real else f"a {type(given).__name__}"
        raise MeasurementError(
            f"an operator was multiplied by {came}: pass a finite number, and multiply "
            "vectors and operators by @"
        )
    return float(given)


def _check_fit(
    left: Operator, right: Operator, how: str, fits: bool, sides: tuple[Layout, Layout]
) -> None:
    """Refuse operands that do not act on the same vectors."""
    names = [type(one).__name__ for one in (left, right)]
    both = f"{names[0]} of shape {left.shape} and {names[1]} of shape {right.shape}"
    if not fits:
        raise MeasurementError(f"{both} cannot be {how}: pass operators that fit")
    if sides[0] and sides[1] and sides[0] != sides[1]:
        pairs = zip(*sides, strict=False)
        other = next(((a, b) for a, b in pairs if a != b), (sides[0][-1], sides[1][-1]))
        raise MeasurementError(
            f"{both} cannot be {how}, since they act on different parameters or in "
            f"another order ({other[0][0]} beside {other[1][0]}): pass the same params="
        )
    kinds = [(one.torch_dtype, one.device) for one in (left, right)]
    if kinds[0] != kinds[1]:
        said = " and ".join(f"{dtype} on {device}" for dtype, device in kinds)
        raise MeasurementError(
            f"operators of type {said} cannot be {how}: convert one of the models"
        )
    teams = [getattr(one, "team", None) for one in (left, right)]
    if len({(team.rank, team.size) for team in teams if team is not None}) > 1:
        raise MeasurementError(
            f"operators of different teams cannot be {how}: pass both the same team="
        )


def _beside(part: Operator, layout: Layout) -> Layout:
    """Return the layout of a square matrix without one, next to a given one."""
    square = is_given(part) and part.shape[0] == part.shape[1]
    return layout if square else ()
