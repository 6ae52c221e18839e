"""The tangent kernel of a few samples, and how steep the loss is for its height."""

import math
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from theodolite.instruments import Batch, tangent_kernel, tensors_in
from theodolite.survey.measures.contract import Allowance, Found, Measure, number
from theodolite.survey.measures.site import Site, logits_in

_LEAST, _MOST = 2, 16
# Gradients that a row of the kernel takes, with its comparison in finer arithmetic.
_ROW = 6.0


class TangentMeasure(Measure):
    r"""Ends of the tangent kernel $DF\,DF^\top$, and the PL ratio of the loss.

    ``pl_ratio`` is $\|\nabla\ell\|^2/(2\ell)$ on the batch: the largest $\mu$ with
    which the inequality of Polyak and Łojasiewicz holds there if the loss can be
    brought to 0. Labels of both ends say why the smallest may be 0: ``n_rows`` of the
    kernel, ``n_trained`` numbers that are trained, ``n_repeated`` samples that equal an
    earlier one, ``probabilities`` where outputs, or their exponentials, sum to one.
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
        labels = {
            "n_samples": samples,
            "status": str(found.status),
            "n_rows": round(samples * _outputs(site)),
            "n_trained": sum(g.numel() for g in sounding.gradients.values()),
            "n_repeated": _repeated(site.first(samples), samples),
            "probabilities": _sum_to_one(logits_in(sounding.outputs)),
        }
        error = found.eigenvalue_error
        yield number("tangent_smallest", found.smallest, error, **labels)
        yield number("tangent_largest", found.largest, error, **labels)


def _seconds(site: Site, samples: int) -> float:
    return _ROW * samples * _outputs(site) * site.gradient_s(samples)


def _outputs(site: Site) -> float:
    """Return the number of outputs a sample."""
    return logits_in(site.sounding.outputs).numel() / max(site.sounding.samples, 1)


def _sum_to_one(outputs: Tensor) -> bool:
    """Tell whether outputs are probabilities, or their logarithms, to rounding."""
    if outputs.ndim < 2 or outputs.shape[1] < 2:
        return False
    near = math.sqrt(torch.finfo(outputs.dtype).eps)
    totals = outputs.detach().double().sum(1), outputs.detach().double().exp().sum(1)
    return any(bool(((total - 1).abs() < near).all()) for total in totals)


def _repeated(batch: Batch, samples: int) -> int:
    """Count samples whose inputs equal those of an earlier one, number for number."""
    paired = isinstance(batch, tuple | list) and len(batch) == 2
    inputs = tensors_in(batch[0] if paired else batch)
    rows = [t.reshape(samples, -1).double() for t in inputs if len(t) == samples]
    if not rows:
        return 0
    return samples - len(torch.cat(rows, 1).unique(dim=0))
