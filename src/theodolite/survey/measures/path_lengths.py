"""Contributions of paths, by the number of branches that they take."""

from collections.abc import Iterator
from typing import ClassVar

from theodolite.paths import path_ensemble

from .contract import Found, Measure, number
from .site import Site

_LEAST, _MOST = 2, 16


class PathsMeasure(Measure):
    """Energy of the output's paths by length, and their effective depth.

    Gates that are not piecewise linear are frozen as secants; rows then have the label
    ``linearised``.
    """

    name: ClassVar = "paths"
    share: ClassVar = 0.05

    def refusal(self, site: Site) -> str:
        """Refuse a model without residual additions."""
        if not site.chart.anatomy.additions:
            return site.unmapped or (
                "the network has no residual additions: all paths are of one length"
            )
        return ""

    def least(self, site: Site) -> float:
        """Return the gradients for few samples."""
        return _cost(site, min(_LEAST, site.samples))

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield the energies of the output's paths and the effective depth."""
        samples = min(_LEAST, site.samples)
        while 2 * samples <= min(_MOST, site.samples):
            if _cost(site, 2 * samples) > gradients:
                break
            samples *= 2
        paths = path_ensemble(
            site.model,
            site.first(samples),
            norm_mode=site.norm_mode,
            linearise=not site.chart.anatomy.piecewise_linear,
            outputs=site.outputs,
        )
        site.passes += paths.cost.passes
        labels = {"n_samples": samples, "linearised": bool(paths.linearised)}
        for length in range(paths.energy.shape[1]):
            value, error = paths.energy[0, length], paths.energy_error[0, length]
            share = float(paths.share[0, length])
            facts = {**labels, "length": length, "energy_share": share}
            yield number("path_energy", value, error, **facts)
        depth, error = paths.effective_depth[0], paths.effective_depth_error[0]
        yield number("effective_depth", depth, error, **labels)
        yield number("n_branches", len(paths.gain), 0.0, **labels)


def _cost(site: Site, samples: int) -> float:
    """Return about two gradients per branch, in float64."""
    branches = len(site.chart.anatomy.additions) + 2
    return 2 * branches * site.gradients(samples)
