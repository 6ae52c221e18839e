"""The tangent kernel of a few samples, and the squared gradient over the loss."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from theodolite.instruments import Batch, tangent_kernel, tensors_in

from .contract import Found, Measure, number
from .site import Site, logits_in

_LEAST, _MOST = 2, 16
# Passes of a kernel row, with its comparison in higher precision.
_ROW = 2.0


class TangentMeasure(Measure):
    r"""Ends of the tangent kernel $DF\,DF^\top$, and the PL ratio of the loss.

    ``pl_ratio`` is $\|\nabla\ell\|^2/(2\ell)$ on the batch: the largest $\mu$ with
    which the inequality of Polyak and Łojasiewicz holds there if the loss can be
    brought to 0. Labels of both ends say why the smallest may be 0: ``n_rows`` of the
    kernel, ``n_trained`` numbers that are trained, ``n_repeated`` samples that equal an
    earlier one, ``probabilities`` where outputs, or their exponentials, sum to one,
    ``narrow`` where a head makes more outputs than it has features, at more places.
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
        labels = {
            "n_samples": samples,
            "status": str(kernel.status),
            "n_rows": round(samples * _outputs(site)),
            "n_trained": sum(g.numel() for g in sounding.gradients.values()),
            "n_repeated": _repeated(site.first(samples), samples),
            "probabilities": _sum_to_one(logits_in(sounding.outputs)),
            "narrow": _is_narrow(site, samples),
        }
        error = kernel.eigenvalue_error
        yield number("tangent_smallest", kernel.smallest, error, **labels)
        yield number("tangent_largest", kernel.largest, error, **labels)


def _cost(site: Site, samples: int) -> float:
    return _ROW * samples * _outputs(site) * site.gradients(samples)


def _outputs(site: Site) -> float:
    """Return the number of outputs per sample."""
    return logits_in(site.sounding.outputs).numel() / max(site.sounding.samples, 1)


def _classes_along(outputs: Tensor) -> int:
    """Return the axis of the classes: the last, or the channels of maps."""
    return 1 if outputs.ndim > 3 else max(outputs.ndim - 1, 0)


def _is_narrow(site: Site, samples: int) -> bool:
    r"""Return whether a head has fewer features than outputs, and than places.

    Outputs $H W^\top + 1 b^\top$ of $n$ places, samples or positions in them, and of
    $C$ classes by $d$ features do not move along the $(n - d - 1)(C - d)$ directions
    that are orthogonal to $H$ and $1$ on one side, and to $W$ on the other.
    """
    if not site.chart.stretches:
        return False
    outputs, head = logits_in(site.sounding.outputs), site.chart.stretches[-1]
    entry = site.chart.anatomy.recording.values[head.entry].shape
    axis = _classes_along(outputs)
    classes = outputs.shape[axis] if outputs.ndim else 1
    places = samples * _outputs(site) / classes
    spread = outputs.ndim > 2 and len(entry) == outputs.ndim
    features = entry[axis] if spread else math.prod(entry[1:])
    return features < classes and features + 1 < places


def _sum_to_one(outputs: Tensor) -> bool:
    """Return whether outputs are probabilities, or their logarithms, to rounding."""
    axis = _classes_along(outputs)
    if outputs.ndim < 2 or outputs.shape[axis] < 2:
        return False
    near = math.sqrt(torch.finfo(outputs.dtype).eps)
    values = outputs.detach().double()
    totals = values.sum(axis), values.exp().sum(axis)
    return any(bool(((total - 1).abs() < near).all()) for total in totals)


def _repeated(batch: Batch, samples: int) -> int:
    """Count samples whose inputs are exactly equal to those of an earlier one."""
    paired = isinstance(batch, tuple | list) and len(batch) == 2
    inputs = tensors_in(batch[0] if paired else batch)
    rows = [
        t.reshape(samples, -1).double() for t in inputs if t.shape[:1] == (samples,)
    ]
    if not rows:
        return 0
    return samples - len(torch.cat(rows, 1).unique(dim=0))
