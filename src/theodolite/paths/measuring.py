"""The path ensemble of a real network."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import (
    MeasurementError,
    NormMode,
    Status,
    Stopwatch,
    unknown_name,
)
from theodolite.instruments import Batch, Loss, Outputs, samples_in, slice_batch
from theodolite.paths.chunks import check_budget, chunk_size
from theodolite.paths.energies import Energies, energies_of
from theodolite.paths.frozen_model import Subject, cotangent_of, subject_of
from theodolite.paths.law import Fit, fit, scale_from_gains
from theodolite.paths.marks import (
    Branch,
    Counted,
    Found,
    find_branches,
    fork_of,
    marks_of,
)
from theodolite.paths.propagate import Marks, adjoints, coefficients, path_counts
from theodolite.paths.reading import PathEnsemble
from theodolite.paths.tape import Tape

By = Literal["block", "input"]

# How far coefficients may be from the whole, relative to it, to count as exact.
_EXACT = 1e-10
# And beyond the rounding of a sum, as a multiple of its last digit, by choice.
_ROUNDING = 1e4


def path_ensemble(
    model: nn.Module,
    batch: Batch,
    *,
    norm_mode: NormMode | str,
    loss: Loss | None = None,
    counted: Counted = "branches",
    by: By = "block",
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
        ...     def forward(self, x):
        ...         return x + 0.5 * torch.relu(x)
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
    plan = _Plan(counted=counted, by=by, linearise=linearise, graph_bytes=graph_bytes)
    found = _measured(subject, whole, cotangent, plan)
    return _reading(found, subject, plan, watch)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    counted: Counted
    by: By
    linearise: bool
    graph_bytes: int | None


@dataclass(kw_only=True)
class _Sums:
    """Of one part: what samples contribute, and how far sums are from the whole."""

    squares: list[np.ndarray] = field(default_factory=list)
    products: list[np.ndarray] = field(default_factory=list)
    off: float = 0.0
    size: float = 0.0
    largest: float = 0.0

    def add(self, stack: Tensor, whole: Tensor) -> None:
        """Add the coefficients of some samples, and what they should sum to."""
        flat = stack.flatten(2) if stack.ndim > 2 else stack[..., None]
        total = flat.sum(0)
        self.squares.append(flat.square().mean(2).T.cpu().double().numpy())
        self.products.append((flat * total).mean(2).T.cpu().double().numpy())
        self.off += float((total.reshape(whole.shape) - whole).square().sum())
        self.size += float(whole.square().sum())
        self.largest += float(flat.square().sum())

    def energies(self) -> Energies:
        return energies_of(np.concatenate(self.squares), np.concatenate(self.products))

    @property
    def residual(self) -> float:
        return math.sqrt(self.off / self.size) if self.size else math.sqrt(self.off)

    @property
    def cancelled(self) -> float:
        """How much larger the coefficients are than their sum."""
        return math.sqrt(self.largest / self.size) if self.size else 1.0


@dataclass(kw_only=True)
class _Measured:
    """All that the chunks gave."""

    parts: list[_Sums]
    gains: dict[tuple[int, int], list[float]]
    counts: list[int] = field(default_factory=list)
    branches: tuple[Branch, ...] = ()
    linearised: tuple[str, ...] = ()
    gradients: list[list[Tensor]] = field(default_factory=list)
    gap: np.ndarray = field(default_factory=lambda: np.zeros(0))
    chunks: int = 0
    samples: int = 0
    eps: float = 0.0


def _measured(
    subject: Subject, whole: Tensor, cotangent: Tensor | None, plan: _Plan
) -> _Measured:
    parts = 1 if cotangent is None else 2
    found = _Measured(
        parts=[_Sums() for _ in range(parts)],
        gains={},
        eps=torch.finfo(whole.dtype).eps,
    )
    count = samples_in(subject.batch) or 1
    separate = whole.ndim > 0 and len(whole) == count
    found.samples = count if separate else 1
    with subject.frozen() as apart:
        first = (
            slice_batch(subject.batch, 0, 1) if separate and apart else subject.batch
        )
        branches = find_branches(subject.model, first, subject.outputs)
        size = count
        if separate and apart:
            tape = subject.trace(first, linearise=plan.linearise)
            marks = marks_of(tape, branches.on(tape), plan.counted)
            size = chunk_size(tape, marks, samples=count, graph_bytes=plan.graph_bytes)
        for start in range(0, count, size):
            stop = min(start + size, count) if separate else count
            chunk = (
                slice_batch(subject.batch, start, stop) if separate else subject.batch
            )
            span = slice(start, stop) if separate else slice(None)
            part = None if cotangent is None else cotangent[span]
            _take(
                found,
                subject,
                chunk,
                whole[span] if separate else whole,
                part,
                branches,
                plan,
            )
    if cotangent is not None:
        found.gap = _gap(subject, cotangent, found.gradients)
    return found


def _take(
    found: _Measured,
    subject: Subject,
    chunk: Batch,
    whole: Tensor,
    cotangent: Tensor | None,
    branches: Found,
    plan: _Plan,
) -> None:
    """Add the paths of some samples."""
    tape = subject.trace(chunk, linearise=plan.linearise)
    found.branches = branches.on(tape)
    marks = marks_of(tape, found.branches, plan.counted)
    found.counts = path_counts(tape, marks)
    found.linearised = tape.linearised
    found.chunks += 1
    _note_gains(found, tape)
    with torch.no_grad():
        stack = coefficients(tape, marks)
        if found.samples == 1 and len(whole.shape) == 0:
            stack, whole = stack[:, None], whole[None]
        elif found.samples == 1 and len(whole) != 1:
            stack, whole = stack[:, None], whole[None]
        found.parts[0].add(stack, whole)
        if cotangent is not None:
            _take_gradient(found, tape, marks, cotangent, plan)


def _take_gradient(
    found: _Measured, tape: Tape, marks: Marks, cotangent: Tensor, plan: _Plan
) -> None:
    fork = fork_of(tape, found.branches)
    if plan.by == "input":
        if not tape.inputs:
            raise MeasurementError(
                "the model's inputs are no real numbers, so no gradient is taken by "
                "them: pass by='block'"
            )
        fork = tape.inputs[0]
    resolved = adjoints(tape, marks, cotangent, (fork,))
    frozen = adjoints(tape, {}, cotangent, (fork, *tape.inputs))
    stack, whole = resolved[fork], frozen[fork][0]
    if found.samples == 1 and len(whole) != 1:
        stack, whole = stack[:, None], whole[None]
    found.parts[1].add(stack, whole)
    found.gradients.append([frozen[n][0] for n in tape.inputs if n in frozen])


def _note_gains(found: _Measured, tape: Tape) -> None:
    """Add squared norms of branches, and of the skips they are added to."""
    steps = {step.call: step for step in tape.steps}
    for branch in found.branches:
        step = steps[branch.call]
        if len(step.squares) != 2:
            continue
        mine = step.positions.index(branch.position)
        held = found.gains.setdefault((branch.call, branch.position), [0.0, 0.0])
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


def _reading(
    found: _Measured, subject: Subject, plan: _Plan, watch: Stopwatch
) -> PathEnsemble:
    energies = [part.energies() for part in found.parts]
    status = _status(found, energies)
    logs = np.array([math.log(n) if n else -math.inf for n in found.counts])
    length = max(len(logs), *(len(e.energy) for e in energies))
    logs = np.pad(logs, (0, length - len(logs)), constant_values=-math.inf)
    fits = [fit(_padded(e.share, length), logs) for e in energies]
    gains = [math.sqrt(a / b) if b else math.inf for a, b in found.gains.values()]
    words = ["float64 twin" if subject.twin else "direct"]
    words += [f"linearised {', '.join(found.linearised)}"] if found.linearised else []

    def table(name: str) -> np.ndarray:
        return np.stack([_padded(getattr(e, name), length) for e in energies])

    def column(name: str) -> np.ndarray:
        return np.array([getattr(e, name) for e in energies])

    return PathEnsemble(
        energy=table("energy"),
        energy_error=table("energy_error"),
        share=table("share"),
        share_error=table("share_error"),
        alignment=table("alignment"),
        alignment_error=table("alignment_error"),
        law=np.stack([f.shares for f in fits]),
        effective_depth=column("depth"),
        effective_depth_error=column("depth_error"),
        spread=column("spread"),
        spread_error=column("spread_error"),
        beta=np.array([f.beta for f in fits]),
        beta_error=np.array(
            [_beta_error(f, e) for f, e in zip(fits, energies, strict=True)]
        ),
        divergence=np.array([f.divergence for f in fits]),
        distance=np.array([f.distance for f in fits]),
        residual=np.array([part.residual for part in found.parts]),
        gradient_gap=found.gap,
        gain=np.array(gains),
        predicted_beta=scale_from_gains(gains),
        log_counts=logs,
        places=tuple(branch.module for branch in found.branches),
        counted=plan.counted,
        by=plan.by,
        linearised=found.linearised,
        samples=found.samples,
        status=status,
        norm_mode=subject.norm_mode,
        cost=watch.read(passes=found.chunks * (len(found.parts) - 1)),
        method="; ".join(words),
    )


def _status(found: _Measured, energies: Sequence[Energies]) -> Status:
    finite = all(np.isfinite(e.energy).all() and e.energy.sum() > 0 for e in energies)
    if not finite:
        return Status.NONFINITE
    worst = Status.EXACT
    for part in found.parts:
        if part.residual <= max(_EXACT, _ROUNDING * found.eps):
            continue
        if part.residual > _ROUNDING * found.eps * part.cancelled:
            raise MeasurementError(
                f"the paths add up to the output within {part.residual:.2g} of it only, "
                "so samples act on one another or passes differ: use norm_mode='eval', "
                "and a model that draws nothing at random"
            )
        worst = Status.ROUNDING
    return worst


def _beta_error(fit: Fit, energies: Energies) -> float:
    r"""Return the error of $\beta$ from that of the mean, $d\mu / d\log\beta = 2\sigma^2$."""
    degrees = np.arange(len(fit.shares))
    variance = float(fit.shares @ (degrees - fit.shares @ degrees) ** 2)
    if not variance or not math.isfinite(fit.beta):
        return math.inf
    return fit.beta * energies.depth_error / (2 * variance)


def _padded(values: np.ndarray, length: int) -> np.ndarray:
    return np.pad(values, (0, length - len(values)))
