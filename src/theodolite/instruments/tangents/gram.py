"""A Gram matrix that is summed over columns of its factor, and rows of Jacobians."""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from ..differentiate.derivatives import can_batch, pull_back_many
from ..distributed.processes import Team
from ..model.objective import Batch
from ..model.process_state import counted

# Rows of a tile: large enough for a fast product, small enough that the tiles on the
# diagonal, computed whole, add little.
_TILE = 256
# The same if tiles are distributed over ranks, so that every rank gets some.
_LEAST = 32


class Gram:
    r"""$K = \sum_l J_l J_l^\top$, accumulated part by part, one half only.

    Rows are (sample, output), or samples if traced over outputs. Of several processes
    each has the rows of its samples, and computes a part of the matrix.

    Args:
        samples: Number of samples $N$, those of all processes.
        outputs: Outputs of one sample $C$.
        traced: Whether to sum over equal outputs, giving $N \times N$.
        like: A tensor of the dtype and device to work in.
        team: Processes that have the other rows.

    Example:
        >>> import torch
        >>> gram = Gram(2, 1, traced=False, like=torch.ones(1))
        >>> gram.add(torch.tensor([[1.0, 0.0], [2.0, 1.0]]))
        >>> gram.matrix()
        tensor([[1., 2.],
                [2., 5.]])
    """

    def __init__(
        self,
        samples: int,
        outputs: int,
        *,
        traced: bool,
        like: Tensor,
        team: Team | None = None,
    ) -> None:
        self._samples, self._outputs, self._traced = samples, outputs, traced
        self.team = team or Team()
        size = samples if traced else samples * outputs
        self._lower = like.new_zeros(size, size)

    def add(self, rows: Tensor) -> None:
        """Add the Gram matrix of rows (samples · outputs, columns)."""
        rows = self.team.concatenate(rows)
        factor = rows.reshape(self._samples, -1) if self._traced else rows
        for start, stop in self._tiles(len(self._lower), 1):
            tile = self._lower[start:stop, :stop]
            tile.addmm_(factor[start:stop], factor[:stop].T)

    def add_outer(self, entered: Tensor, shift: float, rows: Tensor) -> None:
        r"""Add what rows $g_{nc} \otimes a_n$ give, from $a$ and $g$.

        Their inner products are $S_{nm}\,\langle g_{nc}, g_{md}\rangle$ with $S =
        AA^\top$, so that the outer products are never formed.

        Args:
            entered: The rows of $A$, one per sample.
            shift: What is added to each entry of $S$.
            rows: All $g$, shape (samples · outputs, columns).
        """
        entered, rows = self.team.concatenate(entered), self.team.concatenate(rows)
        count = 1 if self._traced else self._outputs
        factor = rows.reshape(self._samples, -1) if self._traced else rows
        for first, last in self._tiles(self._samples, count):
            shared = entered[first:last] @ entered[:last].T + shift
            mine, all_ = factor[first * count : last * count], factor[: last * count]
            tile = self._lower[first * count : last * count, : last * count]
            products = (mine @ all_.T).view(last - first, count, last, count)
            products *= shared[:, None, :, None]
            tile += products.view(tile.shape)

    def matrix(self) -> Tensor:
        """Return the whole symmetric matrix."""
        lower = self.team.sum_(self._lower.tril())
        return lower + lower.tril(-1).T

    def _tiles(self, total: int, each: int) -> Iterator[tuple[int, int]]:
        """Yield the ends of the tiles that this process fills in.

        Later tiles are longer, so they are dealt to and fro.

        Args:
            total: Number of rows or samples to split.
            each: Rows per item.
        """
        size, step = self.team.size, _TILE
        if self.team.several:
            step = max(_LEAST, min(_TILE, -(-total * each // (2 * size))))
        step = max(1, step // each)
        for number, start in enumerate(range(0, total, step)):
            place = number % (2 * size)
            if min(place, 2 * size - 1 - place) == self.team.rank:
                yield start, min(start + step, total)


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
        parameters: Parameters to differentiate by.
        gram: The Gram matrix to add to.
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
        rows[
            torch.arange(stop - start, device="cpu"),
            torch.arange(start, stop, device="cpu"),
        ] = 1
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
