"""The inverse of a positive definite operator, by conjugate gradients.

References:
    Hestenes and Stiefel (1952), Methods of conjugate gradients for solving linear
    systems, Journal of Research of the National Bureau of Standards 49.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from theodolite.core import ConfigError, MeasurementError, Status, stream

from ..differentiate.derivatives import Layout
from .combined import Combined
from .operator import Operator
from .vectors import normal_vector

# Curvature along a direction, relative to the largest, up to so many roundings is that
# of a singular operator, by choice.
_SINGULAR = 4.0
# Numbers of a dot product that are converted to float64 at a time.
_PART = 2**20


@dataclass(frozen=True, eq=False)
class Solution:
    r"""A vector $x$ with $Ax = b$ up to a residual.

    Attributes:
        vector: $x$.
        residual: $\|b - Ax\| / \|b\|$, by one more product.
        status: Whether the residual is below the tolerance.
        matvecs: Products spent.
    """

    vector: Tensor
    residual: float
    status: Status
    matvecs: int


class Inverse(Combined):
    """The inverse of a symmetric positive definite operator.

    Every product solves for its vector; a warning says if the tolerance was not
    reached. A direction of negative or no curvature is refused. The first product
    also solves for a random vector, since a special one may hide such directions.

    Args:
        inner: The operator, symmetric and positive definite.
        tol: Residual to reach, relative to the vector: 1e-10 in float64 and 1e-5 below
            by default.
        max_matvecs: Most products per solution.

    Attributes:
        residual: Largest relative residual of the products so far.
        status: Worst status of the products so far.

    Example:
        >>> from theodolite.instruments import MatrixOperator
        >>> matrix = torch.diag(torch.tensor([1.0, 4.0], dtype=torch.float64))
        >>> inverse = MatrixOperator(matrix, symmetric=True).inverse()
        >>> inverse @ torch.tensor([1.0, 1.0])
        tensor([1.0000, 0.2500], dtype=torch.float64)
        >>> inverse.residual < 1e-10, str(inverse.status)
        (True, 'converged')
    """

    def __init__(
        self, inner: Operator, *, tol: float | None = None, max_matvecs: int = 1000
    ) -> None:
        if not inner.symmetric or not inner.shape[0]:
            raise MeasurementError(
                f"{inner.written()} of shape {inner.shape} cannot be inverted by "
                "conjugate gradients: pass a symmetric operator, as J.T @ J"
            )
        super().__init__([inner])
        fine = inner.torch_dtype == torch.float64
        self.tol = (1e-10 if fine else 1e-5) if tol is None else tol
        self.max_matvecs = max_matvecs
        if not 0 < self.tol < 1 or max_matvecs < 2:
            raise ConfigError(
                f"tol is {tol!r} and max_matvecs {max_matvecs!r}: pass a tolerance "
                "between 0 and 1, as 1e-6, and at least 2 products"
            )
        self.shape, self.layout = inner.shape, inner.layout
        self.inexact = True
        self.residual, self.status, self._checked = 0.0, Status.CONVERGED, False
        self._settle()

    @property
    def row_layout(self) -> Layout:
        """Names and shapes of the parameters along the rows."""
        return self.layout

    def key(self, *, flipped: bool = False) -> Any:
        """Return how the operator is written, or its transpose."""
        return "inverse", self.parts[0].key(flipped=flipped)

    def written(self, *, modes: bool = False) -> str:
        """Return the operator in words."""
        return f"inverse of ({self.parts[0].written(modes=modes)})"

    def rebuilt(self, parts: Sequence[Operator]) -> Operator:
        """Return the inverse of another operator."""
        return Inverse(parts[0], tol=self.tol, max_matvecs=self.max_matvecs)

    @property
    def at_once(self) -> int:
        """One: every vector is solved for by itself."""
        return 1

    def _apply(self, vectors: Tensor, *, many: bool = False) -> Tensor:
        if many:
            return torch.stack([self._apply(vector) for vector in vectors])
        solution = self.solve(vectors)
        if not solution.status.trusted:
            warnings.warn(
                f"the inverse reached a residual of {solution.residual:.1e} after "
                f"{solution.matvecs} products, wanted was {self.tol:.0e} "
                f"({solution.status}): raise max_matvecs or tol, or add damping",
                RuntimeWarning,
                stacklevel=2,
            )
        return solution.vector

    def solve(self, vector: Tensor) -> Solution:
        """Return the solution for one flat vector, with its residual and status."""
        inner = self.parts[0]
        with inner.together():
            if not self._checked:
                drawn = normal_vector(inner, stream(0, "definite"))
                _solved(inner, drawn, self.tol, self.max_matvecs)
                self._checked = True
            given = vector.detach().to(dtype=self.torch_dtype, device=self.device)
            solution = _solved(inner, given, self.tol, self.max_matvecs)
        self.residual = max(self.residual, solution.residual)
        self.status = Status.worst([self.status, solution.status])
        return solution


def _solved(operator: Operator, b: Tensor, tol: float, most: int) -> Solution:
    """Solve by conjugate gradients, restarted from true residuals until they agree."""
    size, x, spent, reached = _dot(b, b) ** 0.5, torch.zeros_like(b), 0, 1.0
    if size == 0:
        return Solution(x, 0.0, Status.CONVERGED, 0)
    rest = b.clone()
    while True:
        step, used = _descended(operator, rest, tol * size, most - spent - 1)
        x, spent = x + step, spent + used + 1
        rest = b - operator.product(x)
        before, reached = reached, _dot(rest, rest) ** 0.5 / size
        if not reached < float("inf"):
            return Solution(x, float("inf"), Status.NONFINITE, spent)
        if reached <= tol:
            return Solution(x, reached, Status.CONVERGED, spent)
        if spent >= most - 1:
            return Solution(x, reached, Status.MAX_MATVECS, spent)
        if reached > before / 2:  # restarts no longer help
            return Solution(x, reached, Status.ROUNDING, spent)


def _descended(
    operator: Operator, b: Tensor, enough: float, most: int
) -> tuple[Tensor, int]:
    r"""Return an $x$ with $\|b - Ax\|$ small, and the products spent.

    Notation: residual $r$, direction $p$, step $\alpha$ of Hestenes and Stiefel.
    """
    x, r, p = torch.zeros_like(b), b.clone(), b.clone()
    square, largest, spent = _dot(r, r), 0.0, 0
    while square**0.5 > enough and spent < most:
        image = operator.product(p).detach()
        spent += 1
        length = _dot(p, p)
        curvature = _dot(p, image) / length
        largest = max(largest, (_dot(image, image) / length) ** 0.5)
        if not curvature < float("inf"):
            break  # NaN or infinity, which the caller reports
        _refuse_indefinite(operator, curvature, largest)
        alpha = square / (curvature * length)
        x.add_(p, alpha=alpha)
        r.sub_(image, alpha=alpha)
        before, square = square, _dot(r, r)
        p = r + (square / before) * p
    return x, spent


def _refuse_indefinite(operator: Operator, curvature: float, largest: float) -> None:
    floor = _SINGULAR * torch.finfo(operator.torch_dtype).eps * largest
    if curvature > floor:
        return
    kind = "indefinite" if curvature < -floor else "singular"
    raise MeasurementError(
        f"{operator.written()} is {kind}: its curvature is {curvature:.1e} along one "
        f"direction and {largest:.1e} along another, and an inverse wants it positive; "
        "add damping, as (H + 0.1 * Identity(H)).inverse()"
    )


def _dot(left: Tensor, right: Tensor) -> float:
    """Return the dot product in float64, part by part."""
    pairs = zip(left.split(_PART), right.split(_PART), strict=True)
    sums = [part.double() @ same.double() for part, same in pairs]
    return float(torch.stack(sums).sum())
