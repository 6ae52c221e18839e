"""A Gram matrix that grows as columns of its factor come in."""

from collections.abc import Iterator

from torch import Tensor

from theodolite.instruments.team.processes import Team

# Rows of a tile: large enough for a fast product, small enough that the tiles on the
# diagonal, computed whole, add little.
_TILE = 256
# The same where tiles are dealt to ranks, who all are to have some.
_LEAST = 32


class Gram:
    r"""$K = \sum_l J_l J_l^\top$, accumulated part by part, one half only.

    Rows are (sample, output); traced over outputs, samples alone. Of several processes
    each brings the rows of its own samples, and fills in a part of the matrix.

    Args:
        samples: Number of samples $N$, those of all processes.
        outputs: Outputs of one sample $C$.
        traced: Whether to sum over equal outputs, giving $N \times N$.
        like: A tensor of the dtype and device to work in.
        team: Who else has rows.

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
            entered: The rows of $A$, one a sample.
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
            total: What is cut: rows, or samples.
            each: Rows that one of these stands for.
        """
        size, step = self.team.size, _TILE
        if self.team.several:
            step = max(_LEAST, min(_TILE, -(-total * each // (2 * size))))
        step = max(1, step // each)
        for number, start in enumerate(range(0, total, step)):
            place = number % (2 * size)
            if min(place, 2 * size - 1 - place) == self.team.rank:
                yield start, min(start + step, total)
