"""The tangent kernel of a few samples, and how steep the loss is for its height."""

from collections.abc import Iterator
from typing import ClassVar

from theodolite.instruments import tangent_kernel
from theodolite.survey.measures.contract import Allowance, Found, Measure, number
from theodolite.survey.measures.site import Site, logits_in

_LEAST, _MOST = 2, 16
# Gradients that a row of the kernel takes, with its comparison in finer arithmetic.
_ROW = 6.0


class TangentMeasure(Measure):
    r"""Ends of the tangent kernel $DF\,DF^\top$, and the PL ratio of the loss.

    ``pl_ratio`` is $\|\nabla\ell\|^2/(2\ell)$ on the batch: the largest $\mu$ with
    which the inequality of Polyak and Łojasiewicz holds there if the loss can be
    brought to 0.
    """

    name: ClassVar = "tangent"
    weight: ClassVar = 2.0

    def forecast(self, site: Site) -> float:
        """Return what the kernel of few samples takes."""
        return _seconds(site, min(_LEAST, site.samples))

    def rows(self, site: Site, allowance: Allowance) -> Iterator[Found]:
        """Yield the PL ratio, then both ends."""
        sounding = site.sounding
        if sounding.loss > 0:
            square = sum(
                float(g.double().square().sum()) for g in sounding.gradients.values()
            )
            ratio = square / (2 * sounding.loss)
            yield number("pl_ratio", ratio, 4 * site.rounding * ratio)
        samples = min(_LEAST, site.samples)
        while 2 * samples <= min(_MOST, site.samples):
            if _seconds(site, 2 * samples) > allowance.left():
                break
            samples *= 2
        found = tangent_kernel(
            site.model,
            site.first(samples),
            norm_mode=site.norm_mode,
            outputs=site.outputs,
        )
        site.passes += found.cost.passes
        labels = {"n_samples": samples, "status": str(found.status)}
        error = found.eigenvalue_error
        yield number("tangent_smallest", found.smallest, error, **labels)
        yield number("tangent_largest", found.largest, error, **labels)


def _seconds(site: Site, samples: int) -> float:
    logits = logits_in(site.sounding.outputs)
    outputs = logits.numel() / max(site.sounding.samples, 1)
    return _ROW * samples * outputs * site.gradient_s(samples)
