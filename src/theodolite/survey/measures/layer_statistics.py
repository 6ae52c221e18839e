"""Gains of branches, dead, equal and saturated units, and modes of norm layers."""

import math
from collections.abc import Iterator

from theodolite.anatomy import BlockSpan, fed_by_inputs, inside_gates, layer_before

from .context import SurveyContext
from .contract import Found, number


def map_rows(context: SurveyContext, gradients: float) -> Iterator[Found]:
    """Whether blocks keep the shape of their input, and the gain of each branch.

    The gain is the root mean square of the branch output over that of its skip; for
    several branches their squares are summed.
    """
    block_map = context.net.block_map
    for each in block_map.anatomy.unplaced:
        if "loss" in each.reason:  # that of a model that computes its own
            continue
        where = each.module or "the model"
        context.net.unsupported.append(
            f"{where}: {each.reason}, so the map leaves it out"
        )
    for block_span in block_map.spans:
        values = block_map.anatomy.recording.values
        labels = {"block": block_span.block.name, "depth": block_span.block.index}
        ends = (values[end].shape for end in (block_span.entry, block_span.output))
        yield number("keeps_shape", float(len(set(ends)) == 1), 0.0, **labels)
        yield from _gain(context, block_span)


def _gain(context: SurveyContext, block_span: BlockSpan) -> Iterator[Found]:
    if block_span.block.addition is None:
        return
    addition = context.net.block_map.anatomy.additions[block_span.block.addition]
    signals = context.net.first_pass.forward
    skip = signals.get(addition.skip.exit) or signals.get(addition.fork)
    branches = [signals.get(branch.exit) for branch in addition.branches]
    if skip is None or any(branch is None for branch in branches):
        context.net.unsupported.append(
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
    n_samples = context.net.first_pass.samples
    yield number("branch_gain", gain, error, n_samples=n_samples, **labels)


def no_units(context: SurveyContext) -> str:
    """Refuse a model without activations."""
    if not context.net.block_map.anatomy.activations:
        return context.net.unmapped or (
            "the network has no activations: there are no units to look at"
        )
    return ""


def unit_rows(context: SurveyContext, gradients: float) -> Iterator[Found]:
    """Shares of dead, equal and saturated units.

    If a unit is zero for all $n$ samples, other samples activate it with a probability
    of at most $3/n$ (rule of three); that is the error of ``dead_share``.
    ``twin_share`` counts live units with the same output as another. The label
    ``layer`` is the layer with weights before the activation; ``gate`` says whether
    its units only scale another signal.
    """
    recording = context.net.block_map.anatomy.recording
    fed = fed_by_inputs(recording)
    gates = inside_gates(context.net.block_map.anatomy, fed)
    seen: dict[str, int] = {}
    for activation in context.net.block_map.anatomy.activations:
        output = recording.calls[activation.call].outputs[0]
        counts = context.net.first_pass.units.get(output)
        if counts is None:
            continue
        name = activation.module or "the model"
        seen[name] = seen.get(name, 0) + 1
        labels = {
            "module": name if seen[name] == 1 else f"{name}#{seen[name]}",
            "kind": activation.kind,
            "n_units": counts.units,
            "layer": layer_before(recording, recording.calls[activation.call], fed),
            "gate": output in gates,
            "n_samples": context.net.first_pass.samples,
        }
        share = counts.dead / max(counts.units, 1)
        doubt = 3 / context.net.first_pass.samples if counts.dead else 0.0
        yield number("dead_share", share, min(share * doubt, share), **labels)
        twins = counts.twins / max(counts.units, 1)
        yield number("twin_share", twins, 0.0, **labels)
        if not math.isnan(counts.saturated):
            # As if all entries of a sample agree: the largest standard error.
            share = counts.saturated
            error = math.sqrt(share * (1 - share) / context.net.first_pass.samples)
            yield number("saturated_share", share, error, **labels)


def no_norms(context: SurveyContext) -> str:
    """Refuse a model without norm layers."""
    if not context.net.first_pass.norms:
        return "the network has no norm layers of torch: there is nothing to compare"
    return ""


def norm_rows(context: SurveyContext, gradients: float) -> Iterator[Found]:
    """Modes of every norm layer, and the numbers behind one of its statistics."""
    modules = dict(context.net.model.named_modules())
    for name, given in context.net.first_pass.norms.items():
        module = modules[name]
        labels = {"module": name, "kind": type(module).__name__}
        yield number("batch_per_channel", given.numbers, 0.0, **labels)
        training = context.net.modes.get(name, module.training)
        yield number("in_train_mode", float(training), 0.0, **labels)
        own = list(module.parameters(recurse=False))
        frozen = bool(own) and not any(p.requires_grad for p in own)
        still = float(training and frozen)
        yield number("frozen_in_train_mode", still, 0.0, **labels)
