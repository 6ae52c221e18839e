"""Branches: how they compare with skips, and the paths that take them."""

import math
from collections.abc import Iterator
from typing import ClassVar

from theodolite.paths import path_ensemble

from .block_map import BlockSpan
from .context import SurveyContext
from .contract import Found, Measure, number

# Fewest and most samples whose paths are followed.
_LEAST, _MOST = 2, 16


class MapMeasure(Measure):
    """Counts of the network's parts, and the gain of each branch.

    The gain is the root mean square of the branch output over that of its skip; for
    several branches their squares are summed.
    """

    name: ClassVar = "map"

    def rows(self, context: SurveyContext, gradients: float) -> Iterator[Found]:
        """Yield counts, then gains by depth."""
        block_map = context.block_map
        yield number("n_additions", len(block_map.anatomy.additions), 0.0)
        yield number("n_norms", len(block_map.anatomy.norms), 0.0)
        yield number("n_unplaced", len(block_map.anatomy.unplaced), 0.0)
        for each in block_map.anatomy.unplaced:
            if "loss" in each.reason:  # that of a model that computes its own
                continue
            where = each.module or "the model"
            context.unsupported.append(
                f"{where}: {each.reason}, so the map leaves it out"
            )
        for block_span in block_map.spans:
            yield _kept(context, block_span)
            yield from _gain(context, block_span)


def _kept(context: SurveyContext, block_span: BlockSpan) -> Found:
    """Return whether the output of a block has the shape of its input."""
    values = context.block_map.anatomy.recording.values
    kept = values[block_span.entry].shape == values[block_span.output].shape
    labels = {"block": block_span.block.name, "depth": block_span.block.index}
    return number("keeps_shape", float(kept), 0.0, **labels)


def _gain(context: SurveyContext, block_span: BlockSpan) -> Iterator[Found]:
    if block_span.block.addition is None:
        return
    addition = context.block_map.anatomy.additions[block_span.block.addition]
    signals = context.first_pass.forward
    skip = signals.get(addition.skip.exit) or signals.get(addition.fork)
    branches = [signals.get(branch.exit) for branch in addition.branches]
    if skip is None or any(branch is None for branch in branches):
        context.unsupported.append(
            f"{block_span.block.name}: its sum is made inside of one operator, so the "
            "gain of its branch is not seen"
        )
        return
    total = math.sqrt(sum(b.rms**2 for b in branches if b is not None))
    spread = math.hypot(*(b.rms_error for b in branches if b is not None))
    if not skip.rms:
        return
    gain = total / skip.rms
    error = math.hypot(spread, gain * skip.rms_error) / skip.rms
    labels = {"block": block_span.block.name, "depth": block_span.block.index}
    n_samples = context.first_pass.samples
    yield number("branch_gain", gain, error, n_samples=n_samples, **labels)


class PathsMeasure(Measure):
    """Energy of the output's paths by length, and their effective depth.

    Gates that are not piecewise linear are frozen as secants; rows then have the label
    ``linearised``.
    """

    name: ClassVar = "paths"
    share: ClassVar = 0.05

    def refusal(self, context: SurveyContext) -> str:
        """Refuse a model without residual additions."""
        if not context.block_map.anatomy.additions:
            return context.unmapped or (
                "the network has no residual additions: all paths are of one length"
            )
        return ""

    def least(self, context: SurveyContext) -> float:
        """Return the gradients for few samples."""
        return _cost(context, context.at_most(_LEAST))

    def rows(self, context: SurveyContext, gradients: float) -> Iterator[Found]:
        """Yield the energies of the output's paths and the effective depth."""
        samples = context.at_most(_LEAST)
        while 2 * samples <= min(_MOST, context.samples):
            if _cost(context, 2 * samples) > gradients:
                break
            samples *= 2
        paths = path_ensemble(
            context.model,
            context.first(samples),
            norm_mode=context.norm_mode,
            linearise=not context.block_map.anatomy.piecewise_linear,
            outputs=context.outputs,
        )
        context.passes += paths.cost.passes
        labels = {"n_samples": samples, "linearised": bool(paths.linearised)}
        for length in range(paths.energy.shape[1]):
            value, error = paths.energy[0, length], paths.energy_error[0, length]
            share = float(paths.share[0, length])
            facts = {**labels, "length": length, "energy_share": share}
            yield number("path_energy", value, error, **facts)
        depth, error = paths.effective_depth[0], paths.effective_depth_error[0]
        yield number("effective_depth", depth, error, **labels)
        yield number("n_branches", len(paths.gain), 0.0, **labels)


def _cost(context: SurveyContext, samples: int) -> float:
    """Return about two gradients per branch, in float64."""
    branches = len(context.block_map.anatomy.additions) + 2
    return 2 * branches * context.gradients(samples)
