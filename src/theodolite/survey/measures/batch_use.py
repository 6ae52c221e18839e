"""What a loss makes of its batch: whether it can be cut, and what the model gets."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from theodolite.instruments import (
    Batch,
    Draws,
    Problem,
    evaluate,
    opened,
    reseed,
    samples_in,
    slice_batch,
)


def can_be_cut(problem: Problem, batch: Batch) -> bool:
    """Return whether model and loss run on the halves of a batch.

    A graph does not run on a part of its nodes.
    """
    count = samples_in(batch)
    if count is None or count < 4:
        return count is not None
    if not math.isfinite(_value(problem, batch)):  # measures say why
        return True
    half = count // 2
    cuts = (slice_batch(batch, *cut) for cut in ((0, half), (half, 2 * half)))
    return all(math.isfinite(_value(problem, part)) for part in cuts)


def _value(problem: Problem, batch: Batch) -> float:
    """Return the loss in eval mode, in which norms compare no samples; NaN if none."""
    with _tried(problem):
        problem.model.eval()
        reseed(problem.seed)
        try:
            return float(evaluate(problem.model, batch, problem.criterion).detach())
        except Exception:  # of foreign code
            return math.nan


@contextmanager
def _tried(problem: Problem) -> Iterator[None]:
    """Undo what a pass changes in the model and in the loss."""
    whole = nn.Module()
    whole.model, vars(whole)["loss"] = problem.model, problem.criterion
    with opened(whole, careful=False) as before, torch.enable_grad():
        before.lend_buffers()  # so that graphs of the user stay valid
        yield


def draws_itself(problem: Problem, batch: Batch) -> bool:
    """Return whether the model or the loss draws random numbers in its present mode.

    A variational autoencoder does in eval mode, and so does a loss that adds noise.
    """
    with _tried(problem):
        draws = Draws()
        try:
            evaluate(problem.model, batch, problem.criterion)
        except Exception:  # what fails here fails in every measure, which says so
            pass
        return draws.happened()


def as_called(problem: Problem, batch: Batch) -> Batch | None:
    """Return what the loss passes to the model, as a batch; None if that has no form.

    A loss of model and batch may pass a part of the batch, or what it made of it.
    """
    calls: list[tuple[Any, Any]] = []

    def note(_: Any, args: Any, kwargs: Any) -> None:
        calls.append((args, kwargs))

    with problem.model.register_forward_pre_hook(note, with_kwargs=True):
        _value(problem, batch)
    if not calls or bool(calls[0][0]) == bool(calls[0][1]):
        return None
    args, kwargs = calls[0]
    inputs = kwargs or (args if len(args) > 1 else args[0])
    return tree_map_only(Tensor, Tensor.detach, inputs), None
