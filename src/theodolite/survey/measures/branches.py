"""The parts of a network, and how its branches compare with their skips."""

import math
from collections.abc import Iterator
from typing import ClassVar

from .block_map import BlockSpan
from .context import SurveyContext
from .contract import Found, Measure, number


class MapMeasure(Measure):
    """Whether blocks keep the shape of their input, and the gain of each branch.

    The gain is the root mean square of the branch output over that of its skip; for
    several branches their squares are summed.
    """

    name: ClassVar = "map"

    def rows(self, context: SurveyContext, gradients: float) -> Iterator[Found]:
        """Yield both by depth."""
        block_map = context.block_map
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
