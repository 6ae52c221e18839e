"""The result class, and singular values of a Jacobian from its products only."""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch

from theodolite.core import (
    Dims,
    MeasurementError,
    Reading,
    Scalar,
    Status,
    Stopwatch,
    stream,
)

from ..operators.block_jacobian import BlockJacobian
from ..operators.operator import Operator
from ..solvers.bidiagonal import GaussRule, chance, gauss_rule, grid
from ..solvers.lanczos import Placement, storage_for
from .dense_values import active_units


@dataclass(frozen=True, kw_only=True, eq=False)
class SingularValues(Reading):
    r"""Distribution of the singular values of a block's Jacobian.

    Attributes:
        values: Singular values that are not zero, descending; by quadrature, its nodes.
        value_error: Bound on the rounding of each; by quadrature, the distance within
            which a true singular value lies.
        weights: Fraction of all ``size`` values that each represents.
        points: Grid from 0 to the largest value.
        cdf: Fraction of singular values, zeros included, up to each point.
        cdf_error: Bound on the error of ``cdf``: what ``value_error`` moves across a
            point, the rank bound for per-sample blocks, and by quadrature a band that
            holds at all points at once with probability ``level``.
        bound: Largest ``cdf_error``.
        rank: Values above ``tolerance``, which are certainly not zero.
        rank_error: Largest error of the rank, in both directions.
        rank_low: Lower bound of the rank.
        rank_high: Upper bound of the rank: values below ``tolerance`` may be nonzero.
            Units that are off, as after a ReLU, give exact zeros.
        tolerance: Size below which a value cannot be distinguished from zero.
        size: Number of singular values, zeros included.
        coupling_rank: Rank by which batch statistics couple the samples at most.
        level: Confidence of the errors; 1 for bounds without chance.
    """

    values: Annotated[np.ndarray, Dims("position", error="value_error")]
    value_error: Annotated[np.ndarray, Dims("position")]
    weights: Annotated[np.ndarray, Dims("position")]
    points: np.ndarray
    cdf: Annotated[np.ndarray, Dims("point")]
    cdf_error: Annotated[np.ndarray, Dims("point")]
    bound: Scalar
    rank: Annotated[int, Dims()]
    rank_error: Annotated[int, Dims()]
    rank_low: Annotated[int, Dims()]
    rank_high: Annotated[int, Dims()]
    tolerance: Scalar
    size: Annotated[int, Dims()]
    coupling_rank: Annotated[int, Dims()]
    level: float

    def coordinates(self) -> dict[str, list]:
        """Return positions from the top, and the grid."""
        return {
            "position": list(range(len(self.values))),
            "point": self.points.tolist(),
        }

    def summary_lines(self) -> list[str]:
        """Return what ``print`` shows: the distribution in a sentence first."""
        first, *rest = Reading.summary_lines(self)
        top = self.values[0] if len(self.values) else 0.0
        rank = f"{self.rank_low:,} to {self.rank_high:,}"
        if self.rank_low == self.rank_high:
            rank = f"{self.rank:,}"
        return [
            first,
            f"  {self.size:,} singular values up to {top:.4g}, rank {rank}",
            f"  distribution within {self.bound:.2g}",
            *rest,
        ]


# Cells of the grid on which the distribution function is reported.
CELLS = 512
# Confidence of the band.
LEVEL = 0.95
# Largest number of starts: sampling error then adds 0.24/sqrt(n) to the band.
_PROBES = 64


def by_quadrature(
    jacobian: BlockJacobian,
    tol: float,
    max_steps: int,
    seed: int,
    basis_bytes: int,
    basis: Placement,
    watch: Stopwatch,
) -> SingularValues:
    """Estimate the distribution from random starts on the active units."""
    rows, columns = active_units(jacobian, seed=seed)
    right = int(columns.sum()) <= int(rows.sum())
    operator: Operator = jacobian if right else jacobian.T
    mask = columns if right else rows
    active = int(mask.sum())
    steps = max(1, min(max_steps, active))
    _forecast(jacobian, steps, basis_bytes)
    length = sum(jacobian.shape)
    storage = storage_for(jacobian, basis, vectors=steps, least=1, length=length)
    # Active units carry part of the distribution only, so their own may be off by
    # more. A third of that goes to chance, the rest to truncation.
    wanted = tol * min(jacobian.shape) / max(active, 1)
    probes = int(np.ceil((3 * chance(active, 1, LEVEL) / wanted) ** 2))
    probes = max(1, min(probes, _PROBES))
    allowed = max(wanted - chance(active, probes, LEVEL), wanted / 3)
    rules: list[GaussRule] = []
    for probe in range(probes if active else 0):
        drawn = stream(seed, "probe", probe).standard_normal(len(mask))
        start = torch.from_numpy(drawn).to(
            dtype=operator.torch_dtype, device=operator.device
        )
        rule, _ = gauss_rule(
            operator,
            start * mask,
            steps=steps,
            tol=allowed,
            cells=CELLS,
            storage=storage,
        )
        if rule is None:
            raise MeasurementError(
                "a product with the Jacobian holds NaN or infinity: look for square "
                "roots or divisions at 0 in the block, and check the batch"
            )
        rules.append(rule)
    reading = _assembled(jacobian, rules, active, tol, seed, watch)
    return replace(reading, method=storage.told(reading.method))


def _assembled(
    jacobian: BlockJacobian,
    rules: list[GaussRule],
    active: int,
    tol: float,
    seed: int,
    watch: Stopwatch,
) -> SingularValues:
    """Average the rules, and put the zeros that are known for certain back."""
    size = min(jacobian.shape)
    share, zeros = active / size, 1 - active / size
    nodes = np.concatenate([rule.nodes for rule in rules] or [np.zeros(0)])
    weights = np.concatenate([rule.weights for rule in rules] or [np.zeros(0)])
    residuals = np.concatenate([rule.residuals for rule in rules] or [np.zeros(0)])
    top = float(nodes.max(initial=0.0))
    tolerance = torch.finfo(jacobian.torch_dtype).eps * max(jacobian.shape) * top
    points = grid(top, CELLS)
    low, high = _band(rules, np.append(points, tolerance), active)
    low, high = zeros + share * low, zeros + share * high
    order = np.argsort(nodes)[::-1]
    order = order[nodes[order] > tolerance]
    error = (high - low)[:-1] / 2
    bound = float(error.max(initial=0.0))
    # The rank is at most the active units, and falls short of them by what mass the
    # band allows at zero.
    missing = int(np.ceil(size * max(0.0, high[-1] - zeros)))
    return SingularValues(
        values=nodes[order],
        value_error=residuals[order] + tolerance,
        weights=weights[order] * share / max(1, len(rules)),
        points=points,
        cdf=((low + high) / 2)[:-1],
        cdf_error=error,
        bound=bound,
        rank=active,
        rank_error=min(active, missing),
        rank_low=active - min(active, missing),
        rank_high=active,
        tolerance=tolerance,
        size=size,
        coupling_rank=jacobian.coupling_rank,
        level=LEVEL,
        status=Status.CONVERGED if bound <= tol else Status.MAX_MATVECS,
        norm_mode=jacobian.norm_mode,
        norm_layers=jacobian.norm_layers,
        seed=seed,
        cost=watch.read(passes=jacobian.passes),
        method=f"quadrature, {len(rules)} start{'s' if len(rules) != 1 else ''}",
    )


def _band(
    rules: list[GaussRule], points: np.ndarray, active: int
) -> tuple[np.ndarray, np.ndarray]:
    """Bound the distribution of the active units' singular values."""
    if not rules:
        return np.ones_like(points), np.ones_like(points)
    bounds = [rule.envelope(points) for rule in rules]
    low, high = np.mean(bounds, axis=0)
    slack = chance(active, len(rules), LEVEL)
    return np.clip(low - slack, 0, 1), np.clip(high + slack, 0, 1)


def _forecast(jacobian: BlockJacobian, steps: int, basis_bytes: int) -> None:
    wanted = steps * sum(jacobian.shape) * jacobian.torch_dtype.itemsize
    if wanted > basis_bytes:
        raise MeasurementError(
            f"{steps} steps on a Jacobian of shape {jacobian.shape} keep "
            f"{wanted / 2**30:.3g} GiB of vectors, allowed are "
            f"{basis_bytes / 2**30:.3g}: lower max_steps, or raise basis_bytes"
        )
