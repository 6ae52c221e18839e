"""Neural collapse of the features of any classifier, at any layer."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from theodolite.core import MeasurementError, NormMode, TheodoliteError

from ..model.objective import Outputs
from ..model.process_state import with_progress
from ..norms.full_statistics import Moments
from ..operators.span import named
from ..passes.batches import Batches
from ..passes.problem import Model, Problem
from .class_statistics import Centre
from .classifier_passes import (
    ClassifierPasses,
    classifier_passes,
    classifier_problem,
    finer_passes,
)
from .collapse_meter import CollapseMeter
from .collapse_reading import Collapse
from .final_layer import Head, decisions_of, last_linear
from .labels import Labels, SampleWeights, labels_in


@with_progress("batches")
def collapse(
    model: Model | Problem,
    batches: Batches | None = None,
    *,
    norm_mode: NormMode | str | None = None,
    layer: str | None = None,
    other: Batches | None = None,
    labels: Labels | None = None,
    weights: SampleWeights | None = None,
    outputs: Outputs | None = None,
    centre: Centre = "classes",
    ignore_index: int | None = -100,
    feature_bytes: int = 2 * 2**30,
    max_batches: int | None = None,
) -> Collapse:
    r"""Measure neural collapse (NC1 to NC5) of a classifier's features.

    The features are kept in one pass over the data. If they take more than
    ``feature_bytes``, they are folded into sums, and a second pass finds the nearest
    class mean of each sample. Below float64 the features of the first batch are
    compared with those of a float64 copy, and errors include the difference.

    Args:
        model: Any classifier, never changed; or a :class:`Problem`, whose model, data,
            ``norm_mode``, ``outputs`` and ``max_batches`` are used.
        batches: Pairs (inputs, labels), or mappings with ``labels``; a list or a
            DataLoader of them.
        norm_mode: Statistics that normalisation layers use, as for :class:`Problem`.
        layer: Name of a submodule whose output is measured; by default the input of the
            final linear layer, and only that is compared with the layer's weights.
        other: Batches of other data for NC5; their labels are not read.
        labels: ``labels(batch)``; whole numbers from 0 up, or ±1.
        weights: ``weights(batch)``, one per label; samples of weight 0 are ignored.
        outputs: ``outputs(model, batch)``, the logits; the model's own by default.
        centre: Centre class means at their own mean, or at that of the samples.
        ignore_index: Label of samples to ignore.
        feature_bytes: Memory that features may take.
        max_batches: Largest number of batches to use.

    Returns:
        The reading.

    Example:
        >>> from torch import nn
        >>> _ = torch.manual_seed(0)
        >>> net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3)).double()
        >>> x, y = torch.randn(30, 2).double(), torch.arange(30) % 3
        >>> reading = collapse(net, (x, y), norm_mode="eval")
        >>> reading.nc1_variability > 1, len(reading.classes), reading.layer
        (True, 3, 'input of 2')
    """
    settings = {"norm_mode": norm_mode, "outputs": outputs, "max_batches": max_batches}
    problem = classifier_problem(model, batches, **settings)
    with (
        classifier_passes(problem, callables=(labels, weights)) as passes,
        watching(passes, layer) as watch,
    ):
        meter = CollapseMeter(
            head=watch.head,
            classes=watch.classes,
            centre=centre,
            ignore_index=ignore_index,
            feature_bytes=feature_bytes,
            layer=watch.name,
            norm_mode=passes.mode,
        )
        _feed(meter.update, passes, watch, labels, weights)
        if meter.folded:
            _feed(meter.recount, passes, watch, labels, weights)
        noise = _noise(passes, watch, layer)
    outside = None
    if other is not None:
        others = replace(problem, batches=other, max_batches=None)
        outside = _mean_of(others, layer, passes.statistics)
    reading = meter.compute(other=outside, feature_noise=noise)
    return replace(reading, norm_layers=passes.norm_layers)


class Watch:
    """Hook that keeps the features of one layer in each pass.

    Attributes:
        name: Name of the layer.
        head: The linear layer that the features enter, if there is one.
        classes: Number of classes of the outputs.
    """

    def __init__(self, name: str, head: Head | None, classes: int) -> None:
        self.name, self.head, self.classes = name, head, classes
        self._seen: list[Tensor] = []

    def see(self, features: Any) -> None:
        """Keep the output or the input of a layer."""
        if not isinstance(features, Tensor):
            raise MeasurementError(
                f"{self.name!r} gives a {type(features).__name__}, wanted is one "
                "tensor: choose a submodule that returns one"
            )
        # Later code may write into it.
        self._seen.append(features.detach().clone())

    def take(self) -> Tensor:
        """Return the features of the last pass."""
        if len(self._seen) != 1:
            how = f"{len(self._seen)} times" if self._seen else "never"
            raise MeasurementError(
                f"{self.name!r} is called {how} in a pass, so it has no one feature a "
                "sample: choose a layer that is called once"
            )
        return self._seen.pop()


@contextmanager
def watching(passes: ClassifierPasses, layer: str | None) -> Iterator[Watch]:
    """Keep the features of a layer in every pass."""
    if layer is None:
        runs: list[Tensor] = []

        def run() -> Tensor:
            runs.append(passes.outputs(passes.items[0]))
            return runs[0]

        name, linear = last_linear(passes.model, run)
        head = Head.of(linear.weight, linear.bias)
        watch = Watch(f"input of {name}" if name else "input", head, head.classes)
        handle = linear.register_forward_pre_hook(
            lambda _, args, kwargs: watch.see(args[0] if args else kwargs["input"]),
            with_kwargs=True,
        )
    else:
        module = named(passes.model, layer)
        outputs = passes.outputs(passes.items[0])
        watch = Watch(layer, None, max(outputs.shape[-1], 2))
        handle = module.register_forward_hook(lambda _, args, out: watch.see(out))
    try:
        yield watch
    finally:
        handle.remove()


def _feed(
    take: Callable[..., None],
    passes: ClassifierPasses,
    watch: Watch,
    labels: Labels | None,
    weights: SampleWeights | None,
) -> None:
    for batch in passes.items:
        logits = passes.outputs(batch)
        take(
            watch.take(),
            labels_in(batch, labels),
            weights=None if weights is None else weights(batch),
            decisions=decisions_of(logits),
        )


def _noise(passes: ClassifierPasses, watch: Watch, layer: str | None) -> float:
    """Return the rounding error of the features, root mean square in norm."""
    batch = passes.items[0]
    passes.outputs(batch)
    ours = watch.take()
    if ours.dtype == torch.float64:
        return 0.0
    try:
        with (
            finer_passes(passes) as (finer, same),
            watching(finer, layer) as other,
        ):
            finer.outputs(same)
            theirs = other.take()
    except (TheodoliteError, RuntimeError, TypeError, ValueError):
        # Without a copy, use the rounding of the type, scaled by the features' size.
        eps = torch.finfo(ours.dtype).eps
        return eps * float(ours.double().square().sum(-1).mean().sqrt())
    gap = (theirs.double() - ours.double()).square()
    return math.sqrt(float(gap.sum()) / max(len(gap), 1))


def _mean_of(
    problem: Problem, layer: str | None, statistics: list[Moments] | None
) -> Tensor:
    """Return the mean feature of other data as one row."""
    total, count = None, 0
    with (
        classifier_passes(problem, statistics=statistics) as passes,
        watching(passes, layer) as watch,
    ):
        for batch in passes.items:
            passes.outputs(batch)
            h = watch.take()
            rows = h.reshape(len(h), -1).double()
            total = rows.sum(0) if total is None else total + rows.sum(0)
            count += len(rows)
    assert total is not None
    return (total / count)[None]
