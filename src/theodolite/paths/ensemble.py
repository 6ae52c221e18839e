"""Measure the path ensemble of a network, chunk by chunk."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import (
    MeasurementError,
    NormMode,
    Stopwatch,
    as_integer,
    free_memory,
)
from theodolite.instruments import (
    Batch,
    Loss,
    Outputs,
    measuring,
    samples_in,
    show_progress,
    slice_batch,
)
from theodolite.instruments import counted as tell_count

from .assembly import By, ChunkSums, EnergySums, EnsembleSettings, reading_of
from .branches import Counted, ModelBranches, find_branches, fork_of, marks_of
from .frozen_model import Subject, cotangent_of, subject_of
from .propagate import Marks, adjoints, coefficients, degrees, path_counts
from .reading import PathEnsemble
from .tape import Tape

# Stacks in addition to those that are counted: temporary tensors of a step, such as
# the unfolded input of a convolution. Measured on networks of 3 by 3 convolutions.
_ASIDE = 8
# More at once was no faster on a CPU.
_ENOUGH = 2 * 2**30


def chunk_size(
    tape: Tape, marks: Marks, *, samples: int, graph_bytes: int | None
) -> int:
    """Return how many samples to take at once, given the tape of one sample."""
    wanted = peak_bytes(tape, marks)
    device = tape.value.device
    cuda = device.type == "cuda"
    free = int(torch.cuda.mem_get_info(device)[0]) if cuda else free_memory()
    enough = _ENOUGH if device.type == "cpu" else free
    allowed = min(free // 2, enough) if graph_bytes is None else graph_bytes
    if wanted > allowed and (graph_bytes is not None or wanted > free):
        raise MeasurementError(
            f"the polynomials of one sample take about {wanted:,} bytes, allowed are "
            f"{allowed:,}: raise graph_bytes, or measure smaller inputs"
        )
    return max(1, min(samples, allowed // max(wanted, 1)))


def peak_bytes(tape: Tape, marks: Marks) -> int:
    """Return the estimated peak memory of the stacks of a tape."""
    count = degrees(tape, marks)
    last = tape.last_uses()
    size = {n: v.numel() * v.element_size() for n, v in tape.sources.items()}
    held, peak = sum(size.values()), 0
    for place, step in enumerate(tape.steps):
        bytes_each = torch.Size(step.shape).numel() * tape.value.element_size()
        size[step.output] = bytes_each * (count[step.output] + 1)
        held += size[step.output]
        peak = max(peak, held + _ASIDE * size[step.output])
        held -= sum(size[n] for n in set(step.inputs) if last[n] == place)
    return peak


@measuring()
def path_ensemble(
    model: nn.Module,
    batch: Batch,
    *,
    norm_mode: NormMode | str,
    loss: Loss | None = None,
    counted: Counted = "branches",
    by: By = "block",
    biases: bool = True,
    linearise: bool = False,
    promote: bool = True,
    graph_bytes: int | None = None,
    outputs: Outputs | None = None,
) -> PathEnsemble:
    r"""Return the contribution of paths, by how many branches they take.

    Multiply every branch of every residual addition by $t$ and hold all gates, choices
    of max-pools and statistics of norms at their values in the true pass: the output
    is then a polynomial in $t$, and its coefficient of $t^r$ is the sum over all paths
    that take $r$ branches. Coefficients are carried through the network directly, at
    the price of half as many forward passes as there are branches, and are exact to
    rounding; so are those of the loss's gradient, in the other direction. A bias begins
    a new path, which counts the branches after it.

    Args:
        model: Any module with residual additions; not changed.
        batch: A tensor, a pair (inputs, targets) or a mapping of keywords.
        norm_mode: Statistics that norms use; held constant in all modes.
        loss: A module of outputs and targets, or ``loss(model, batch)`` that reads only
            the model's output; the gradient is then also split by paths.
        counted: Whether lengths count branches or layers of weights.
        by: Differentiate by the input of the first residual block, or of the model.
        biases: Whether to include paths that start at biases and the shifts of norms;
            otherwise only paths from the inputs are returned, and add up to the frozen
            network's response to the inputs.
        linearise: Freeze smooth activations as secants, and weights of attention and
            gates at their values, instead of refusing them.
        promote: Measure a model of lower precision by a copy in float64.
        graph_bytes: Approximate memory for coefficients; samples are cut into chunks
            that fit.
        outputs: ``outputs(model, batch)`` runs the model, where a call on the inputs
            does not return one tensor.

    Returns:
        The reading; ``status`` is EXACT where coefficients add up to the whole within
        $10^{-10}$ of it, ROUNDING where so much cancels that they do not.

    Raises:
        MeasurementError: No residual addition, or what is not piecewise linear.

    Example:
        >>> from theodolite.core import ShortcutBlueprint
        >>> from theodolite.networks import build, set_weights
        >>> net = build(ShortcutBlueprint(width=2, depth=2, shortcut=1), seed=0)
        >>> set_weights(net, 0.5 * np.stack([np.eye(2), np.eye(2)]))
        >>> x = torch.ones(3, 2, dtype=torch.float64)
        >>> path_ensemble(net, x, norm_mode="eval").energy.tolist()
        [[1.0, 1.0, 0.0625]]
    """
    watch = Stopwatch()
    if graph_bytes is not None:
        as_integer("graph_bytes", graph_bytes, 1)
    subject = subject_of(
        model, batch, outputs=outputs, norm_mode=norm_mode, promote=promote
    )
    whole = subject.true_output()
    cotangent = None if loss is None else cotangent_of(loss, whole, subject.batch)
    plan = EnsembleSettings(
        counted=counted,
        by=by,
        biases=biases,
        linearise=linearise,
        graph_bytes=graph_bytes,
    )
    count = samples_in(subject.batch) or 1
    with show_progress("path_ensemble", unit="samples", total=count):
        collected = _measured(subject, whole, cotangent, plan)
    return reading_of(collected, subject, plan, watch=watch)


def _measured(
    subject: Subject, whole: Tensor, cotangent: Tensor | None, plan: EnsembleSettings
) -> ChunkSums:
    parts = 1 if cotangent is None else 2
    collected = ChunkSums(
        parts=[EnergySums() for _ in range(parts)],
        gains={},
        eps=torch.finfo(whole.dtype).eps,
    )
    count = samples_in(subject.batch) or 1
    separate = whole.ndim > 0 and len(whole) == count
    collected.samples = count if separate else 1
    with subject.frozen() as apart:
        size = _size(subject, count, plan) if separate and apart else count
        known: dict[int, ModelBranches] = {}
        for start in range(0, count, size):
            span = slice(start, min(start + size, count))
            chunk = subject.batch
            if size < count:
                chunk = slice_batch(subject.batch, span.start, span.stop)
            length = span.stop - span.start
            if length not in known:  # calls may depend on the number of samples
                known[length] = find_branches(subject.model, chunk, subject.outputs)
            values = [whole] if cotangent is None else [whole, cotangent]
            values = [value[span] if separate else value[None] for value in values]
            _take(collected, subject, chunk, known[length], values, plan)
            tell_count(length, unit="samples")
    if cotangent is not None:
        collected.gap = _gap(subject, cotangent, collected.gradients)
    return collected


def _size(subject: Subject, count: int, plan: EnsembleSettings) -> int:
    """Return how many samples go through at once."""
    first = slice_batch(subject.batch, 0, 1)
    tape, branches = subject.trace_branches(first, linearise=plan.linearise)
    marks = marks_of(tape, branches, plan.counted)
    return chunk_size(tape, marks, samples=count, graph_bytes=plan.graph_bytes)


def _take(
    collected: ChunkSums,
    subject: Subject,
    chunk: Batch,
    branches: ModelBranches,
    values: Sequence[Tensor],
    plan: EnsembleSettings,
) -> None:
    """Add the paths of some samples to ``collected``.

    ``values`` are the output and perhaps its cotangent, samples on the first axis.
    """
    tape = subject.trace(chunk, linearise=plan.linearise)
    collected.branches = branches.on(tape)
    marks = marks_of(tape, collected.branches, plan.counted)
    collected.counts = path_counts(tape, marks)
    collected.linearised = tape.linearised
    collected.chunks, collected.eps = collected.chunks + 1, max(collected.eps, tape.eps)
    _note_gains(collected, tape)
    whole, *rest = values
    with torch.no_grad():
        stack = coefficients(tape, marks, biases=plan.biases)
        if not plan.biases:
            # Without the output of the frozen network for zero inputs.
            blank = {n: torch.zeros_like(value) for n, value in tape.sources.items()}
            constant = coefficients(replace(tape, sources=blank), {})[0]
            whole = whole - constant.reshape(whole.shape)
        collected.parts[0].add(stack.reshape(len(stack), *whole.shape), whole)
        for cotangent in rest:
            cotangent = cotangent.reshape(tape.value.shape)
            _take_gradient(collected, tape, marks, cotangent, plan)


def _take_gradient(
    collected: ChunkSums,
    tape: Tape,
    marks: Marks,
    cotangent: Tensor,
    plan: EnsembleSettings,
) -> None:
    place = fork_of(tape, collected.branches)
    if plan.by == "input":
        if not tape.inputs:
            raise MeasurementError(
                "the model's inputs are no real numbers, so no gradient is taken by "
                "them: pass by='block'"
            )
        place = tape.inputs[0]
    resolved = adjoints(tape, marks, cotangent, (place,))[place]
    frozen = adjoints(tape, {}, cotangent, (place, *tape.inputs))
    collected.parts[1].add(resolved, frozen[place][0])
    collected.gradients.append([frozen[n][0] for n in tape.inputs if n in frozen])


def _note_gains(collected: ChunkSums, tape: Tape) -> None:
    """Add squared norms of branches, and of the skips they are added to."""
    steps = {step.call: step for step in tape.steps}
    for number, branch in enumerate(collected.branches):
        step = steps[branch.call]
        if len(step.squares) != 2:
            continue
        mine = step.positions.index(branch.position)
        held = collected.gains.setdefault(number, [0.0, 0.0])
        held[0] += step.squares[mine]
        held[1] += step.squares[1 - mine]


def _gap(
    subject: Subject, cotangent: Tensor, gradients: Sequence[list[Tensor]]
) -> np.ndarray:
    """Compare the frozen gradient by the inputs with the true one."""
    if not gradients or not gradients[0]:
        return np.zeros(0)
    true = subject.true_gradient(cotangent)
    if true is None or len(true) != len(gradients[0]):
        return np.zeros(0)
    off = size = 0.0
    for place, expected in enumerate(true):
        given = torch.cat([part[place] for part in gradients])
        off += float((given - expected).square().sum())
        size += float(expected.square().sum())
    return np.array([math.sqrt(off / size) if size else math.sqrt(off)])
