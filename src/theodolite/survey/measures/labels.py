"""Norms, margins and collapse of a classifier whose labels are known."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from theodolite.core import TheodoliteError
from theodolite.instruments import classifier_norms, collapse, samples_in

from .contract import Found, Measure, number
from .site import Site, targets_in

# Gradients per batch of norms, which try each layer's scale, and of collapse; these
# are forward passes.
_PASSES = 6
_SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


class ClassifierMeasure(Measure):
    """Error rate, product and list of layer norms, margins, NC1 to NC4."""

    name: ClassVar = "classifier"
    share: ClassVar = 0.06

    def refusal(self, site: Site) -> str:
        """Require real labels, not made-up ones, one per sample."""
        if not site.labels_known:
            return "the labels are made up: give data to have margins and collapse"
        if not isinstance(targets := targets_in(site.batch), Tensor):
            return "the batches hold no labels: give pairs of inputs and labels"
        if targets.is_floating_point() or targets.ndim != 1:
            kind = f"{str(targets.dtype).removeprefix('torch.')} of {targets.ndim} axes"
            return f"the targets are {kind}: give one class index per sample"
        return ""

    def least(self, site: Site) -> float:
        """Return the gradients of one batch."""
        return _PASSES

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield norms and margins, then collapse."""
        count = min(int(gradients / _PASSES), len(site.batches))
        batches = [site.batches[place] for place in range(count)]
        n_samples = sum(samples_in(batch) or 1 for batch in batches)
        labels = {"n_samples": n_samples, "of_samples": site.all_samples}
        given: dict[str, Any] = {"norm_mode": site.norm_mode, "outputs": site.outputs}
        try:
            reading = classifier_norms(site.model, batches, **given)
            yield from ({**row, **labels} for row in _norm_rows(reading))
        except TheodoliteError as refused:
            site.unsupported.append(f"the classifier's norms: {refused}")
        try:
            reading = collapse(site.model, batches, **given)
            yield from ({**row, **labels} for row in _collapse_rows(reading))
        except TheodoliteError as refused:
            site.unsupported.append(f"neural collapse: {refused}")


def _norm_rows(reading: Any) -> Iterator[Found]:
    yield number("error_rate", reading.error_rate, reading.error_rate_error)
    yield number("rho", reading.rho, reading.rho_error)
    error = reading.layer_norm_error
    for name, value in zip(reading.names, reading.layer_norms, strict=True):
        yield number("layer_norm_value", value, error, module=name)
    if len(reading.margins):
        for share in _SHARES:
            value = float(np.quantile(reading.margins, share))
            yield number("margin", value, reading.f_error, share=share)


def _collapse_rows(reading: Any) -> Iterator[Found]:
    for quantity, name in _COLLAPSE.items():
        value = getattr(reading, name)
        if math.isfinite(value):
            error = float(getattr(reading, reading.error_of[name]))
            yield number(quantity, value, error, kind=name)


_COLLAPSE = {
    "nc1": "nc1_variability",
    "nc2": "nc2_mean_simplex",
    "nc3": "nc3_duality",
    "nc4": "nc4_disagreement",
}
