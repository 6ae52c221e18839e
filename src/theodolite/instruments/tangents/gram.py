"""A Gram matrix that grows as columns of its factor come in."""

from torch import Tensor

# Rows of a tile: large enough for a fast product, small enough that the tiles on the
# diagonal, computed whole, add little.
_TILE = 256


class Gram:
    r"""$K = \sum_l J_l J_l^\top$, accumulated part by part, one half only.

    Rows are (sample, output); traced over outputs, samples alone.

    Args:
        samples: Number of samples $N$.
        outputs: Outputs of one sample $C$.
        traced: Whether to sum over equal outputs, giving $N \times N$.
        like: A tensor of the dtype and device to work in.

    Example:
        >>> import torch
        >>> gram = Gram(2, 1, traced=False, like=torch.ones(1))
        >>> gram.add(torch.tensor([[1.0, 0.0], [2.0, 1.0]]))
        >>> gram.matrix()
        tensor([[1., 2.],
                [2., 5.]])
    """

    def __init__(
        self, samples: int, outputs: int, *, traced: bool, like: Tensor
    ) -> None:
        self._samples, self._outputs, self._traced = samples, outputs, traced
        size = samples if traced else samples * outputs
        self._lower = like.new_zeros(size, size)

    def add(self, rows: Tensor) -> None:
        """Add the Gram matrix of rows (samples · outputs, columns)."""
        factor = rows.reshape(self._samples, -1) if self._traced else rows
        for start in range(0, len(self._lower), _TILE):
            stop = min(start + _TILE, len(self._lower))
            tile = self._lower[start:stop, :stop]
            tile.addmm_(factor[start:stop], factor[:stop].T)

    def add_outer(self, shared: Tensor, rows: Tensor) -> None:
        r"""Add what rows $g_{nc} \otimes a_n$ give, from $S = AA^\top$ and $g$.

        Their inner products are $S_{nm}\,\langle g_{nc}, g_{md}\rangle$, so that the
        outer products are never formed.
        """
        count = self._outputs
        if self._traced:
            factor = rows.reshape(self._samples, -1)
            self._lower.addcmul_(shared, factor @ factor.T)
            return
        step = max(1, _TILE // count)
        for first in range(0, self._samples, step):
            last = min(first + step, self._samples)
            mine, all_ = rows[first * count : last * count], rows[: last * count]
            tile = self._lower[first * count : last * count, : last * count]
            products = (mine @ all_.T).view(last - first, count, last, count)
            products *= shared[first:last, None, :last, None]
            tile += products.view(tile.shape)

    def matrix(self) -> Tensor:
        """Return the whole symmetric matrix."""
        lower = self._lower.tril()
        return lower + lower.tril(-1).T
