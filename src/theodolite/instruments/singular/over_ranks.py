"""Singular values of what several processes have together."""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from theodolite.instruments.operators.block_jacobian import BlockJacobian


class Take(Protocol):
    """Takes the singular values of a Jacobian, and their errors."""

    def __call__(
        self,
        jacobian: BlockJacobian,
        rows: Tensor,
        columns: Tensor,
        *,
        matrix_bytes: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take them from the rows and columns of two masks."""
        ...


def over_ranks(
    take: Take,
    jacobian: BlockJacobian,
    rows: Tensor,
    columns: Tensor,
    *,
    matrix_bytes: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return singular values, descending, and their errors, the same on every rank.

    Samples of several ranks that leave one another alone have a block each, and its
    values are taken where it is. Else the matrix is put together on every rank.
    """
    team = jacobian.team
    with team.telling():
        if not team.several or jacobian.across:
            found = take(jacobian, rows, columns, matrix_bytes=matrix_bytes)
            values, errors = (_sent(jacobian, part) for part in found)
            return values, errors
        here = jacobian.here()
        own = rows[jacobian.own[0]], columns[jacobian.own[1]]
        found = take(here, *own, matrix_bytes=matrix_bytes)
        jacobian.passes += here.passes
        parts = [team.concatenate(torch.from_numpy(part)).numpy() for part in found]
    order = np.argsort(parts[0], kind="stable")[::-1]
    return parts[0][order], parts[1][order]


def _sent(jacobian: BlockJacobian, part: np.ndarray) -> np.ndarray:
    """Return what the first rank found, in case that others round otherwise."""
    if not jacobian.team.several:
        return part
    return jacobian.team.broadcast(torch.from_numpy(part)).numpy()
