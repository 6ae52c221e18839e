"""The whole Hessian of the loss of a small module."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import Dims, MeasurementError, Reading, Scalar, Status, Stopwatch

from ..differentiate.derivatives import flat, pull_back, pull_back_many
from ..model.process_state import counted, expected, with_progress
from ..model.reachable_state import chosen_parameters, unwrapped
from ..operators.loss_hessian import Hessian
from ..operators.matrix_operator import MatrixOperator
from ..operators.operator import Operator
from ..operators.rounding_noise import RoundingNoise, rounding_noise
from ..passes.batches import Batches
from ..passes.forecast import as_bytes, rounds
from ..passes.problem import (
    Model,
    Problem,
    ProblemSettings,
    problem_of,
    refuse_unknown,
    with_settings,
)
from .model_instruments import refuse_settings


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseHessian(Reading):
    r"""The loss, its gradient and its Hessian with respect to chosen parameters.

    Attributes:
        matrix: Symmetrised Hessian, parameters in the model's order, row-major.
        matrix_error: Bound on the rounding error of an entry, including the model's
            graph; in float32 it is measured against float64.
        norm_error: Bound on the norm of that error, hence on any eigenvalue's; NaN if
            only ``matrix_error`` is known.
        asymmetry: Largest $|H - H^\top|$ before symmetrisation, relative to the
            largest entry.
        loss: Value of the loss.
        gradient: Its gradient.
        layout: Names and shapes of the parameters along the axes.
        partition: Samples of each batch; in norm mode ``batch`` the loss depends on it.
    """

    matrix: Annotated[np.ndarray, Dims("row", "column")]
    matrix_error: Scalar
    norm_error: Scalar = float("nan")
    asymmetry: Scalar
    loss: Scalar
    gradient: Annotated[np.ndarray, Dims("row")]
    layout: tuple[tuple[str, tuple[int, ...]], ...] = field(default=())
    partition: tuple[int | None, ...] = field(default=())


@with_settings
@with_progress()
def hessian(
    model: Model | Problem | Hessian,
    batches: Batches | None = None,
    *,
    chunk: int = 64,
    matrix_bytes: int = 4 * 2**30,
    **settings: Unpack[ProblemSettings],
) -> DenseHessian:
    r"""Measure the dense Hessian by double backward.

    The gradient's graph is kept, and blocks of unit vectors are pulled back through
    it: exact second derivatives, also through batch statistics in train mode.

    Args:
        model: Any module; or a :class:`Problem` or a :class:`Hessian`, without
            ``batches``.
        batches: The module's data.
        chunk: Rows pulled back at a time; more is faster and takes more memory.
        matrix_bytes: Memory that the matrix and its copies may take.
        settings: Those of :class:`Problem`, such as ``loss`` and ``norm_mode``.

    Returns:
        The reading; ``status`` is EXACT, its error is rounding.

    Example:
        >>> from theodolite.instruments import HalfSquareLoss
        >>> layer = nn.Linear(2, 1, bias=False, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
        >>> reading = hessian(
        ...     layer, (x, x[:, :1]), loss=HalfSquareLoss(), norm_mode="batch"
        ... )
        >>> reading.matrix
        array([[0.5, 0. ],
               [0. , 2. ]])
    """
    refuse_unknown(hessian, settings)
    matrix_bytes = as_bytes("matrix_bytes", matrix_bytes)
    watch = Stopwatch()
    if isinstance(model, Hessian):
        refuse_settings("hessian", batches, settings)
        return _measured(model, chunk, matrix_bytes, watch)
    # Rows of a matrix come in blocks, so no product is replayed.
    problem = replace(problem_of(model, batches, settings), replay=False)
    chosen = chosen_parameters(unwrapped(problem.model), problem.params)
    _forecast(sum(p.numel() for p in chosen.values()), matrix_bytes)
    with Hessian(problem) as operator:
        return _measured(operator, chunk, matrix_bytes, watch)


def _measured(
    operator: Hessian, chunk: int, matrix_bytes: int, watch: Stopwatch
) -> DenseHessian:
    chosen = chosen_parameters(operator.model, [name for name, _ in operator.layout])
    size, before = operator.shape[1], operator.passes
    _forecast(size, matrix_bytes)
    expected(size)
    value, gradient = operator.loss_and_gradient()
    rows = _rows(operator, list(chosen.values()), chunk, matrix_bytes)
    operator.passes = before + size + 1
    _check_finite(rows)
    noise, symmetric = matrix_noise(operator, rows if operator.coupled else rows.T)
    matrix, gap = _symmetrise(rows)
    scale = np.abs(matrix).max(initial=0.0)
    asymmetry = float(2 * gap / scale) if scale else 0.0
    if not symmetric:
        raise _lopsided(asymmetry)
    return DenseHessian(
        matrix=matrix,
        matrix_error=max(gap, float(noise.rows.max(initial=0.0))),
        norm_error=noise.norm,
        asymmetry=asymmetry,
        loss=float(value),
        gradient=gradient.cpu().double().numpy(),
        layout=operator.layout,
        partition=operator.partition,
        status=Status.EXACT,
        norm_mode=operator.norm_mode,
        norm_layers=operator.norm_layers,
        seed=operator.seed if operator.problem.randomness == "fixed" else None,
        cost=watch.read(passes=operator.passes - before),
        method="double backward",
    )


def _rows(
    operator: Hessian, leaves: list[nn.Parameter], chunk: int, matrix_bytes: int
) -> np.ndarray:
    """Return all rows, summed over the batches."""
    if operator.coupled:
        return operator.dense(matrix_bytes=matrix_bytes)
    total = np.zeros(operator.shape)
    with operator.curves() as curves:
        for curve in curves:
            gradient = torch.cat([part.reshape(-1) for part in curve.gradient])
            total += _second_derivatives(gradient, leaves, chunk)
        return operator.team.sum(torch.from_numpy(total)).numpy()


def _check_finite(rows: np.ndarray) -> None:
    if not np.isfinite(rows).all():
        raise MeasurementError(
            "the Hessian holds NaN or infinity although the loss is finite: look for "
            "square roots or divisions at 0 in the model"
        )


def _second_derivatives(
    gradient: Tensor, leaves: list[nn.Parameter], chunk: int
) -> np.ndarray:
    size = gradient.numel()
    if not gradient.requires_grad:
        return np.zeros((size, size))
    rows = _batched_rows(gradient, leaves, chunk)
    if rows is None or not _confirmed(rows, gradient, leaves):
        basis = torch.eye(size, dtype=gradient.dtype, device=gradient.device)
        rows = torch.stack([_product(gradient, leaves, row) for row in basis])
    return rows.cpu().double().numpy()


def _product(gradient: Tensor, leaves: list[nn.Parameter], vector: Tensor) -> Tensor:
    """Return the product of the Hessian with one vector."""
    return flat(pull_back([gradient], leaves, [vector]))


def _batched_rows(
    gradient: Tensor, leaves: list[nn.Parameter], chunk: int
) -> Tensor | None:
    """Return all rows, a chunk at a time, or None if torch cannot batch them."""
    size, blocks = gradient.numel(), []
    for start in range(0, size, chunk):
        basis = gradient.new_zeros(min(chunk, size - start), size).detach()
        basis[
            torch.arange(len(basis), device="cpu"),
            torch.arange(start, start + len(basis), device="cpu"),
        ] = 1
        try:
            parts = pull_back_many(gradient, leaves, basis, batched=True)
        except RuntimeError:
            return None
        counted(len(basis))
        columns = [part.detach().reshape(len(basis), -1) for part in parts]
        blocks.append(torch.cat(columns, dim=1))
    return torch.cat(blocks)


def _confirmed(rows: Tensor, gradient: Tensor, leaves: list[nn.Parameter]) -> bool:
    """Compare batched rows with one unbatched product.

    A batching rule of torch that is wrong in the second derivative would go unnoticed,
    so a random combination of rows is computed both ways; a wrong row escapes with
    probability zero.
    """
    weights = np.random.default_rng(0).normal(size=gradient.numel())
    vector = torch.from_numpy(weights).to(gradient)
    single = _product(gradient, leaves, vector.detach())
    batched = vector.detach() @ rows
    scale = float(rows.abs().max()) * float(np.sqrt(len(rows)))
    limit = 1e3 * torch.finfo(rows.dtype).eps * max(scale, 1e-300)
    return (
        bool(torch.isfinite(rows).all())
        and float((single - batched).abs().max()) <= limit
    )


def _symmetrise(rows: np.ndarray) -> tuple[np.ndarray, float]:
    gap = float(np.abs(rows - rows.T).max(initial=0.0)) / 2
    return (rows + rows.T) / 2, gap


def _lopsided(asymmetry: float) -> MeasurementError:
    return MeasurementError(
        f"the second derivatives disagree by {asymmetry:.1e} of the largest, more than "
        "the rounding of the graph explains: a custom autograd function or an in-place "
        "change of the model's state is at fault"
    )


def _forecast(size: int, matrix_bytes: int) -> None:
    # The matrix, the sum with its transpose and one temporary, in float64.
    wanted = 3 * 8 * size * size
    if wanted > matrix_bytes:
        raise MeasurementError(
            f"the dense Hessian of {size:,} parameters takes "
            f"{wanted / 2**30:.3g} GiB, allowed are {matrix_bytes / 2**30:.3g}: choose "
            "fewer with params=…, or raise matrix_bytes"
        )


# In float64 no finer reference exists: allow so many roundings of a row's norm, by
# choice.
_ROUNDINGS = 32


# Asymmetry above so many roundings of the largest entry: something in the graph has
# lower precision than the parameters, or amplifies rounding.
_SUSPECT = 1e3


def matrix_noise(operator: Operator, matrix: np.ndarray) -> tuple[RoundingNoise, bool]:
    """Return bounds on the error of a measured matrix, and whether it is symmetric.

    Parameters below float64, or asymmetry that float64 does not explain, are compared
    with a reference; the matrix is asymmetric only beyond the error that this shows.

    Args:
        operator: Operator of the matrix.
        matrix: As measured, before it is symmetrised.
    """
    eps = torch.finfo(operator.torch_dtype).eps
    scale = float(np.abs(matrix).max(initial=0.0))
    gap = float(np.abs(matrix - matrix.T).max(initial=0.0))
    suspect = gap > _SUSPECT * eps * scale and scale > eps
    noise = None
    if rounds(operator) or suspect:
        noise = rounding_noise(
            operator, lambda v: torch.from_numpy(matrix @ v.double().cpu().numpy())
        )
    if noise is None:
        noise = _assumed_noise(operator, matrix, gap, eps)
        symmetric = bool(gap <= np.sqrt(eps) * scale)
        # An asymmetric matrix below a rounding of 1 is rounding only.
        if not symmetric and scale <= eps:
            return _whole_entries(matrix, noise), True
        return noise, symmetric
    explained = max(np.sqrt(eps) * scale, 4 * float(noise.rows.max(initial=0.0)))
    return noise, bool(gap <= explained or scale <= eps)


def _assumed_noise(
    operator: Operator, matrix: np.ndarray, gap: float, eps: float
) -> RoundingNoise:
    """Bound the error by roundings of the rows, and by the measured asymmetry."""
    # A given matrix is rounded to its type only; no graph was run.
    count = 1 if isinstance(operator, MatrixOperator) else _ROUNDINGS
    lengths = np.linalg.norm(matrix, axis=1)
    rows = count * eps * lengths + gap / 2 * np.sqrt(len(matrix))
    diagonal = np.abs(np.diagonal(matrix))
    trace = count * eps * float(diagonal.sum())
    return RoundingNoise(rows, float(np.linalg.norm(rows)), trace)


def _whole_entries(matrix: np.ndarray, noise: RoundingNoise) -> RoundingNoise:
    """Return errors as large as the entries, added to the given ones."""
    rows = noise.rows + np.linalg.norm(matrix, axis=1)
    trace = noise.trace + float(np.abs(np.diagonal(matrix)).sum())
    return RoundingNoise(rows, float(np.linalg.norm(rows)), trace)
