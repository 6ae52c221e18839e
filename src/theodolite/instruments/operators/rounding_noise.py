r"""Bounds on the rounding errors of an operator's products and of measured matrices.

With a reference $\tilde H$ (see ``rounding_reference``) and random vectors $g$, the
entries of $(\tilde H - H)g$ have the squared norms of the rows of the error $E$ as
their mean squares, and $g^\top E g$ has its trace as its mean. From $P$ vectors a row's
squared norm is known with relative spread $\chi^2_P/P$ at worst; its 5 % quantile gives
a bound that holds in 95 % of cases, or more often where the error is spread over many
entries.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from theodolite.core import stream

from .long_vectors import normal_vector
from .matrix_operator import MatrixOperator
from .operator import Operator
from .rounding_reference import RoundingReference, rounding_reference

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
    enough: Callable[[RoundingNoise], bool] | None = None,
    *,
    rows: bool = True,
) -> RoundingNoise | None:
    """Return a bound on the error of an operator, None if it has no reference.

    The reference's products are added to ``passes``.

    Args:
        operator: Any; the trace is NaN unless it is square.
        apply: Product whose error is measured; the operator's by default.
        enough: Whether a wide bound, from two vectors, is good enough.
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
            if enough(_bounded(reference, squares, forms, rows=rows)):
                break
    operator.passes += reference.operator.passes
    if not whole:
        return _bounded(reference, squares, forms, rows=rows)
    each = reference.factor * np.sqrt(squares)
    trace = abs(float(np.sum(forms))) if reference.finer else float(each.sum())
    trace = trace if square else float("nan")
    return RoundingNoise(each, float(np.linalg.norm(each)), trace)


def is_measured(operator: Operator) -> bool:
    """Return whether rounding is measured: below float64, and where terms cancel."""
    return operator.torch_dtype != torch.float64 or operator.cancels


def noise_norm(operator: Operator) -> float:
    """Return the bound on the norm of an operator's error, measured once; 0 if none."""
    if operator.noise_norm is None:
        noise = rounding_noise(operator, rows=False)
        operator.noise_norm = 0.0 if noise is None else noise.norm
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
    theirs = reference.operator.matvec(
        vector.to(reference.operator.torch_dtype)
    ).detach()
    return Gap(theirs, (apply or operator.matvec)(vector).detach())


def eigenvalue_noise(
    operator: Operator, values: np.ndarray, vectors: Tensor, enough: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    r"""Return bounds on $\|Ey\|$ and on the shifts of values, or None.

    A shift is how far rounding moved a value, to first order. A finer reference
    $\tilde H$ shows it, $|\theta - y^\top \tilde H y|$; it is more than $|y^\top E y|$,
    since the value comes from other products than that with $y$, each with other
    rounding. A reference that is as coarse shows its size by $\|Ey\|$ only. Each vector
    is multiplied, except those whose errors one product with all of them together shows
    to be small enough.

    Args:
        operator: What the vectors belong to.
        values: Their Ritz values $\theta$.
        vectors: Orthonormal, as rows.
        enough: For each the norm up to which a bound at 95 % confidence is good
            enough; 0 where it must be measured.
    """
    norms, forms = np.full((2, len(vectors)), np.inf)
    together, shared = np.flatnonzero(enough), None
    if len(together) > 1:
        if (shared := rounding_reference(operator, once=True)) is None:
            return None
        rows = vectors[torch.as_tensor(together, device=vectors.device)]
        norms[together], forms[together] = _shared_noise(
            operator, shared, values[together], rows
        )
    left = np.flatnonzero(norms > enough)
    if not len(left):
        return norms, forms
    # A reference for many products may not fit, even if one for a single product did.
    if (
        reference := rounding_reference(operator, once=len(left) == 1) or shared
    ) is None:
        return None
    before = reference.operator.passes
    for place in left:
        vector = vectors[place]
        gap = difference(operator, reference, vector)
        norms[place] = reference.factor * gap.norm()
        shift = gap.shift(float(values[place]), vector, vector)
        forms[place] = shift if reference.finer else norms[place]
    operator.passes += reference.operator.passes - before
    return norms, forms


def _shared_noise(
    operator: Operator,
    reference: RoundingReference,
    values: np.ndarray,
    vectors: Tensor,
) -> tuple[float, np.ndarray]:
    r"""Bound the errors of several vectors by one product with $c = \sum_i g_i y_i$.

    A $g_i$ of random sign whose size is uniform from 1/2 to 5/2 has a density of 1/4 at
    most: for any contribution of the other vectors, $\|Ec\|$ is below a tenth of
        $\|Ey_i\|$, and
    the shift seen along $y_i$ below a tenth of that of $y_i$ alone, in 5 % of cases at
    most. Where they add little, as rounding in proportion to $H$ does, it is no less
    than half of it; a normal $g_i$ may be near 0 even then.
    """
    generator, count = stream(0, "shared noise"), len(vectors)
    drawn = generator.choice([-1.0, 1.0], count) * generator.uniform(0.5, 2.5, count)
    # One by one: matrix products on a GPU index entries with 32 bits.
    mixed = torch.zeros_like(vectors[0])
    for weight, vector in zip(drawn.tolist(), vectors, strict=True):
        mixed.add_(vector, alpha=weight)
    gap = difference(operator, reference, mixed)
    operator.passes += reference.operator.passes
    times = reference.factor * 0.5 / (1 - _LEVEL)
    norm = times * gap.norm()
    if not reference.finer:
        return norm, np.full(len(vectors), norm)
    pairs = zip(values.tolist(), vectors, strict=True)
    return norm, times * np.array([gap.shift(*pair, mixed) for pair in pairs])


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
    if is_measured(operator) or suspect:
        noise = rounding_noise(
            operator, lambda v: torch.as_tensor(matrix @ v.double().cpu().numpy())
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
