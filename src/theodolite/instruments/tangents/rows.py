"""Rows of the Jacobian by parameters, as backward passes give them."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from theodolite.instruments.differentiate.pullback import can_batch, pull_back_many
from theodolite.instruments.model.objective import Batch
from theodolite.instruments.passes.announcing import counted
from theodolite.instruments.tangents.gram import Gram

# Rows pulled back at a time.
_CHUNK = 32


def add_rows(
    pieces: Sequence[Batch],
    run: Callable[[Batch], Tensor],
    parameters: Sequence[nn.Parameter],
    gram: Gram,
    *,
    rows: int,
    columns: int,
) -> int:
    """Add the Gram matrix of all rows by some parameters.

    Pieces are batches, or single samples where those do not act on one another. A
    block of columns is taken at a time; every time the pieces run again.

    Args:
        pieces: The data of this process.
        run: Runs the model on a piece.
        parameters: By which to differentiate.
        gram: What grows.
        rows: Outputs of all pieces.
        columns: As many at a time, the same for all who share in the matrix.

    Returns:
        Backward passes spent.
    """
    passes = 0
    total = sum(parameter.numel() for parameter in parameters)
    for first in range(0, total, columns):
        span = slice(first, min(first + columns, total))
        group, shift = _within(parameters, span)
        for parameter in parameters:
            parameter.requires_grad_(any(parameter is mine for mine in group))
        block = group[0].new_empty(rows, span.stop - span.start)
        passes += _fill(block, pieces, run, group, span.start - shift)
        gram.add(block.detach())
    for parameter in parameters:
        parameter.requires_grad_(False)
    return passes


def _fill(
    block: Tensor,
    pieces: Sequence[Batch],
    run: Callable[[Batch], Tensor],
    group: list[nn.Parameter],
    skipped: int,
) -> int:
    """Fill in all rows by a group of parameters, less some columns ahead."""
    place, passes, batched = 0, 0, None
    for piece in pieces:
        outputs = run(piece).reshape(-1)
        if not outputs.requires_grad:
            block[place : place + len(outputs)] = 0
            place += len(outputs)
            continue
        if batched is None:
            batched = can_batch(outputs, group)
        for some in _unit_rows(outputs):
            parts = pull_back_many(outputs, group, some, batched=batched)
            flat = torch.cat(_as_rows(parts, group), dim=1).detach()
            kept = flat[:, skipped : skipped + block.shape[1]]
            block[place : place + len(some)] = kept
            place += len(some)
        passes += len(outputs)
        counted(len(outputs))
    return passes


def _as_rows(parts: list[Tensor], group: list[nn.Parameter]) -> list[Tensor]:
    pairs = zip(parts, group, strict=True)
    return [part.reshape(len(part), parameter.numel()) for part, parameter in pairs]


def _unit_rows(outputs: Tensor) -> Iterator[Tensor]:
    size = len(outputs)
    for start in range(0, size, _CHUNK):
        stop = min(start + _CHUNK, size)
        rows = torch.zeros(
            stop - start, size, dtype=outputs.dtype, device=outputs.device
        )
        rows[torch.arange(stop - start), torch.arange(start, stop)] = 1
        yield rows


def _within(
    parameters: Sequence[nn.Parameter], span: slice
) -> tuple[list[nn.Parameter], int]:
    """Return the parameters that have columns in a span, and where they begin."""
    group, begin, place = [], 0, 0
    for parameter in parameters:
        stop = place + parameter.numel()
        if stop > span.start and place < span.stop:
            begin = begin if group else place
            group.append(parameter)
        place = stop
    return group, begin
