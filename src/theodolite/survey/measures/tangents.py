"""The tangent kernel of a few samples, and the squared gradient over the loss."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from theodolite.instruments import tangent_kernel

from .contract import Found, Measure, number
from .site import Site, logits_in

_LEAST, _MOST = 2, 16
# Passes of a kernel row, with its comparison in higher precision.
_ROW = 2.0


class TangentMeasure(Measure):
    r"""Ends of the tangent kernel $DF\,DF^\top$, and the PL ratio of the loss.

    ``pl_ratio`` is $\|\nabla\ell\|^2/(2\ell)$ on the batch: the largest $\mu$ with
    which the inequality of Polyak and Łojasiewicz holds there if the loss can be
    brought to 0.
    """

    name: ClassVar = "tangent"
    share: ClassVar = 0.1

    def least(self, site: Site) -> float:
        """Return the gradients of the kernel of few samples."""
        return _cost(site, min(_LEAST, site.samples))

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield the PL ratio, then both ends."""
        sounding = site.sounding
        if sounding.loss > 0:
            square = sum(
                float(g.double().square().sum()) for g in sounding.gradients.values()
            )
            ratio = square / (2 * sounding.loss)
            seen = {"n_samples": sounding.samples}
            yield number("pl_ratio", ratio, 4 * site.rounding * ratio, **seen)
        samples = min(_LEAST, site.samples)
        while 2 * samples <= min(_MOST, site.samples):
            if _cost(site, 2 * samples) > gradients:
                break
            samples *= 2
        problem = replace(site.on(samples), loss=None, outputs=site.outputs)
        kernel = tangent_kernel(problem)
        site.passes += kernel.cost.passes
        labels = {"n_samples": samples, "status": str(kernel.status)}
        error = kernel.eigenvalue_error
        yield number("tangent_smallest", kernel.smallest, error, **labels)
        yield number("tangent_largest", kernel.largest, error, **labels)


def _cost(site: Site, samples: int) -> float:
    outputs = logits_in(site.sounding.outputs).numel() / max(site.sounding.samples, 1)
    return _ROW * samples * outputs * site.gradients(samples)
