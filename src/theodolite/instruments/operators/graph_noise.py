r"""How far the products of an operator are from exact arithmetic.

With a twin $\tilde H$ (:mod:`~theodolite.instruments.operators.twin`) and random
vectors $g$ the entries of $(\tilde H - H)g$ have the squared norms of the rows of
the error $E$ for a mean, and $g^\top E g$ has its trace. $P$ vectors tell a row's norm
with relative spread $\chi^2_P/P$ at worst, whose 5 % quantile makes a bound of it that
holds in 95 % of cases, or more often where many entries share in the error.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from theodolite.core import stream
from theodolite.instruments.operators.drawing import normal_vector
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.operators.twin import Twin, twin_of

# Vectors: the bound is 2.4 times what they show, and that of the fewest 4.4 times.
_PROBES, _FEWEST = 4, 2
_LEVEL = 0.95
# Numbers that are compared at a time.
_STRETCH = 2**24
# The part of an error by chance that rounding may add without being told closer.
SMALL = 0.1


@dataclass(frozen=True)
class GraphNoise:
    r"""Bounds on the error $E$ of an operator, each at 95 % confidence.

    Attributes:
        rows: On the norm of each row, hence on every entry in it; none unless asked.
        norm: On $\|E\|_F$, hence on the error of any eigenvalue.
        trace: On $|\operatorname{tr} E|$.
    """

    rows: np.ndarray
    norm: float
    trace: float


def graph_noise(
    operator: Operator,
    apply: Callable[[Tensor], Tensor] | None = None,
    enough: Callable[[GraphNoise], bool] | None = None,
    *,
    rows: bool = True,
) -> GraphNoise | None:
    """Measure the error of an operator, or None where it has no twin.

    The twin's products are added to ``passes``.

    Args:
        operator: Any; the trace is NaN unless it is square.
        apply: Multiplies a vector by what is to be judged; the operator by default.
        enough: Says of a wide bound, by two vectors, that it will do.
        rows: Whether rows are to be told apart, on the host, whatever their number.
    """
    size = operator.shape[1]
    whole, square = size <= 2 * _PROBES, operator.shape[0] == size
    early = 0 if whole or enough is None else _FEWEST
    twin = twin_of(operator, once=early > 0)
    if twin is None:
        return None
    squares, forms = np.zeros(operator.shape[0] if rows or whole else 1), []
    count = size if whole else _PROBES
    for vector in _vectors(operator, count, whole=whole):
        gap = difference(operator, twin, vector, apply)
        forms.append(gap.along(vector) if square else np.nan)
        squares += gap.squares() if rows or whole else gap.norm() ** 2
        if len(forms) == early and enough is not None:
            if enough(_bounded(twin, squares, forms, rows=rows)):
                break
    operator.passes += twin.operator.passes
    if not whole:
        return _bounded(twin, squares, forms, rows=rows)
    each = twin.factor * np.sqrt(squares)
    trace = abs(float(np.sum(forms))) if twin.finer else float(each.sum())
    trace = trace if square else float("nan")
    return GraphNoise(each, float(np.linalg.norm(each)), trace)


def noise_norm(operator: Operator) -> float:
    """Return the bound on the norm of an operator's error, measured once; 0 if none."""
    if operator.noise_norm is None:
        found = graph_noise(operator, rows=False)
        operator.noise_norm = 0.0 if found is None else found.norm
    return operator.noise_norm


@dataclass(frozen=True)
class Gap:
    """A twin's product less the operator's, in float64, a stretch at a time.

    Attributes:
        theirs: The twin's.
        ours: The operator's.
    """

    theirs: Tensor
    ours: Tensor

    def along(self, vector: Tensor) -> float:
        """Return the product with a vector."""
        pairs = zip(self._parts(), vector.split(_STRETCH), strict=True)
        found = [part @ same.to(part) for part, same in pairs]
        return float(torch.stack(found).sum()) if found else 0.0

    def norm(self) -> float:
        """Return the norm."""
        found = [part.square().sum() for part in self._parts()]
        return float(torch.stack(found).sum().sqrt()) if found else 0.0

    def squares(self) -> np.ndarray:
        """Return the squares of all numbers, on the host."""
        found = [part.square().cpu() for part in self._parts()]
        return torch.cat(found).numpy() if found else np.empty(0)

    def _parts(self) -> Iterator[Tensor]:
        pairs = zip(self.theirs.split(_STRETCH), self.ours.split(_STRETCH), strict=True)
        for theirs, ours in pairs:
            yield theirs.double() - ours.to(theirs.device, torch.float64)


def difference(
    operator: Operator,
    twin: Twin,
    vector: Tensor,
    apply: Callable[[Tensor], Tensor] | None = None,
) -> Gap:
    """Return the twin's product less the operator's."""
    theirs = twin.operator.matvec(vector.to(twin.operator.dtype)).detach()
    return Gap(theirs, (apply or operator.matvec)(vector).detach())


def eigenvalue_noise(
    operator: Operator, vectors: Tensor, enough: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    r"""Return bounds on $\|Ey\|$ and $|y^\top E y|$ for vectors as rows, or None.

    The latter is how far rounding moves the eigenvalue, to first order; a twin that is
    as coarse shows its size by the former only. Each vector is multiplied, but for
    those that one product with all of them together shows to have errors small enough.

    Args:
        operator: What the vectors belong to.
        vectors: Orthonormal, as rows.
        enough: For each the norm up to which a bound at 95 % confidence will do; 0
            where it is to be measured.
    """
    norms, forms = np.full((2, len(vectors)), np.inf)
    together, shared = np.flatnonzero(enough), None
    if len(together) > 1:
        if (shared := twin_of(operator, once=True)) is None:
            return None
        rows = vectors[torch.as_tensor(together, device=vectors.device)]
        norms[together], forms[together] = _shared_noise(operator, shared, rows)
    left = np.flatnonzero(norms > enough)
    if not len(left):
        return norms, forms
    # One for many products may not fit where that for a single one did.
    if (twin := twin_of(operator, once=len(left) == 1) or shared) is None:
        return None
    before = twin.operator.passes
    for place in left:
        vector = vectors[place]
        gap = difference(operator, twin, vector)
        norms[place] = twin.factor * gap.norm()
        along = abs(gap.along(vector))
        forms[place] = along if twin.finer else norms[place]
    operator.passes += twin.operator.passes - before
    return norms, forms


def _shared_noise(
    operator: Operator, twin: Twin, vectors: Tensor
) -> tuple[float, np.ndarray]:
    r"""Bound the errors of several vectors by one product with $c = \sum_i g_i y_i$.

    For normal $g_i$ the mean of $\|Ec\|^2$ is $\sum_i \|Ey_i\|^2$, and
    $y_i^\top E c$ is normal with the variance $\sum_j (y_i^\top E y_j)^2$. Either is
    below a 250th of that in 5 % of cases at most, those where one direction has it all.
    """
    from scipy.stats import chi2

    drawn = stream(0, "shared noise").standard_normal(len(vectors))
    # One after the other: a card's products of matrices count places in 32 bits.
    mixed = torch.zeros_like(vectors[0])
    for weight, vector in zip(drawn.tolist(), vectors, strict=True):
        mixed.add_(vector, alpha=weight)
    gap = difference(operator, twin, mixed)
    operator.passes += twin.operator.passes
    times = twin.factor / float(np.sqrt(chi2.ppf(1 - _LEVEL, 1)))
    norm = times * gap.norm()
    if not twin.finer:
        return norm, np.full(len(vectors), norm)
    return norm, times * np.abs([gap.along(vector) for vector in vectors])


def _vectors(operator: Operator, count: int, *, whole: bool) -> Iterator[Tensor]:
    """Yield all unit vectors, or some random ones, one at a time."""
    if whole:
        yield from torch.eye(count, dtype=operator.dtype, device=operator.device)
        return
    generator = stream(0, "graph noise")
    for _ in range(count):
        yield normal_vector(operator, generator)


def _bounded(
    twin: Twin, squares: np.ndarray, found: list[float], *, rows: bool
) -> GraphNoise:
    """Bound the error by the sum of squares and by the forms of some vectors."""
    from scipy.stats import chi2, t

    count, forms = len(found), np.array(found)
    shown = twin.factor * np.sqrt(squares / count)
    inflated = shown * np.sqrt(count / chi2.ppf(1 - _LEVEL, count))
    norm = float(np.linalg.norm(inflated))
    # The variance of a form is twice the squared norm, of which there is a bound.
    chance = float(t.ppf((1 + _LEVEL) / 2, count - 1)) * np.sqrt(2 / count)
    mean = abs(float(forms.mean())) if twin.finer else float(np.abs(forms).max())
    trace = mean + chance * float(np.linalg.norm(shown))
    return GraphNoise(inflated if rows else np.empty(0), norm, trace)
