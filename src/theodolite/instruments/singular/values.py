"""Singular values of a block's Jacobian, by the cheapest method that is accurate."""

from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import (
    ConfigError,
    MeasurementError,
    NormMode,
    Status,
    Stopwatch,
    as_integer,
)

from ..distributed.processes import Team, as_team
from ..model.objective import Batch, Outputs
from ..model.process_state import with_progress
from ..operators.block_jacobian import BlockJacobian
from ..operators.rounding_noise import rounding_noise
from ..operators.span import Block
from ..passes.forecast import as_bytes
from ..passes.problem import Problem
from ..solvers.bidiagonal import grid
from ..solvers.lanczos import Placement
from .dense_values import active_units, bytes_wanted, sample_values, whole_values
from .quadrature_values import CELLS, SingularValues, by_quadrature


class Take(Protocol):
    """Computes the singular values of a Jacobian, and their errors."""

    def __call__(
        self,
        jacobian: BlockJacobian,
        rows: Tensor,
        columns: Tensor,
        *,
        matrix_bytes: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return them, from the rows and columns of two masks."""
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
    with team.reporting_errors():
        if not team.several or jacobian.across:
            given = take(jacobian, rows, columns, matrix_bytes=matrix_bytes)
            values, errors = (_sent(jacobian, part) for part in given)
            return values, errors
        here = jacobian.here()
        own = rows[jacobian.own[0]], columns[jacobian.own[1]]
        given = take(here, *own, matrix_bytes=matrix_bytes)
        jacobian.passes += here.passes
        parts = [team.concatenate(torch.from_numpy(part)).numpy() for part in given]
    order = np.argsort(parts[0], kind="stable")[::-1]
    return parts[0][order], parts[1][order]


def _sent(jacobian: BlockJacobian, part: np.ndarray) -> np.ndarray:
    """Return the first rank's numbers, since other ranks may round differently."""
    if not jacobian.team.several:
        return part
    return jacobian.team.broadcast(torch.from_numpy(part)).numpy()


Method = Literal["auto", "dense", "blocks", "quadrature"]

# A dense spectrum of this size takes about a second; twice of it ten times as long.
_SMALL = 2_048
# Samples times cubed size that an eigensolver does in about a minute on one core
# (0.28 s at size 1,600).
_MINUTE = 60 / 0.28 * 1_600**3


@with_progress()
def singular_values(
    model: nn.Module | Problem,
    batch: Batch | None = None,
    *,
    block: Block,
    norm_mode: NormMode | str | None = None,
    method: Method = "auto",
    tol: float = 0.02,
    max_steps: int = 256,
    seed: int = 0,
    matrix_bytes: int = 4 * 2**30,
    basis_bytes: int = 4 * 2**30,
    basis: Placement = "auto",
    outputs: Outputs | None = None,
    team: Team | None = None,
) -> SingularValues:
    r"""Measure the singular values of a block's Jacobian on a real batch.

    ``dense`` takes the whole Jacobian, samples coupled, and is exact. ``blocks`` takes
    one Jacobian a sample with statistics held at those of the batch: exact where
    statistics are constants. Batch statistics add a term of rank 2 for each channel of
    each BatchNorm. The Jacobian of a graph is affine in that of each of its nodes,
    $J = A_k J_k B_k + C_k$, also around skips; so freezing the norms one by one changes
    $J$ by rank $r = 2\sum_k c_k$ at most, and since $\sigma_{i+r}(J) \le
    \sigma_i(J_{\mathrm{frozen}})$ and conversely, the distribution function by $r/n$.
    ``quadrature`` takes random starts; see
    :mod:`theodolite.instruments.solvers.bidiagonal`.
    ``auto`` takes the first of these that is exact and quick, else within ``tol``.

    Args:
        model: Any module, never changed; or a :class:`Problem` of one batch, of which
            model, data, ``norm_mode``, ``outputs`` and ``team`` are used.
        batch: A tensor, a pair (inputs, targets) or a mapping of keywords.
        block: Name of a submodule, or of the first and the last of a span.
        norm_mode: Statistics that normalisation layers use, as for :class:`Problem`.
        method: Which of the above.
        tol: Error of the distribution function wanted, in the supremum.
        max_steps: Steps a random start may take; each is a product and a transposed
            one.
        seed: Seed of the random starts.
        matrix_bytes: Memory that Jacobians may take as matrices.
        basis_bytes: Memory that the vectors of a random start may take.
        basis: Kept on "device", "host", "shared" over a team, or "auto" (fastest).
        outputs: ``outputs(model, batch)`` runs the model, where a call on the inputs
            does not.
        team: Who else holds samples, where this process holds its share of the batch.
            Under ``full`` and ``frozen`` statistics are those of the whole; under
            ``batch`` each share is a separate batch. Every rank has all the values.

    Returns:
        The reading; ``status`` is EXACT for values off by rounding only, that of the
        model's graph included (by ``dense`` and ``blocks``), CONVERGED
        for a bound that holds or is within ``tol``, MAX_MATVECS for a wider one.

    Example:
        >>> import torch
        >>> net = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).double()
        >>> _ = nn.init.constant_(net[0].bias, 1.0)
        >>> x = torch.zeros(3, 2, dtype=torch.float64)
        >>> reading = singular_values(net, x, block="1", norm_mode="eval")
        >>> reading.rank, reading.values.tolist()
        (6, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """
    _check(method, tol, max_steps)
    matrix_bytes = as_bytes("matrix_bytes", matrix_bytes)
    basis_bytes = as_bytes("basis_bytes", basis_bytes)
    watch = Stopwatch()
    team = None if team is None else as_team(team)
    given = {"block": block, "norm_mode": norm_mode, "outputs": outputs, "team": team}
    jacobian = BlockJacobian(model, batch, **given)
    chosen = _choose(jacobian, tol, matrix_bytes) if method == "auto" else method
    if chosen == "blocks":
        try:
            jacobian = BlockJacobian(model, batch, **given, coupled=False)
        except MeasurementError:
            if method != "auto":
                raise
            chosen = "dense" if max(jacobian.shape) <= _SMALL else "quadrature"
    if chosen == "quadrature":
        return by_quadrature(jacobian, tol, max_steps, seed, basis_bytes, basis, watch)
    return _by_values(jacobian, chosen, matrix_bytes, watch)


def _check(method: str, tol: float, max_steps: int) -> None:
    if not 0 < tol < 1:
        raise ConfigError(f"tol {tol} is not between 0 and 1: try 0.02")
    as_integer("max_steps", max_steps, 1)


def _choose(jacobian: BlockJacobian, tol: float, matrix_bytes: int) -> Method:
    size, samples = min(jacobian.shape), jacobian.samples
    whole = bytes_wanted(*jacobian.shape, 1, jacobian.torch_dtype) <= matrix_bytes
    rows, columns = (length // samples for length in jacobian.shape)
    cubed = min(rows, columns) * rows * columns
    one_by_one = jacobian.output_shape[:1] == jacobian.input_shape[:1]
    by_sample = (
        not jacobian.team.largest(not one_by_one)
        and bytes_wanted(rows, columns, samples, jacobian.torch_dtype) <= matrix_bytes
        and samples * cubed <= _MINUTE
    )
    if by_sample and jacobian.coupling_rank == 0 and samples > 1:
        return "blocks"
    if whole and max(jacobian.shape) <= _SMALL:
        return "dense"
    if by_sample and jacobian.coupling_rank <= tol * size:
        return "blocks"
    return "quadrature"


def _by_values(
    jacobian: BlockJacobian, method: str, matrix_bytes: int, watch: Stopwatch
) -> SingularValues:
    """Return every singular value, of the whole Jacobian or of its blocks."""
    rows, columns = active_units(jacobian)
    take = whole_values if method == "dense" else sample_values
    measured, errors = over_ranks(
        take, jacobian, rows, columns, matrix_bytes=matrix_bytes
    )
    if jacobian.torch_dtype != torch.float64 and len(errors):
        noise = rounding_noise(jacobian)
        errors = errors if noise is None else np.maximum(errors, noise.norm)
    size = min(jacobian.shape)
    tolerance = float(errors.max(initial=0.0))
    # A value near zero may be an exact zero: only units that are off make zeros
    # that are certain, and those are not among these values.
    kept, unsure = measured > tolerance, int((measured <= tolerance).sum())
    values = measured[kept]
    coupling = jacobian.coupling_rank if method == "blocks" else 0
    points = grid(float(measured[0]) if len(measured) else 0.0, CELLS)
    low, cdf, high = _fractions(measured, errors, kept, points, size)
    spread = np.maximum(high - cdf, cdf - low) + coupling / size
    rank = len(values)
    ends = max(0, rank - coupling), min(size, rank + unsure + coupling)
    status = Status.CONVERGED if coupling else Status.EXACT
    return SingularValues(
        values=values,
        value_error=errors[kept],
        weights=np.full(rank, 1 / size),
        points=points,
        cdf=cdf,
        cdf_error=np.minimum(spread, 1.0),
        bound=float(np.minimum(spread, 1.0).max(initial=0.0)),
        rank=rank,
        rank_error=max(rank - ends[0], ends[1] - rank),
        rank_low=ends[0],
        rank_high=ends[1],
        tolerance=tolerance,
        size=size,
        coupling_rank=jacobian.coupling_rank,
        level=1.0,
        # If no value can be distinguished from zero, none was measured.
        status=Status.ROUNDING if unsure and not rank else status,
        norm_mode=jacobian.norm_mode,
        norm_layers=jacobian.norm_layers,
        cost=watch.read(passes=jacobian.passes),
        method="per-sample blocks" if method == "blocks" else "dense",
    )


def _fractions(
    measured: np.ndarray,
    errors: np.ndarray,
    kept: np.ndarray,
    points: np.ndarray,
    size: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distribution function, with its lower and upper bounds."""
    smallest = np.where(kept, measured, 0.0)
    moved = (measured + errors, smallest, np.where(kept, measured - errors, 0.0))
    above = [
        len(measured) - np.searchsorted(np.sort(values), points, side="right")
        for values in moved
    ]
    low, cdf, high = (1 - count / size for count in above)
    return low, cdf, high
