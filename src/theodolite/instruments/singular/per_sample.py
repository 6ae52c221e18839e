"""Singular values of a Jacobian that is small enough to hold, whole or by samples."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from theodolite.core import MeasurementError, stream
from theodolite.instruments.differentiate.pullback import close
from theodolite.instruments.operators.block_jacobian import CHUNK, BlockJacobian
from theodolite.instruments.operators.drawing import normal_vector
from theodolite.instruments.singular.gram import resolved_values
from theodolite.instruments.singular.sample_blocks import SampleBlocks, sample_blocks
from theodolite.instruments.singular.supports import Supports, supports_of


def active_units(jacobian: BlockJacobian, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    r"""Return masks of the rows and of the columns that are not zero.

    Row $i$ vanishes, as behind a ReLU that is off, just when $(Jw)_i = 0$ for a random
    $w$, with probability one; columns likewise. Their count bounds the rank.
    """
    generator = stream(seed, "active")
    drawn = [
        torch.as_tensor(generator.standard_normal(size)).to(
            dtype=jacobian.dtype, device=jacobian.device
        )
        for size in jacobian.shape
    ]
    return jacobian.matvec(drawn[1]) != 0, jacobian.rmatvec(drawn[0]) != 0


def whole_values(
    jacobian: BlockJacobian, rows: Tensor, columns: Tensor, *, matrix_bytes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular values of the whole Jacobian, descending, and their errors.

    Only the rows and columns of the masks are kept; what they leave out is zero.
    """
    chosen = rows.nonzero().reshape(-1)
    width = int(columns.sum())
    forecast(len(chosen), width, 1, jacobian, matrix_bytes)
    matrix = torch.empty(
        len(chosen), width, dtype=jacobian.dtype, device=jacobian.device
    )
    for start in range(0, len(chosen), CHUNK):
        units = chosen[start : start + CHUNK]
        pulled = jacobian.rows(units)
        matrix[start : start + len(units)] = pulled[:, columns]
    return resolved_values(matrix, eps=torch.finfo(matrix.dtype).eps)


def sample_values(
    jacobian: BlockJacobian, rows: Tensor, columns: Tensor, *, matrix_bytes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular values of all per-sample blocks, descending, and errors.

    Rows that share a cotangent are told apart by the inputs that reach them. Products
    with a random vector check that; were one wrong, all would be pulled back alone.
    """
    samples, width = jacobian.samples, jacobian.shape[1] // jacobian.samples
    most = int(rows.reshape(samples, -1).sum(1).max())
    forecast(most, width, samples, jacobian, matrix_bytes)
    eps, found = torch.finfo(jacobian.dtype).eps, []
    room = np.empty(min(most, width) ** 2)
    for supports in (supports_of(jacobian), Supports(jacobian.output_shape[1:])):
        blocks = sample_blocks(jacobian, supports, rows)
        inputs = columns.reshape(samples, -1)[:, blocks.columns]
        found = [
            resolved_values(
                matrix if mask.all() else matrix[:, mask], eps=eps, room=room
            )
            for matrix, mask in zip(_checked(jacobian, blocks), inputs, strict=False)
        ]
        if len(found) == samples:
            break
    values, errors = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(values, kind="stable")[::-1]
    return values[order], errors[order]


def _checked(jacobian: BlockJacobian, blocks: SampleBlocks) -> Iterator[Tensor]:
    """Yield the matrices; where rows share vectors, up to the first that is wrong."""
    vector = normal_vector(jacobian, stream(0, "check"))
    wanted = jacobian.matvec(vector).reshape(jacobian.samples, -1)
    given = blocks.matrices(vector.reshape(jacobian.samples, -1))
    for (matrix, rows, product), right in zip(given, wanted, strict=True):
        if blocks.supports.axes and not close(product, right[rows]):
            return
        yield matrix


def forecast(
    rows: int, columns: int, count: int, jacobian: BlockJacobian, matrix_bytes: int
) -> None:
    """Refuse Jacobians that would not fit."""
    wanted = bytes_wanted(rows, columns, count, jacobian.dtype)
    if wanted > matrix_bytes:
        raise MeasurementError(
            f"{count} Jacobian{'s' if count > 1 else ''} of {rows:,} by {columns:,} "
            f"take {wanted / 2**30:.3g} GiB, allowed are {matrix_bytes / 2**30:.3g}: "
            "use method='quadrature', or raise matrix_bytes"
        )


def bytes_wanted(rows: int, columns: int, count: int, dtype: torch.dtype) -> int:
    """Forecast the memory of some Jacobians and of the Gram matrix of one."""
    small = min(rows, columns)
    # In float64: one Jacobian, its Gram matrix and the eigensolver's copy of that.
    return count * rows * columns * dtype.itemsize + 8 * (rows * columns + 2 * small**2)
