"""Curvature of each block's own parameters."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, TypeVar

from theodolite.instruments import Hessian, extreme_eigenvalues, trace

from .contract import Found, Measure, number
from .curvature import TOLERANCE, error_of
from .metered import Counted
from .site import PRODUCT, Site

T = TypeVar("T")
_PRODUCTS = 6
# Gradients of one block: its largest eigenvalue, then its trace.
_EACH = 2 * _PRODUCTS * PRODUCT


class BlockCurvatureMeasure(Measure):
    """Largest eigenvalue and trace of the Hessian's diagonal block of each block.

    If the effort is small, only some blocks are measured, spread over the depth.
    """

    name: ClassVar = "block_curvature"
    share: ClassVar = 0.07

    def refusal(self, site: Site) -> str:
        """Refuse a model without blocks that have parameters."""
        if not any(stretch.parameters for stretch in site.chart.stretches):
            return site.unmapped or (
                "no block owns parameters: there is no curvature to attribute"
            )
        return ""

    def least(self, site: Site) -> float:
        """Return the gradients of a third of the blocks."""
        return _EACH * max(len(site.chart.stretches) / 3, 1)

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield both numbers of each block, in an order spread over the depth."""
        held = {n for n, p in site.model.named_parameters() if p.requires_grad}
        stretches = [
            (s, [n for n in s.parameters if n in held]) for s in site.chart.stretches
        ]
        stretches = [(s, names) for s, names in stretches if names]
        stretches = spread_out(stretches)[: int(gradients / _EACH)]
        with Hessian(site.on(site.samples)) as hessian:
            for stretch, names in stretches:
                operator = Counted(hessian[names], site)
                labels = {
                    "block": stretch.block.name,
                    "depth": stretch.block.index,
                    "n_samples": site.samples,
                }
                top = extreme_eigenvalues(
                    operator,
                    ends="largest",
                    tol=TOLERANCE,
                    stop="value",
                    max_matvecs=_PRODUCTS,
                    seed=site.seed,
                    graph_error=site.graph_error,
                )
                value = top.eigenvalues[0]
                yield number("block_largest_eigenvalue", value, error_of(top), **labels)
                reading = trace(operator, max_matvecs=_PRODUCTS, seed=site.seed)
                error = reading.trace_error + site.graph_error * abs(reading.trace)
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
