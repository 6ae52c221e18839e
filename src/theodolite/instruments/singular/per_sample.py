"""Singular values of a Jacobian that is small enough to hold, whole or by samples."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.core import MeasurementError, stream
from theodolite.instruments.operators.block_jacobian import CHUNK, BlockJacobian


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
    return resolved_values(matrix)


def sample_values(
    jacobian: BlockJacobian, rows: Tensor, columns: Tensor, *, matrix_bytes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular values of all per-sample blocks, descending, and errors.

    One cotangent holds a unit vector for every sample at once, so that as many passes
    are enough as a sample has rows.
    """
    blocks = sample_blocks(jacobian, rows, matrix_bytes=matrix_bytes)
    inputs = columns.reshape(jacobian.samples, -1)
    counts = rows.reshape(jacobian.samples, -1).sum(1).tolist()
    found = [
        resolved_values(block[:count, mask])
        for block, count, mask in zip(blocks, counts, inputs, strict=True)
    ]
    values, errors = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(values, kind="stable")[::-1]
    return values[order], errors[order]


def sample_blocks(
    jacobian: BlockJacobian,
    rows: Tensor | None = None,
    *,
    matrix_bytes: int = 4 * 2**30,
) -> Tensor:
    """Return per-sample Jacobians, shape (samples, rows, inputs of a sample).

    Of each sample the rows of the mask come first, in order; all by default.
    """
    if jacobian.coupled:
        raise MeasurementError(
            "per-sample blocks of a coupled Jacobian were asked for: make it with "
            "coupled=False"
        )
    samples, height = jacobian.samples, jacobian.shape[0] // jacobian.samples
    width = jacobian.shape[1] // samples
    if rows is None:
        rows = torch.ones(jacobian.shape[0], dtype=torch.bool, device=jacobian.device)
    mask = rows.reshape(samples, height)
    # A stable sort puts the chosen rows of each sample first and keeps their order.
    order = torch.sort(~mask, dim=1, stable=True).indices
    kept = int(mask.sum(1).max())
    forecast(kept, width, samples, jacobian, matrix_bytes)
    blocks = torch.empty(
        samples, kept, width, dtype=jacobian.dtype, device=jacobian.device
    )
    for start in range(0, kept, CHUNK):
        stop = min(start + CHUNK, kept)
        cotangents = blocks.new_zeros(stop - start, samples, height)
        units = order[:, start:stop].T.unsqueeze(-1)
        cotangents.scatter_(2, units, 1.0)
        pulled = jacobian.pull_back_block(cotangents.reshape(stop - start, -1))
        blocks[:, start:stop] = pulled.reshape(-1, samples, width).transpose(0, 1)
    return blocks


def gram_values(matrix: Tensor) -> np.ndarray:
    """Return singular values from the smaller Gram matrix in float64, descending."""
    if not matrix.numel():
        return np.zeros(0)
    wide = matrix.shape[0] <= matrix.shape[1]
    given = matrix.detach().double()
    squares = _squares(given if wide else given.T)
    return np.sqrt(np.maximum(squares[::-1], 0))


def _squares(given: Tensor) -> np.ndarray:
    """Return the eigenvalues of a matrix times its transpose, ascending."""
    if given.device.type != "cpu":
        gram = given @ given.T
        _check_finite(bool(torch.isfinite(gram.diagonal()).all()))
        return torch.linalg.eigvalsh(gram).cpu().numpy()
    from scipy.linalg import blas

    # One triangle is enough; by SciPy's libraries both steps took two thirds of the
    # time of torch's or less (one core of an AMD EPYC, 784 rows).
    array = given.numpy()
    by_rows = array.flags.c_contiguous
    dsyrk: Any = blas.dsyrk  # pyright: ignore[reportAttributeAccessIssue]
    gram = dsyrk(1.0, array.T if by_rows else array, trans=int(by_rows))
    _check_finite(bool(np.isfinite(gram.diagonal()).all()))
    return np.linalg.eigvalsh(gram, UPLO="U")


def _check_finite(finite: bool) -> None:
    """Refuse a Gram matrix by its diagonal, which bounds all other entries."""
    if not finite:
        raise MeasurementError(
            "the Jacobian holds NaN or infinity: look for square roots or divisions at "
            "0 in the block, and check the batch"
        )


def resolved_values(matrix: Tensor) -> tuple[np.ndarray, np.ndarray]:
    r"""Return singular values, descending, each with a bound on its rounding.

    Eigenvalues of the Gram matrix are off by $\delta = \varepsilon n \sigma_1^2$ at
    most, so that $\sigma$ is off by $\min(\delta/\sigma, \sqrt\delta)$: half the digits
    are lost near zero. Where a value lies there, the slower decomposition of the matrix
    itself tells it from zero, with an error of $\varepsilon n \sigma_1$. The entries
    carry the rounding of the model's own type on top.
    """
    values = gram_values(matrix)
    if not len(values):
        return values, values
    eps, top = float(np.finfo(np.float64).eps), float(values[0])
    entries = torch.finfo(matrix.dtype).eps * max(matrix.shape) * top
    delta = eps * min(matrix.shape) * top**2
    floor = float(np.sqrt(delta))
    if values[-1] <= 2 * (floor + entries) and floor > entries:
        values = torch.linalg.svdvals(matrix.double()).cpu().numpy()
        return values, np.full(len(values), eps * max(matrix.shape) * top + entries)
    with np.errstate(divide="ignore", invalid="ignore"):
        from_gram = np.minimum(np.where(values > 0, delta / values, floor), floor)
    return values, from_gram + entries


def forecast(
    rows: int, columns: int, count: int, jacobian: BlockJacobian, matrix_bytes: int
) -> None:
    """Refuse Jacobians that would not fit."""
    wanted = bytes_wanted(rows, columns, count, jacobian.dtype)
    if wanted > matrix_bytes:
        raise MeasurementError(
            f"{count} Jacobian{'s' if count > 1 else ''} of {rows:,} by {columns:,} "
            f"take {wanted / 2**30:.1f} GiB, allowed are {matrix_bytes / 2**30:.1f}: "
            "use method='quadrature', or raise matrix_bytes"
        )


def bytes_wanted(rows: int, columns: int, count: int, dtype: torch.dtype) -> int:
    """Forecast the memory of some Jacobians and of the Gram matrix of one."""
    small = min(rows, columns)
    # In float64: one Jacobian, its Gram matrix and the eigensolver's copy of that.
    return count * rows * columns * dtype.itemsize + 8 * (rows * columns + 2 * small**2)
