"""Curvature of each block's own parameters."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, TypeVar

from theodolite.instruments import extreme_eigenvalues, trace

from .contract import Allowance, Found, Measure, number
from .curvature import FEW, TOLERANCE, error_of, samples_for
from .metered import Metered
from .site import Site

T = TypeVar("T")
_PRODUCTS = 6


class BlockCurvatureMeasure(Measure):
    """Largest eigenvalue and trace of the Hessian's diagonal block of each block."""

    name: ClassVar = "block_curvature"
    weight: ClassVar = 4.0

    def refusal(self, site: Site) -> str:
        """Refuse a model without blocks that have parameters."""
        if not any(stretch.parameters for stretch in site.chart.stretches):
            return site.unmapped or (
                "no block owns parameters: there is no curvature to attribute"
            )
        return ""

    def forecast(self, site: Site) -> float:
        """Return the seconds of a few products for a third of the blocks."""
        blocks = max(len(site.chart.stretches) / 3, 1)
        return 2 * _PRODUCTS * blocks * site.product_s(min(FEW, site.samples))

    def rows(self, site: Site, allowance: Allowance) -> Iterator[Found]:
        """Yield both numbers of each block, in an order spread over the depth."""
        held = {n for n, p in site.model.named_parameters() if p.requires_grad}
        stretches = [
            (s, [n for n in s.parameters if n in held]) for s in site.chart.stretches
        ]
        stretches = [(s, names) for s, names in stretches if names]
        products = 2 * _PRODUCTS * max(len(stretches), 1)
        samples = samples_for(site, 0.9 * allowance.left(), products)
        with site.hessian(samples) as hessian:
            for stretch, names in spread_out(stretches):
                allowance.check()
                operator = Metered(hessian[names], allowance, site)
                labels = {
                    "block": stretch.block.name,
                    "depth": stretch.block.index,
                    "n_samples": samples,
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
