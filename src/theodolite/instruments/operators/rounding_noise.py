r"""Bounds on the rounding errors of an operator's products and of measured matrices.

With a reference $\tilde H$ (see ``rounding_reference``) and random vectors $g$, the
entries of $(\tilde H - H)g$ have the squared norms of the rows of the error $E$ as
their mean squares, and $g^\top E g$ has its trace as its mean. From $P$ vectors a row's
squared norm is known with relative spread $\chi^2_P/P$ at worst; its 5 % quantile gives
a bound that holds in 95 % of cases, or more often where the error is spread over many
entries.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from theodolite.core import stream

from .operator import Operator
from .rounding_reference import RoundingReference, rounding_reference
from .vectors import normal_vector

# Vectors: the bound is 2.4 times what they show, and that of the fewest 4.4 times.
_PROBES, _FEWEST = 4, 2
_LEVEL = 0.95
# Numbers compared at a time.
_PART = 2**24
# Share of a statistical error that rounding may add without a closer measurement.
SMALL = 0.1


@dataclass(frozen=True)
class RoundingNoise:
    r"""Bounds on the error $E$ of an operator, each at 95 % confidence.

    Attributes:
        rows: On the norm of each row, hence on each entry in it; empty by default.
        norm: On $\|E\|_F$, hence on the error of any eigenvalue.
        trace: On $|\operatorname{tr} E|$.
    """

    rows: np.ndarray
    norm: float
    trace: float


def rounding_noise(
    operator: Operator,
    apply: Callable[[Tensor], Tensor] | None = None,
    enough: RoundingNoise | None = None,
    *,
    rows: bool = True,
) -> RoundingNoise | None:
    """Return a bound on the error of an operator, None if it has no reference.

    The reference's products are added to ``passes``.

    Args:
        operator: Any; the trace is NaN unless it is square.
        apply: Product whose error is measured; the operator's by default.
        enough: Norm and trace up to which a wide bound, from two vectors, will do.
        rows: Whether to bound each row, on the host.
    """
    size = operator.shape[1]
    whole, square = size <= 2 * _PROBES, operator.shape[0] == size
    early = 0 if whole or enough is None else _FEWEST
    reference = rounding_reference(operator, once=early > 0)
    if reference is None:
        return None
    squares, forms = np.zeros(operator.shape[0] if rows or whole else 1), []
    count = size if whole else _PROBES
    for vector in _vectors(operator, count, whole=whole):
        gap = difference(operator, reference, vector, apply)
        forms.append(gap.along(vector) if square else np.nan)
        squares += gap.squares() if rows or whole else gap.norm() ** 2
        if len(forms) == early and enough is not None:
            wide = _bounded(reference, squares, forms, rows=rows)
            if wide.norm <= enough.norm and wide.trace <= enough.trace:
                break
    operator.passes += reference.operator.passes
    if not whole:
        return _bounded(reference, squares, forms, rows=rows)
    each = reference.factor * np.sqrt(squares)
    trace = abs(float(np.sum(forms))) if reference.finer else float(each.sum())
    trace = trace if square else float("nan")
    return RoundingNoise(each, float(np.linalg.norm(each)), trace)


def noise_norm(operator: Operator) -> float:
    """Return the bound on the norm of an operator's error, measured once; 0 if none."""
    if operator.noise_norm is None or operator.noise_at != operator.changes:
        noise = rounding_noise(operator, rows=False)
        operator.noise_norm = 0.0 if noise is None else noise.norm
        operator.noise_at = operator.changes
    return operator.noise_norm


@dataclass(frozen=True)
class Gap:
    """A reference's product minus the operator's, in float64, part by part.

    Attributes:
        theirs: The reference's product.
        ours: The operator's product.
    """

    theirs: Tensor
    ours: Tensor

    def along(self, vector: Tensor) -> float:
        """Return the product with a vector."""
        return _along(self._parts(), vector)

    def shift(self, value: float, vector: Tensor, given: Tensor) -> float:
        r"""Return $|\theta\, y^\top c - y^\top \tilde H c|$: how far a value moved.

        Args:
            value: $\theta$.
            vector: $y$.
            given: $c$, the vector that was multiplied: $y$, or a sum of several.
        """
        theirs = (part.double() for part in self.theirs.split(_PART))
        expected = value * _along(given.split(_PART), vector)
        return abs(expected - _along(theirs, vector))

    def norm(self) -> float:
        """Return the norm."""
        sums = [part.square().sum() for part in self._parts()]
        return float(torch.stack(sums).sum().sqrt()) if sums else 0.0

    def squares(self) -> np.ndarray:
        """Return the squares of all numbers, on the host."""
        parts = [part.square().cpu() for part in self._parts()]
        return torch.cat(parts).numpy() if parts else np.empty(0)

    def _parts(self) -> Iterator[Tensor]:
        pairs = zip(self.theirs.split(_PART), self.ours.split(_PART), strict=True)
        for theirs, ours in pairs:
            yield theirs.double() - ours.to(theirs.device, torch.float64)


def _along(parts: Iterable[Tensor], vector: Tensor) -> float:
    """Return the float64 dot product of a vector that comes in parts with another."""
    pairs = zip(parts, vector.split(_PART), strict=True)
    sums = [part.double() @ same.to(part.device, torch.float64) for part, same in pairs]
    return float(torch.stack(sums).sum()) if sums else 0.0


def difference(
    operator: Operator,
    reference: RoundingReference,
    vector: Tensor,
    apply: Callable[[Tensor], Tensor] | None = None,
) -> Gap:
    """Return the reference's product minus the operator's."""
    theirs = reference.operator.product(
        vector.to(reference.operator.torch_dtype)
    ).detach()
    return Gap(theirs, (apply or operator.matvec)(vector).detach())


@dataclass(frozen=True)
class EigenvalueNoise:
    r"""What rounding does to eigenpairs.

    Attributes:
        norms: Bounds on $\|Ey\|$ of each vector.
        shifts: Bounds on how far it moved each value, to first order.
        unforeseen: Norm that one product with all vectors showed, where that was enough
            for all; it includes whatever else the residuals lack.
    """

    norms: np.ndarray
    shifts: np.ndarray
    unforeseen: float | None = None


def eigenvalue_noise(
    operator: Operator,
    values: np.ndarray,
    vectors: Tensor,
    enough: np.ndarray,
    foreseen: Callable[[np.ndarray], Tensor] | None = None,
) -> EigenvalueNoise | None:
    r"""Return what rounding does to eigenpairs, None if there is no reference.

    A finer reference $\tilde H$ shows a shift, $|\theta - y^\top \tilde H y|$; it is
    more than $|y^\top E y|$, since the value comes from other products than that with
    $y$, each with other rounding. For the same reason $\tilde H y$ is compared with the
    product that led to the value, if that is known. A reference that is as coarse shows
    the size of a shift by $\|Ey\|$ only, and is compared with one more product. Each
    vector is multiplied, except those whose errors one product with all of them
    together shows to be small enough.

    Args:
        operator: What the vectors belong to.
        values: Their Ritz values $\theta$.
        vectors: Orthonormal, as rows.
        enough: For each the norm up to which a bound at 95 % confidence is good
            enough; 0 where it must be measured.
        foreseen: Returns the product with $\sum_i w_i y_i$ for weights $w$, as far as
            it is known; the operator multiplies by default.
    """
    norms, shifts = np.full((2, len(vectors)), np.inf)
    together, shared, seen = np.flatnonzero(enough), None, 0.0
    if len(together) > 1:
        if (shared := rounding_reference(operator, once=True)) is None:
            return None
        pairs = _Pairs(operator, shared, values, vectors, foreseen)
        seen, shifts[together] = _shared_noise(pairs, together)
        norms[together] = _SHARED * seen
    left = np.flatnonzero(norms > enough).tolist()
    if not left:
        whole = foreseen is not None and shared is not None and shared.finer
        return EigenvalueNoise(norms, shifts, seen if whole else None)
    # A reference for many products may not fit, even if one for a single product did.
    if (
        reference := rounding_reference(operator, once=len(left) == 1) or shared
    ) is None:
        return None
    pairs = _Pairs(operator, reference, values, vectors, foreseen)
    for place in left:
        weights = np.zeros(len(vectors))
        weights[place] = 1.0
        norms[place], (shifts[place],) = pairs.compared(weights, [place])
    return EigenvalueNoise(norms, shifts)


@dataclass(frozen=True)
class _Pairs:
    """Eigenpairs beside a reference, as in :func:`eigenvalue_noise`."""

    operator: Operator
    reference: RoundingReference
    values: np.ndarray
    vectors: Tensor
    foreseen: Callable[[np.ndarray], Tensor] | None

    def compared(
        self, weights: np.ndarray, places: Sequence[int] | np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Multiply a weighted sum; return its error, and the shifts at some places."""
        # One by one: matrix products on a GPU index entries with 32 bits.
        mixed = torch.zeros_like(self.vectors[0])
        for place in np.flatnonzero(weights):
            mixed.add_(self.vectors[place], alpha=float(weights[place]))
        before = self.reference.operator.passes
        gap = difference(self.operator, self.reference, mixed, self._known(weights))
        self.operator.passes += self.reference.operator.passes - before
        seen = self.reference.factor * gap.norm()
        if not self.reference.finer:
            return seen, np.full(len(places), seen)
        at = [(float(self.values[place]), self.vectors[place]) for place in places]
        return seen, np.array([gap.shift(*pair, mixed) for pair in at])

    def _known(self, weights: np.ndarray) -> Callable[[Tensor], Tensor] | None:
        """Return what to compare with, None for a product of the operator."""
        foreseen = self.foreseen if self.reference.finer else None
        return None if foreseen is None else lambda _: foreseen(weights)


# With 95 % confidence an error is at most so many times that of a sum.
_SHARED = 0.5 / (1 - _LEVEL)


def _shared_noise(pairs: _Pairs, places: np.ndarray) -> tuple[float, np.ndarray]:
    r"""Return the error of $c = \sum_i g_i y_i$, and bounds on the shifts.

    A $g_i$ of random sign whose size is uniform from 1/2 to 5/2 has a density of 1/4 at
    most: for any contribution of the other vectors, $\|Ec\|$ is below a tenth of
    $\|Ey_i\|$, and the shift seen along $y_i$ below a tenth of that of $y_i$ alone, in
    5 % of cases at most. Where they add little, as rounding in proportion to $H$ does,
    it is no less than half of it; a normal $g_i$ may be near 0 even then.
    """
    generator, weights = stream(0, "shared noise"), np.zeros(len(pairs.values))
    signs = generator.choice([-1.0, 1.0], len(places))
    weights[places] = signs * generator.uniform(0.5, 2.5, len(places))
    seen, shifts = pairs.compared(weights, places)
    return seen, _SHARED * shifts


def _vectors(operator: Operator, count: int, *, whole: bool) -> Iterator[Tensor]:
    """Yield all unit vectors, or some random ones, one at a time."""
    if whole:
        yield from torch.eye(count, dtype=operator.torch_dtype, device=operator.device)
        return
    generator = stream(0, "graph noise")
    for _ in range(count):
        yield normal_vector(operator, generator)


def _bounded(
    reference: RoundingReference,
    squares: np.ndarray,
    values: list[float],
    *,
    rows: bool,
) -> RoundingNoise:
    """Return error bounds from the squares and quadratic forms of some vectors."""
    from scipy.stats import chi2, t

    count, forms = len(values), np.array(values)
    shown = reference.factor * np.sqrt(squares / count)
    inflated = shown * np.sqrt(count / chi2.ppf(1 - _LEVEL, count))
    norm = float(np.linalg.norm(inflated))
    # The variance of a form is twice the squared norm, of which there is a bound.
    chance = float(t.ppf((1 + _LEVEL) / 2, count - 1)) * np.sqrt(2 / count)
    mean = abs(float(forms.mean())) if reference.finer else float(np.abs(forms).max())
    trace = mean + chance * float(np.linalg.norm(shown))
    return RoundingNoise(inflated if rows else np.empty(0), norm, trace)
