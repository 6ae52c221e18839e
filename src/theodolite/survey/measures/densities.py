"""Density of all eigenvalues of the Hessian, and numbers computed from it."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from theodolite.instruments import Hessian, SpectralDensity, spectral_density

from .contract import Found, Measure, number
from .metered import Counted
from .site import PRODUCT, Site

_STEPS, _MOST_STEPS, _MOST_PROBES = 12, 48, 4
_POINTS = 96
_DENSE = 128


class DensityMeasure(Measure):
    """Smoothed density and distribution function, each with its band.

    ``negative_share`` is what the distribution function has at zero, and
    ``condition_percentile`` the largest eigenvalue over the median of all that are
    above zero by more than their error, in magnitude.
    """

    name: ClassVar = "density"
    share: ClassVar = 0.06

    def least(self, site: Site) -> float:
        """Return the gradients of one random start."""
        return PRODUCT * _STEPS

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield the density on a grid, then the shares."""
        products = int(gradients / PRODUCT)
        steps = max(_STEPS, min(_MOST_STEPS, products))
        probes = max(1, min(_MOST_PROBES, products // steps))
        with Hessian(site.on(site.samples)) as hessian:
            operator = Counted(hessian, site)
            size = hessian.shape[1]
            dense = size <= _DENSE
            density = spectral_density(
                operator,
                n_probes=max(probes, -(-size // steps)) if dense else probes,
                steps=min(steps, size),
                grid=_POINTS,
                seed=site.seed,
            )
        labels = {"n_samples": site.samples, "status": str(density.status)}
        for place, node in enumerate(density.grid):
            point = {"node": float(node), **labels}
            value, error = density.density[place], density.density_error[place]
            yield number("density", value, error, **point)
            yield number(
                "cumulative", density.cdf[place], density.cdf_error[place], **point
            )
        yield from _shares(density, labels)


def _shares(density: SpectralDensity, labels: dict[str, object]) -> Iterator[Found]:
    share, error = _below_zero(density)
    yield number("negative_share", share, error, **labels)
    nodes, weights = density.nodes.reshape(-1), density.weights.reshape(-1)
    largest = float(np.abs(nodes).max(initial=0.0))
    above = np.abs(nodes) > 1e-6 * largest
    if not above.any():
        return
    order = np.argsort(np.abs(nodes[above]))
    sizes, mass = np.abs(nodes[above])[order], np.cumsum(weights[above][order])
    middle = float(sizes[np.searchsorted(mass, mass[-1] / 2)])
    ends = (np.searchsorted(mass, mass[-1] * q) for q in (0.4, 0.6))
    low, high = (float(sizes[min(end, len(sizes) - 1)]) for end in ends)
    ratio = largest / middle
    error = max(abs(largest / low - ratio), abs(largest / high - ratio))
    yield number("condition_percentile", ratio, error, share=0.5, **labels)


def _below_zero(density: SpectralDensity) -> tuple[float, float]:
    """Return the distribution function just below 0, and its error there."""
    scale = float(np.abs(density.nodes).max(initial=0.0))
    mass = density.weights[density.nodes < -1e-6 * scale].sum() / len(density.nodes)
    place = min(int(np.searchsorted(density.grid, 0.0)), len(density.grid) - 1)
    return float(mass), float(density.cdf_error[place])
