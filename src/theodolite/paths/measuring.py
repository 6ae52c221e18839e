"""The path ensemble of a real network."""

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
    unknown_name,
)
from theodolite.instruments import (
    Batch,
    Loss,
    Outputs,
    announced,
    samples_in,
    slice_batch,
)
from theodolite.instruments import counted as tell_count
from theodolite.paths.assembly import reading_of
from theodolite.paths.chunks import check_budget, chunk_size
from theodolite.paths.collected import By, Collected, Plan, Sums
from theodolite.paths.frozen_model import Subject, cotangent_of, subject_of
from theodolite.paths.marks import (
    Counted,
    Found,
    find_branches,
    fork_of,
    marks_of,
)
from theodolite.paths.propagate import Marks, adjoints, coefficients, path_counts
from theodolite.paths.reading import PathEnsemble
from theodolite.paths.tape import Tape


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
    r"""Measure what paths contribute, by how many branches they take.

    Multiply every branch of every residual addition by $t$ and hold all gates, choices
    of max-pools and statistics of norms at the forward pass that really was: the output
    is then a polynomial in $t$, and its coefficient of $t^r$ is the sum over all paths
    that take $r$ branches. Coefficients are carried through the network directly, at
    the price of half as many forward passes as there are branches, and are exact to
    rounding; so are those of the loss's gradient, in the other direction. A bias begins
    a path of its own, which counts the branches behind it.

    Args:
        model: Any module with residual additions; left as found.
        batch: A tensor, a pair (inputs, targets) or a mapping of keywords.
        norm_mode: Statistics that norms use; held constant in all modes.
        loss: A module of outputs and targets, or ``loss(model, batch)`` that looks at
            the model's output alone; its gradient is resolved too.
        counted: Whether lengths count branches or layers of weights.
        by: Take the gradient by the input of the first residual block, or of the model.
        biases: Whether the output's paths include those that biases and the shifts of
            norms begin; otherwise those of the inputs alone are told, and add up to
            what the frozen network makes of the inputs.
        linearise: Freeze smooth activations as secants, and weights of attention and
            gates at their values, instead of refusing them.
        promote: Measure a model of lower precision by a copy in float64.
        graph_bytes: Memory that coefficients may take, about; samples are cut into
            chunks that fit.
        outputs: ``outputs(model, batch)`` runs the model, where a call on the inputs
            does not return one tensor.

    Returns:
        The reading; ``status`` is EXACT where coefficients add up to the whole within
        $10^{-10}$ of it, ROUNDING where so much cancels that they do not.

    Raises:
        MeasurementError: No residual addition, or what is not piecewise linear.

    Example:
        >>> class Block(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = nn.Linear(2, 2, bias=False).double()
        ...         nn.init.eye_(self.layer.weight).data.mul_(0.5)
        ...
        ...     def forward(self, x):
        ...         return x + torch.relu(self.layer(x))
        >>> net = nn.Sequential(Block(), Block())
        >>> x = torch.ones(3, 2, dtype=torch.float64)
        >>> path_ensemble(net, x, norm_mode="eval").energy.tolist()
        [[1.0, 1.0, 0.0625]]
    """
    watch = Stopwatch()
    check_budget(graph_bytes)
    if by not in ("block", "input"):
        raise unknown_name("place of the gradient", by, ("block", "input"))
    subject = subject_of(
        model, batch, outputs=outputs, norm_mode=norm_mode, promote=promote
    )
    whole = subject.true_output()
    cotangent = None if loss is None else cotangent_of(loss, whole, subject.batch)
    plan = Plan(
        counted=counted,
        by=by,
        biases=biases,
        linearise=linearise,
        graph_bytes=graph_bytes,
    )
    count = samples_in(subject.batch) or 1
    with announced("path_ensemble", unit="samples", total=count):
        found = _measured(subject, whole, cotangent, plan)
    return reading_of(found, subject, plan, watch=watch)


def _measured(
    subject: Subject, whole: Tensor, cotangent: Tensor | None, plan: Plan
) -> Collected:
    parts = 1 if cotangent is None else 2
    found = Collected(
        parts=[Sums() for _ in range(parts)],
        gains={},
        eps=torch.finfo(whole.dtype).eps,
    )
    count = samples_in(subject.batch) or 1
    separate = whole.ndim > 0 and len(whole) == count
    found.samples = count if separate else 1
    with subject.frozen() as apart:
        size = _size(subject, count, plan) if separate and apart else count
        known: dict[int, Found] = {}
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
            _take(found, subject, chunk, known[length], values, plan)
            tell_count(length, unit="samples")
    if cotangent is not None:
        found.gap = _gap(subject, cotangent, found.gradients)
    return found


def _size(subject: Subject, count: int, plan: Plan) -> int:
    """Return how many samples go through at once."""
    first = slice_batch(subject.batch, 0, 1)
    branches = find_branches(subject.model, first, subject.outputs)
    tape = subject.trace(first, linearise=plan.linearise)
    marks = marks_of(tape, branches.on(tape), plan.counted)
    return chunk_size(tape, marks, samples=count, graph_bytes=plan.graph_bytes)


def _take(
    found: Collected,
    subject: Subject,
    chunk: Batch,
    branches: Found,
    values: Sequence[Tensor],
    plan: Plan,
) -> None:
    """Add the paths of some samples.

    Args:
        found: What to add to.
        subject: What is measured.
        chunk: The samples.
        branches: Of a pass of as many samples.
        values: Output and perhaps its cotangent, samples on the first axis.
        plan: What is asked for.
    """
    tape = subject.trace(chunk, linearise=plan.linearise)
    found.branches = branches.on(tape)
    marks = marks_of(tape, found.branches, plan.counted)
    found.counts = path_counts(tape, marks)
    found.linearised = tape.linearised
    found.chunks, found.eps = found.chunks + 1, max(found.eps, tape.eps)
    _note_gains(found, tape)
    whole, *rest = values
    with torch.no_grad():
        stack = coefficients(tape, marks, biases=plan.biases)
        if not plan.biases:
            whole = whole - _of_biases(tape).reshape(whole.shape)
        found.parts[0].add(stack.reshape(len(stack), *whole.shape), whole)
        for cotangent in rest:
            cotangent = cotangent.reshape(tape.value.shape)
            _take_gradient(found, tape, marks, cotangent, plan)


def _of_biases(tape: Tape) -> Tensor:
    """Return what the frozen network makes of inputs that are zero."""
    blank = {number: torch.zeros_like(v) for number, v in tape.sources.items()}
    return coefficients(replace(tape, sources=blank), {})[0]


def _take_gradient(
    found: Collected, tape: Tape, marks: Marks, cotangent: Tensor, plan: Plan
) -> None:
    place = fork_of(tape, found.branches)
    if plan.by == "input":
        if not tape.inputs:
            raise MeasurementError(
                "the model's inputs are no real numbers, so no gradient is taken by "
                "them: pass by='block'"
            )
        place = tape.inputs[0]
    resolved = adjoints(tape, marks, cotangent, (place,))[place]
    frozen = adjoints(tape, {}, cotangent, (place, *tape.inputs))
    found.parts[1].add(resolved, frozen[place][0])
    found.gradients.append([frozen[n][0] for n in tape.inputs if n in frozen])


def _note_gains(found: Collected, tape: Tape) -> None:
    """Add squared norms of branches, and of the skips they are added to."""
    steps = {step.call: step for step in tape.steps}
    for number, branch in enumerate(found.branches):
        step = steps[branch.call]
        if len(step.squares) != 2:
            continue
        mine = step.positions.index(branch.position)
        held = found.gains.setdefault(number, [0.0, 0.0])
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
