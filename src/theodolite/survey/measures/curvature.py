"""The Hessian: ends, trace and density of its spectrum, and its diagonal blocks."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, TypeVar

from torch import Tensor

from theodolite.core import NormMode, Status
from theodolite.instruments import (
    ExtremeEigenvalues,
    Hessian,
    Operator,
    extreme_eigenvalues,
    spectral_density,
    trace,
)

from ..records.outcomes import NOT_RESOLVED
from .context import PRODUCT, SurveyContext
from .contract import Found, Measure, number

# Fewest and most products: fewer say little, more hardly improve the result.
FEWEST, _MOST, _MOST_TRACED = 5, 200, 60
TOLERANCE = 0.01
# Error of an eigenvalue that did not converge, in multiples of its residual.
_UNSURE = 2.0
# Up to this number of parameters a full matrix is cheap.
_DENSE = 128
# Least number of products for the trace, and the part of all products for the ends.
_TRACED, _ENDS = 6, 0.7
# Products for each number of a block, and gradients of its eigenvalue and its trace.
_PRODUCTS = 6
_EACH = 2 * _PRODUCTS * PRODUCT
# Lanczos steps, random starts and points of the density.
_STEPS, _MOST_STEPS, _MOST_PROBES, _POINTS = 12, 48, 4, 96
# Rounding of a product, in multiples of the one that was measured, by choice.
_ROUNDINGS = 10.0
T = TypeVar("T")


class Counted(Operator):
    """An operator whose products count as passes of the survey.

    Its products are not compared with float64 again: ten times the
    ``graph_error`` of the context, which was measured on one product, bounds the
    rounding of all, by choice.

    Args:
        inner: The operator.
        context: Counts the passes.
    """

    def __init__(self, inner: Operator, context: SurveyContext) -> None:
        self._inner, self._site = inner, context
        self.shape, self.device = inner.shape, inner.device
        self.torch_dtype = inner.torch_dtype
        self.symmetric = inner.symmetric
        self.norm_mode: NormMode = getattr(inner, "norm_mode", context.norm_mode)
        self._largest = 0.0

    def _matvec(self, vector: Tensor) -> Tensor:
        """Multiply one vector."""
        self.passes += 1
        self._site.passes += 1
        product = self._inner.matvec(vector)
        size = float(vector.norm())
        if size:
            self._largest = max(self._largest, float(product.norm()) / size)
        self.noise_norm = _ROUNDINGS * self._site.graph_error * self._largest
        return product


class CurvatureMeasure(Measure):
    """Largest and smallest eigenvalue of the loss Hessian of the batch, and its trace.

    The error of a converged eigenvalue is a bound that holds with probability 99 %;
    otherwise it is twice the residual. An eigenvalue that did not converge and whose
    error bar includes zero is not resolved; ``needs_effort`` is the effort to try.
    """

    name: ClassVar = "curvature"
    share: ClassVar = 0.34

    def least(self, context: SurveyContext) -> float:
        """Return the gradients of a few products."""
        return PRODUCT * (FEWEST + 3)

    def rows(self, context: SurveyContext, gradients: float) -> Iterator[Found]:
        """Yield both ends, then the trace if enough products are left for it."""
        labels = {"n_samples": context.samples}
        with Hessian(context.on(context.samples)) as hessian:
            operator = Counted(hessian, context)
            yield from _ends(context, leading_of(context, operator), labels)
            products = int((1 - _ENDS) * gradients / PRODUCT)
            yield from _trace(operator, context, products, labels)


def leading_of(context: SurveyContext, operator: Operator) -> ExtremeEigenvalues:
    """Return the ends of the Hessian's spectrum, computed once for all measures.

    Args:
        context: Holds them once they are measured.
        operator: The Hessian of the whole batch.
    """
    if context.leading is None:
        gradients = _ENDS * CurvatureMeasure.share * context.effort
        context.leading = ends_of(operator, context, gradients)
    return context.leading


def ends_of(
    operator: Operator, context: SurveyContext, gradients: float
) -> ExtremeEigenvalues:
    """Return the largest and smallest eigenvalue, by products for this effort."""
    dense = operator.shape[1] if operator.shape[1] <= _DENSE else 0
    return extreme_eigenvalues(
        operator,
        ends="both",
        tol=TOLERANCE,
        stop="value",
        max_matvecs=max(FEWEST, min(_MOST, int(gradients / PRODUCT)), dense),
        seed=context.seed,
        graph_error=context.graph_error,
    )


def _ends(
    context: SurveyContext, ends: ExtremeEigenvalues, labels: dict[str, int]
) -> Iterator[Found]:
    low = float(ends.smallest_errors[0])
    low *= 1.0 if ends.smallest_statuses[0].trusted else _UNSURE
    for quantity, value, error, status in (
        ("largest_eigenvalue", ends.eigenvalues[0], error_of(ends), ends.statuses[0]),
        ("smallest_eigenvalue", ends.smallest[0], low, ends.smallest_statuses[0]),
    ):
        facts = {**labels, "rank": 0, "status": str(status)}
        if status is Status.MAX_MATVECS and not abs(value) > error:
            yield not_resolved(context, quantity, **facts)
        else:
            yield number(quantity, value, error, **facts)


def not_resolved(context: SurveyContext, quantity: str, **labels: Any) -> Found:
    """Return a row for a number whose error bar includes zero, with what to try.

    More effort helps if it was products that ran out: four times as many, by choice.
    """
    facts: dict[str, Any] = {**labels, "nonfinite": NOT_RESOLVED}
    if labels.get("status") == str(Status.MAX_MATVECS):
        facts["needs_effort"] = round(4 * context.effort)
    return number(quantity, math.nan, **facts)


def error_of(ends: ExtremeEigenvalues) -> float:
    """Return the error of a largest eigenvalue.

    If Lanczos was stopped before it converged, the value is too small. Then the error
    is twice the residual, by choice.
    """
    if ends.statuses[0].trusted:
        return float(ends.sharp_errors[0])
    return _UNSURE * float(ends.errors[0])


def _trace(
    operator: Operator, context: SurveyContext, products: int, labels: dict[str, int]
) -> Iterator[Found]:
    size = operator.shape[1]
    dense = size if size <= _DENSE else 0
    if products < _TRACED and not dense:
        return
    products = max(_TRACED, min(_MOST_TRACED, products), dense)
    reading = trace(operator, max_matvecs=products, seed=context.seed)
    error = reading.trace_error + context.graph_error * abs(reading.trace)
    yield number("trace", reading.trace, error, **labels)


class BlockCurvatureMeasure(Measure):
    """Largest eigenvalue and trace of the Hessian's diagonal block of each block.

    If the effort is small, only some blocks are measured, spread over the depth.
    """

    name: ClassVar = "block_curvature"
    share: ClassVar = 0.07

    def refusal(self, context: SurveyContext) -> str:
        """Refuse a model without blocks that have parameters."""
        if not any(block_span.parameters for block_span in context.block_map.spans):
            return context.unmapped or (
                "no block owns parameters: there is no curvature to attribute"
            )
        return ""

    def least(self, context: SurveyContext) -> float:
        """Return the gradients of a third of the blocks."""
        return _EACH * max(len(context.block_map.spans) / 3, 1)

    def rows(self, context: SurveyContext, gradients: float) -> Iterator[Found]:
        """Yield both numbers of each block, in an order spread over the depth."""
        held = {n for n, p in context.model.named_parameters() if p.requires_grad}
        block_spans = [
            (s, [n for n in s.parameters if n in held]) for s in context.block_map.spans
        ]
        block_spans = [(s, names) for s, names in block_spans if names]
        block_spans = spread_out(block_spans)[: int(gradients / _EACH)]
        with Hessian(context.on(context.samples)) as hessian:
            for block_span, names in block_spans:
                operator = Counted(hessian[names], context)
                labels = {
                    "block": block_span.block.name,
                    "depth": block_span.block.index,
                    "n_samples": context.samples,
                }
                top = extreme_eigenvalues(
                    operator,
                    ends="largest",
                    tol=TOLERANCE,
                    stop="value",
                    max_matvecs=_PRODUCTS,
                    seed=context.seed,
                    graph_error=context.graph_error,
                )
                value = top.eigenvalues[0]
                yield number("block_largest_eigenvalue", value, error_of(top), **labels)
                reading = trace(operator, max_matvecs=_PRODUCTS, seed=context.seed)
                error = reading.trace_error + context.graph_error * abs(reading.trace)
                yield number("block_trace", reading.trace, error, **labels)


def spread_out(items: Sequence[T]) -> list[T]:
    """Return the ends first, then the middle, then the middles of the halves.

    Example:
        >>> spread_out(range(9))
        [0, 8, 4, 2, 6, 1, 3, 5, 7]
    """
    if len(items) < 3:
        return list(items)
    order, seen = [0, len(items) - 1], {0, len(items) - 1}
    gaps = [(0, len(items) - 1)]
    while gaps:
        low, high = gaps.pop(0)
        middle = (low + high) // 2
        if middle not in seen:
            seen.add(middle)
            order.append(middle)
            gaps += [(low, middle), (middle, high)]
    return [items[place] for place in order]


class DensityMeasure(Measure):
    """Smoothed density of all eigenvalues, with its band."""

    name: ClassVar = "density"
    share: ClassVar = 0.06

    def least(self, context: SurveyContext) -> float:
        """Return the gradients of one random start."""
        return PRODUCT * _STEPS

    def rows(self, context: SurveyContext, gradients: float) -> Iterator[Found]:
        """Yield the density on a grid."""
        products = int(gradients / PRODUCT)
        steps = max(_STEPS, min(_MOST_STEPS, products))
        probes = max(1, min(_MOST_PROBES, products // steps))
        with Hessian(context.on(context.samples)) as hessian:
            size = hessian.shape[1]
            density = spectral_density(
                Counted(hessian, context),
                n_probes=max(probes, -(-size // steps)) if size <= _DENSE else probes,
                steps=min(steps, size),
                grid=_POINTS,
                seed=context.seed,
            )
        labels = {"n_samples": context.samples, "status": str(density.status)}
        for place, node in enumerate(density.grid):
            value, error = density.density[place], density.density_error[place]
            yield number("density", value, error, node=float(node), **labels)
