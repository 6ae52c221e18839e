"""Split and join batches of any kind, and choose samples of them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from theodolite.core import MeasurementError

from ..model.objective import Batch, map_tensors, samples_in, slice_batch, tensors_in

Batches = Any


def split_batch(batch: Batch, size: int) -> list[Batch]:
    """Split a batch along its samples into pieces of at most ``size``."""
    check_micro_batch(size)
    total = samples_in(batch)
    if total is None:
        raise MeasurementError(
            f"a batch of type {type(batch).__name__} cannot be cut, since its tensors "
            "share no first axis: leave micro_batch out, or pass tensors, tuples or "
            "dicts of tensors"
        )
    return [
        slice_batch(batch, start, min(start + size, total))
        for start in range(0, total, size)
    ]


def check_micro_batch(size: int) -> None:
    """Refuse a value that is not a number of samples."""
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise MeasurementError(
            f"micro_batch is {size!r}: pass a whole number of samples from 1 up"
        )


def select_samples(batch: Batch, rows: Sequence[int]) -> Batch:
    """Return copies of the samples at some indices."""
    return map_tensors(batch, lambda t: t[list(rows)] if t.ndim else t)


def as_float64(batch: Batch) -> Batch:
    """Return the batch with its real numbers in float64."""
    return map_tensors(batch, lambda t: t.double() if t.is_floating_point() else t)


def join_batches(batches: Sequence[Batch]) -> Batch | None:
    """Return all samples as one batch, or None if they do not fit together.

    Example:
        >>> pair = torch.zeros(2, 3), torch.ones(2)
        >>> samples_in(join_batches([pair, pair]))
        4
    """
    if len(batches) == 1:
        return batches[0]
    if any(samples_in(batch) is None for batch in batches):
        return None
    columns = list(zip(*map(tensors_in, batches), strict=False))
    if any(len(tensors_in(batch)) != len(columns) for batch in batches):
        return None
    if any(len({(t.shape[1:], t.dtype, t.ndim) for t in c}) > 1 for c in columns):
        return None
    if any(not column[0].ndim for column in columns):
        return None
    joined = iter([torch.cat(column) for column in columns])
    return map_tensors(batches[0], lambda _: next(joined))


def refuse_two_alike(batches: Batches) -> None:
    """Refuse a list that may be a pair or two batches of inputs.

    Loaders make lists of pairs, so a list of two tensors is one, whose second part
    plays no role in outputs.
    """
    if are_two_alike(batches):
        raise MeasurementError(
            f"a list of two tensors came, of shapes {tuple(batches[0].shape)} and "
            f"{tuple(batches[1].shape)}, which may be inputs and targets or two "
            "batches of inputs: pass a tuple (inputs, targets), or all inputs as one "
            "tensor or a DataLoader"
        )


def are_two_alike(batches: Batches) -> bool:
    """Return whether a list holds two sample tensors of one shape and type."""
    if not (isinstance(batches, list) and len(batches) == 2):
        return False
    if not all(isinstance(part, Tensor) for part in batches):
        return False
    kinds = {(part.dtype, part.ndim, part.shape[1:]) for part in batches}
    return len(kinds) == 1
