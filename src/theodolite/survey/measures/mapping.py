"""The map: blocks, additions and norms, and how branches compare with skips."""

import math
from collections.abc import Iterator
from typing import ClassVar

from theodolite.anatomy import Span

from .charting import Stretch
from .contract import Found, Measure, number
from .site import Site


class MapMeasure(Measure):
    r"""Counts of the network's parts, and the gain of each branch.

    The gain is the root mean square of the branch output over that of its skip; for
    several branches their squares are summed. A ``scale`` is a factor after the last
    layer of a branch.
    """

    name: ClassVar = "map"

    def rows(self, site: Site, gradients: float) -> Iterator[Found]:
        """Yield counts, then gains by depth."""
        chart = site.chart
        yield number("n_additions", len(chart.anatomy.additions), 0.0)
        yield number("n_norms", len(chart.anatomy.norms), 0.0)
        yield number("n_unplaced", len(chart.anatomy.unplaced), 0.0)
        for each in chart.anatomy.unplaced:
            if "loss" in each.reason:  # that of a model that computes its own
                continue
            where = each.module or "the model"
            site.unsupported.append(f"{where}: {each.reason}, so the map leaves it out")
        for stretch in chart.stretches:
            yield _kept(site, stretch)
            yield from _gain(site, stretch)
            yield from _scales(site, stretch)


def _kept(site: Site, stretch: Stretch) -> Found:
    """Return whether the output of a stretch has the shape of its input."""
    values = site.chart.anatomy.recording.values
    kept = values[stretch.entry].shape == values[stretch.output].shape
    labels = {"block": stretch.block.name, "depth": stretch.block.index}
    return number("keeps_shape", float(kept), 0.0, **labels)


def _gain(site: Site, stretch: Stretch) -> Iterator[Found]:
    if stretch.block.addition is None:
        return
    addition = site.chart.anatomy.additions[stretch.block.addition]
    signals = site.sounding.forward
    skip = signals.get(addition.skip.exit) or signals.get(addition.fork)
    branches = [signals.get(branch.exit) for branch in addition.branches]
    if skip is None or any(branch is None for branch in branches):
        site.unsupported.append(
            f"{stretch.block.name}: its sum is made inside of one operator, so the "
            "gain of its branch is not seen"
        )
        return
    total = math.sqrt(sum(b.rms**2 for b in branches if b is not None))
    spread = math.hypot(*(b.rms_error for b in branches if b is not None))
    if not skip.rms:
        return
    gain = total / skip.rms
    error = math.hypot(spread, gain * skip.rms_error) / skip.rms
    labels = {"block": stretch.block.name, "depth": stretch.block.index}
    n_samples = site.sounding.samples
    yield number("branch_gain", gain, error, n_samples=n_samples, **labels)


def _scales(site: Site, stretch: Stretch) -> Iterator[Found]:
    if stretch.block.addition is None:
        return
    addition = site.chart.anatomy.additions[stretch.block.addition]
    for branch in addition.branches:
        scale = _scale(site, branch)
        if scale is not None:
            labels = {"block": stretch.block.name, "depth": stretch.block.index}
            yield number("scale", scale, 0.0, **labels)


def _scale(site: Site, branch: Span) -> float | None:
    """Return the product of a branch's factors; of a vector, take its RMS."""
    scales = [s for s in branch.scales if s.by in ("number", "parameter", "buffer")]
    if not scales:
        return None
    named = {**dict(site.model.named_parameters()), **dict(site.model.named_buffers())}
    total = 1.0
    for scale in scales:
        if scale.value is not None:
            total *= scale.value
        elif scale.name in named:
            total *= float(named[scale.name].detach().double().square().mean().sqrt())
    return total
