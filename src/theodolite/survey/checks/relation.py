"""Whether the targets have anything to do with the inputs."""

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from .chance import best_constant
from .check import Sign, check
from .seen import Seen
from .trial_steps import JUDGED

# Samples that are compared, errors above chance that count as a relation, share of the
# loss of a guess that is learned by heart, and updates of the network: our choice.
FEWEST, MOST, CLEAR, BY_HEART = 200, 1024, 3.0, 0.8
LENGTHS = (30, 90, 180)
# Tokens with more different values than this are counted, not placed.
_PLACED = 4096


@check(
    "targets-unrelated",
    "warning",
    "The targets have nothing to do with the inputs",
    source="nearest neighbours, linear fits and the network itself, on samples held "
    "out; the levels are ours",
    repaired_by="Shuffle inputs and targets by the same order",
    confidence="measured",
    about="labels",
)
def targets_unrelated(seen: Seen) -> Sign | None:
    """Similar samples have different targets, no linear fit predicts them, and the
    network memorises half of the samples without any gain on the other half. Usually
    inputs and targets were put into different orders.
    """
    pairs = _pairs(seen)
    if pairs is None:
        return None
    rows, kinds = pairs
    if _excess(rows, kinds) > CLEAR or _linear_excess(rows, kinds) > CLEAR:
        return None
    shifted = {by: _excess(rows, kinds.roll(by, 0)) for by in (-1, 1)}
    best = max(shifted, key=lambda by: shifted[by])
    if shifted[best] > 2 * CLEAR:
        detail = "They fit when they are moved by one sample."
        return Sign(0.0, CLEAR, above=False, detail=detail)
    half = len(seen.batches) // 2
    learner = replace(seen.plain, batches=seen.batches[:half])
    held_out = seen.batches[half : half + JUDGED]
    guess = best_constant(seen.trace.outputs, held_out, seen.loss)
    if not guess:
        return None
    by_heart, gain = math.inf, -math.inf
    for steps in LENGTHS:
        course = learner.run(1.0, steps=steps, judged=held_out)
        if course.error:
            return None
        by_heart = min(by_heart, sum(course.losses[-half:]) / half)
        gain = max(gain, (guess - course.after) / abs(guess))
        if gain > 0.02:
            return None
    if by_heart > guess - (1 - BY_HEART) * abs(guess):
        return None
    detail = f"It lowers the loss to {by_heart:.3g} on one half, and the other gains 0."
    return Sign(gain, 0.02, above=False, detail=detail)


def _pairs(seen: Seen) -> tuple[Tensor, Tensor] | None:
    """Return one row of features per sample, and one target for each."""
    from theodolite.instruments import tensors_in

    from ..measures.context import targets_in

    rows, targets = list[Tensor](), list[Tensor]()
    for batch in seen.batches:
        target = targets_in(batch)
        if not isinstance(target, Tensor) or target.ndim > 2 or target.ndim == 0:
            return None
        given = [t for t in tensors_in(batch) if t is not target]
        if (target.ndim == 2 and target.shape[1] > 1) or not given:
            return None
        if any(len(t) != len(target) or t.shape[1:] != g.shape[1:]
               for t, g in zip(given, seen.inputs, strict=False)):  # fmt: skip
            return None
        if all(t[:1].numel() == 1 and not t.is_floating_point() for t in given):
            return None  # single ids, such as users and items, are not near each other
        rows.append(torch.cat([_features(t) for t in given], 1))
        targets.append(target.reshape(-1).double())
    if len({row.shape[1] for row in rows}) > 1:
        return None
    x, y = torch.cat(rows)[:MOST], torch.cat(targets)[:MOST]
    if len(x) < FEWEST or not bool(x.isfinite().all() & y.isfinite().all()):
        return None
    spread = x.std(0)
    x = ((x - x.mean(0)) / spread.masked_fill(spread == 0, 1.0))[:, spread > 0]
    kinds = y.unique(return_inverse=True)[1]
    if int(kinds.max()) > 50:  # numbers, as quarters of their range
        kinds = torch.bucketize(
            y, y.quantile(torch.tensor([0.25, 0.5, 0.75], device="cpu").double())
        )
    return (x, kinds) if x.shape[1] and int(kinds.max()) else None


def _features(given: Tensor) -> Tensor:
    given = given.detach()
    if given.is_floating_point() or given.ndim > 2:
        return given.reshape(len(given), -1).double()
    tokens = functional.one_hot(
        given.reshape(len(given), -1).long().clamp(0, 999), 1000
    )
    placed = tokens.flatten(1) if tokens[0].numel() <= _PLACED else tokens.sum(1)
    return placed.double()


def _excess(rows: Tensor, kinds: Tensor) -> float:
    """Return how often nearest neighbours agree, in errors above chance."""
    far = torch.cdist(rows, rows).fill_diagonal_(math.inf)
    return _above_chance(kinds[far.argmin(1)], kinds)


def _linear_excess(rows: Tensor, kinds: Tensor) -> float:
    """Return how often a linear fit to even samples is right on odd ones."""
    wanted = functional.one_hot(kinds).double()
    x, y = rows[::2], wanted[::2] - wanted[::2].mean(0)
    kernel = x @ x.T + 0.1 * rows.shape[1] * torch.eye(len(x), device="cpu").double()
    made = rows[1::2] @ x.T @ torch.linalg.solve(kernel, y) + wanted[::2].mean(0)
    return _above_chance(made.argmax(1), kinds[1::2])


def _above_chance(said: Tensor, kinds: Tensor) -> float:
    n, size = len(kinds), int(kinds.max()) + 1
    shares = [torch.bincount(t, minlength=size).double() / n for t in (said, kinds)]
    chance = float((shares[0] * shares[1]).sum())
    hits = float((said == kinds).double().mean())
    return (hits - chance) / math.sqrt(max(chance * (1 - chance), 1e-9) / n)
