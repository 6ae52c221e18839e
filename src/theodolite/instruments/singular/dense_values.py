"""Singular values of a Jacobian that fits in memory, whole or sample by sample."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.core import MeasurementError, stream

from ..differentiate.derivatives import close
from ..operators.block_jacobian import CHUNK, BlockJacobian
from ..operators.vectors import normal_vector
from .sample_blocks import SampleBlocks, Supports, sample_blocks, supports_of

# Rows of a panel: products of panels that overlap took 5.0 to 6.2 ms with 64 to 196,
# where the whole product takes 9.9 (one core of an AMD EPYC, 784 rows of which each
# depends on a third of the columns).
_PANEL = 112
# Share of the multiplications up to which panels are used.
_WORTH = 0.75
# Columns that are reduced at a time; 16 took 0.98 of the time of 32.
_COLUMNS = 16
# Matrices up to this size cost nothing, and those within these limits need no scaling.
_SMALL = 32
_LIMITS = 1e-120, 1e120

Panel = tuple[slice, int, int]


def resolved_values(
    matrix: Tensor, *, eps: float, room: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return singular values, descending, each with a bound on its rounding.

    Eigenvalues of the Gram matrix are off by $\delta = \varepsilon n \sigma_1^2$ at
    most, so that $\sigma$ is off by $\min(\delta/\sigma, \sqrt\delta)$: half the digits
    are lost near zero. Where a value lies there, the slower decomposition of the matrix
    itself tells it from zero, with an error of $\varepsilon n \sigma_1$. The entries
    carry the rounding of the model's own type on top.

    Args:
        matrix: Of any type.
        eps: Rounding of the type in which its entries were computed.
        room: Numbers in float64 that may be written over, as many as the Gram matrix
            has or more: fresh memory takes longer.
    """
    values = gram_values(matrix, room)
    if not len(values):
        return values, values
    fine, top = float(np.finfo(np.float64).eps), float(values[0])
    entries = eps * max(matrix.shape) * top
    delta = fine * min(matrix.shape) * top**2
    floor = float(np.sqrt(delta))
    if values[-1] <= 2 * (floor + entries) and floor > entries:
        values = torch.linalg.svdvals(matrix.double()).cpu().numpy()
        return values, np.full(len(values), fine * max(matrix.shape) * top + entries)
    with np.errstate(divide="ignore", invalid="ignore"):
        from_gram = np.minimum(np.where(values > 0, delta / values, floor), floor)
    return values, from_gram + entries


def gram_values(matrix: Tensor, room: np.ndarray | None = None) -> np.ndarray:
    """Return singular values, descending, from the smaller Gram matrix in float64."""
    if not matrix.numel():
        return np.zeros(0)
    wide = matrix.shape[0] <= matrix.shape[1]
    given = matrix.detach().double()
    squares = _squares(given if wide else given.T, room)
    return np.sqrt(np.maximum(squares[::-1], 0))


def _squares(given: Tensor, room: np.ndarray | None) -> np.ndarray:
    """Return the eigenvalues of a matrix times its transpose, ascending."""
    if given.device.type != "cpu":
        gram = given @ given.T
        _check_finite(bool(torch.isfinite(gram.diagonal()).all()))
        return torch.linalg.eigvalsh(gram).cpu().numpy()
    gram = gram_triangle(given.numpy(), room)
    _check_finite(bool(np.isfinite(gram.diagonal()).all()))
    return _eigenvalues(gram)


def gram_triangle(matrix: np.ndarray, room: np.ndarray | None = None) -> np.ndarray:
    """Return a matrix times its transpose; entries above the diagonal are not set."""
    from scipy.linalg import blas

    by_rows = matrix.flags.c_contiguous
    pairs = list(_pairs(_panels(matrix))) if by_rows else []
    worked = sum(
        (some.stop - some.start) * (others.stop - others.start) * (high - low)
        for some, others, low, high in pairs
        if low < high
    )
    if by_rows and worked < _WORTH * matrix.size * len(matrix) / 2:
        count = len(matrix) ** 2
        gram = (np.empty(count) if room is None else room[:count]).reshape(
            -1, len(matrix)
        )
        for some, others, low, high in pairs:
            product, within = gram[some, others], slice(low, high)
            if low < high:
                np.matmul(matrix[some, within], matrix[others, within].T, out=product)
            else:
                product.fill(0)
        return gram.T
    # One triangle is enough; by SciPy's libraries this step took two thirds of the
    # time of torch's or less (one core of an AMD EPYC, 784 rows).
    dsyrk: Any = blas.dsyrk  # pyright: ignore[reportAttributeAccessIssue]
    given = matrix.T if by_rows else matrix
    return dsyrk(1.0, given, trans=int(by_rows), lower=1)


def _panels(matrix: np.ndarray) -> list[Panel]:
    """Split rows into panels, with the range of nonzero columns of each."""
    panels: list[Panel] = []
    for start in range(0, len(matrix), _PANEL):
        rows = slice(start, min(start + _PANEL, len(matrix)))
        filled = np.flatnonzero((matrix[rows] != 0).any(0))
        low, high = (filled[0], filled[-1] + 1) if len(filled) else (0, 0)
        panels.append((rows, int(low), int(high)))
    return panels


def _pairs(panels: list[Panel]) -> Iterator[tuple[slice, slice, int, int]]:
    """Yield each pair of panels once, with the columns that are nonzero in both."""
    for place, (some, low, high) in enumerate(panels):
        for others, start, stop in panels[place:]:
            yield some, others, max(low, start), min(high, stop)


def _eigenvalues(gram: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of a matrix given below its diagonal, ascending.

    They are LAPACK's, as NumPy's are, without a copy and without zeros that nobody
    reads; NumPy scales matrices of extreme entries besides.
    """
    from scipy.linalg import lapack

    least, most = _LIMITS
    size, scale = len(gram), float(gram.diagonal().max())
    if size <= _SMALL or not least < scale < most:
        return np.linalg.eigvalsh(gram, UPLO="L")
    dsytrd: Any = lapack.dsytrd  # pyright: ignore[reportAttributeAccessIssue]
    dsterf: Any = lapack.dsterf  # pyright: ignore[reportAttributeAccessIssue]
    _, diagonal, beside, _, _ = dsytrd(
        gram, lower=1, lwork=_COLUMNS * size, overwrite_a=1
    )
    values, failed = dsterf(diagonal, beside, overwrite_d=1, overwrite_e=1)
    if failed:
        raise MeasurementError(
            f"eigenvalues of a matrix of {size:,} rows did not converge: check the "
            "batch, or use method='quadrature'"
        )
    return values


def _check_finite(finite: bool) -> None:
    """Refuse NaN or infinity on the diagonal, which bounds all other entries."""
    if not finite:
        raise MeasurementError(
            "the Jacobian holds NaN or infinity: look for square roots or divisions at "
            "0 in the block, and check the batch"
        )


def active_units(jacobian: BlockJacobian, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    r"""Return masks of the rows and of the columns that are not zero.

    Row $i$ vanishes, as behind a ReLU that is off, just when $(Jw)_i = 0$ for a random
    $w$, with probability one; columns likewise. Their count bounds the rank.
    """
    generator = stream(seed, "active")
    drawn = [
        torch.from_numpy(generator.standard_normal(size)).to(
            dtype=jacobian.torch_dtype, device=jacobian.device
        )
        for size in jacobian.shape
    ]
    return jacobian.product(drawn[1]) != 0, jacobian.rmatvec(drawn[0]) != 0


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
        len(chosen), width, dtype=jacobian.torch_dtype, device=jacobian.device
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

    Rows that share a cotangent are separated by the inputs that reach them. Products
    with a random vector check that; were one wrong, all would be pulled back alone.
    """
    samples, width = jacobian.samples, jacobian.shape[1] // jacobian.samples
    most = int(rows.reshape(samples, -1).sum(1).max())
    forecast(most, width, samples, jacobian, matrix_bytes)
    eps, pairs = torch.finfo(jacobian.torch_dtype).eps, []
    room = np.empty(min(most, width) ** 2)
    for supports in (supports_of(jacobian), Supports(jacobian.output_shape[1:])):
        blocks = sample_blocks(jacobian, supports, rows)
        inputs = columns.reshape(samples, -1)[:, blocks.columns]
        pairs = [
            resolved_values(
                matrix if mask.all() else matrix[:, mask], eps=eps, room=room
            )
            for matrix, mask in zip(_checked(jacobian, blocks), inputs, strict=False)
        ]
        if len(pairs) == samples:
            break
    values, errors = (np.concatenate(part) for part in zip(*pairs, strict=True))
    order = np.argsort(values, kind="stable")[::-1]
    return values[order], errors[order]


def _checked(jacobian: BlockJacobian, blocks: SampleBlocks) -> Iterator[Tensor]:
    """Yield the matrices; if rows share vectors, stop at the first wrong one."""
    vector = normal_vector(jacobian, stream(0, "check"))
    wanted = jacobian.product(vector).reshape(jacobian.samples, -1)
    given = blocks.matrices(vector.reshape(jacobian.samples, -1))
    for (matrix, rows, product), right in zip(given, wanted, strict=True):
        if blocks.supports.axes and not close(product, right[rows]):
            return
        yield matrix


def forecast(
    rows: int, columns: int, count: int, jacobian: BlockJacobian, matrix_bytes: int
) -> None:
    """Refuse Jacobians that would not fit in memory."""
    wanted = bytes_wanted(rows, columns, count, jacobian.torch_dtype)
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
