"""Singular values of each block's Jacobian, and from end to end."""

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal

import numpy as np

from theodolite.core import TheodoliteError
from theodolite.instruments import SingularValues, singular_values

from .by_block import spread_out
from .charting import Stretch
from .contract import Found, Measure, number
from .marked import Marked
from .site import Site

_SHARES = tuple(place / 10 for place in range(11))
_STEPS = (48, 24, 12)
_SAMPLES = 8
# Largest number of rows, and of entries, of a Jacobian that is computed in full, and
# the longest side for which exact methods are quick.
_ROWS, _ENTRIES, _SIDE = 128, 2**25, 2048


class JacobianMeasure(Measure):
    r"""Quantiles of the singular values of every block, at the activations of a batch.

    ``singular_value`` is the quantile at ``share``, zeros included;
    ``log_mean_square`` is $\ln(\|J\|_F^2/n)$ over the $n$ singular values. The block
    ``whole`` runs from the first block's input to the last one's output.
    """

    name: ClassVar = "jacobian"
    share: ClassVar = 0.14

    def refusal(self, site: Site) -> str:
        """Refuse a model without blocks."""
        if not any(_is_real(site, s.entry) for s in site.chart.stretches):
            return site.unmapped or (
                "no blocks were found on the map: there is nothing to differentiate"
            )
        return ""

    def least(self, site: Site) -> float:
        """Return the gradients of few products with all blocks."""
        return _cost(site, _STEPS[-1])

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield the whole network, and blocks spread over the depth."""
        stretches = [s for s in site.chart.stretches if _is_real(site, s.entry)]
        ends = stretches[0].entry, stretches[-1].output
        spans = [_span(s) for s in spread_out(stretches)]
        # The whole network first if it has few outputs: then it is exact and quick.
        place = 0 if _method(site, ends, 2) == "dense" else len(spans)
        spans.insert(place, ("whole", None, *ends))
        samples = min(_SAMPLES, site.samples)
        steps = next(s for s in _STEPS if _cost(site, s) <= gradients)
        for name, depth, entry, output in spans:
            labels = {"block": name, "depth": depth, "n_samples": samples}
            try:
                yield from _block(site, (entry, output), samples, steps, labels)
            except TheodoliteError as refused:
                site.unsupported.append(f"{name}: no Jacobian, for {refused}")


def _is_real(site: Site, value: int) -> bool:
    """Return whether a value is real, so that it can be differentiated by."""
    return "float" in site.chart.anatomy.recording.values[value].dtype


def _span(stretch: Stretch) -> tuple[str, int | None, int, int]:
    return stretch.block.name, stretch.block.index, stretch.entry, stretch.output


def _method(
    site: Site, span: tuple[int, int], samples: int
) -> Literal["auto", "dense", "quadrature"]:
    """Return an exact method for small Jacobians, else products, which are counted."""
    values = site.chart.anatomy.recording.values
    columns, rows = (samples * math.prod(values[end].shape[1:]) for end in span)
    few = rows <= _ROWS and rows * columns <= _ENTRIES
    if few:
        return "dense"
    return "auto" if max(rows, columns) <= _SIDE else "quadrature"


def _cost(site: Site, steps: int) -> float:
    """Return two gradients per step, over all blocks and over the whole."""
    return 4 * (steps + 2) * site.gradients(min(_SAMPLES, site.samples))


def _block(
    site: Site,
    span: tuple[int, int],
    samples: int,
    steps: int,
    labels: dict[str, Any],
) -> Iterator[Found]:
    marked = Marked(site.model, site.chart, *span)
    batch = site.first(samples)
    given: dict[str, Any] = {
        "block": Marked.BLOCK,
        "norm_mode": site.norm_mode,
        "outputs": site.outputs,
    }
    spectrum = singular_values(
        marked,
        batch,
        **given,
        method=_method(site, span, samples),
        tol=0.1,
        max_steps=steps,
        seed=site.seed,
    )
    site.passes += spectrum.cost.passes
    yield from _quantiles(spectrum, labels)
    value, error = _log_mean_square(spectrum)
    yield number("log_mean_square", value, error, **labels)


def _quantiles(spectrum: SingularValues, labels: dict[str, Any]) -> Iterator[Found]:
    at = quantile_of(spectrum)
    facts = {**labels, "status": str(spectrum.status)}
    for share in _SHARES:
        value = at(share)
        low, high = at(share - spectrum.bound), at(share + spectrum.bound)
        error = max(value - low, high - value, spectrum.tolerance)
        yield number("singular_value", value, error, share=share, **facts)
    largest = float(spectrum.values[0]) if len(spectrum.values) else 0.0
    error = (
        float(spectrum.value_error[0]) if len(spectrum.values) else spectrum.tolerance
    )
    yield number("largest_singular", largest, error, **facts)
    smallest = at(0.0)
    error = max(at(spectrum.bound) - smallest, spectrum.tolerance)
    yield number("smallest_singular", smallest, error, **facts)


def quantile_of(spectrum: SingularValues) -> Callable[[float], float]:
    """Return the quantiles of singular values as a function, zeros included."""
    values, weights = spectrum.values[::-1], spectrum.weights[::-1]
    zeros = max(0.0, 1 - float(weights.sum()))
    reached = zeros + np.cumsum(weights)

    def at(share: float) -> float:
        if not len(values) or (zeros > 1e-9 and share < zeros):
            return 0.0
        place = int(np.searchsorted(reached, min(max(share, 0.0), 1.0) - 1e-9))
        return float(values[min(place, len(values) - 1)])

    return at


def _log_mean_square(spectrum: SingularValues) -> tuple[float, float]:
    r"""Return $\ln(\|J\|_F^2/n)$ and its error.

    By quadrature the sum is $n\,\|Jg\|^2/\|g\|^2$ of random $g$, whose relative
    variance is at most $2\sum\sigma^4/(\sum\sigma^2)^2$; one start is supposed.
    """
    squares = spectrum.values**2
    total = float((spectrum.weights * squares).sum())
    if total <= 0:
        return -math.inf, math.nan
    off = (
        float((2 * spectrum.weights * spectrum.values * spectrum.value_error).sum())
        / total
    )
    if spectrum.level < 1.0:
        fourth = float((spectrum.weights * squares**2).sum())
        off = math.sqrt(2 * fourth / spectrum.size) / total
    return math.log(total), off
