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

# Vectors: the bound is 2.4 times what they show.
_PROBES = 4
_LEVEL = 0.95


@dataclass(frozen=True)
class GraphNoise:
    r"""Bounds on the error $E$ of an operator, each at 95 % confidence.

    Attributes:
        rows: On the norm of each row, hence on every entry in it.
        norm: On $\|E\|_F$, hence on the error of any eigenvalue.
        trace: On $|\operatorname{tr} E|$.
    """

    rows: np.ndarray
    norm: float
    trace: float


def graph_noise(
    operator: Operator, apply: Callable[[Tensor], Tensor] | None = None
) -> GraphNoise | None:
    """Measure the error of an operator, or None where it has no twin.

    The twin's products are added to ``passes``.

    Args:
        operator: Any; the trace is NaN unless it is square.
        apply: Multiplies a vector by what is to be judged; the operator by default.
    """
    twin = twin_of(operator)
    if twin is None:
        return None
    size = operator.shape[1]
    whole, square = size <= 2 * _PROBES, operator.shape[0] == size
    squares, forms = np.zeros(operator.shape[0]), []
    count = size if whole else _PROBES
    for vector in _vectors(operator, count, whole=whole):
        gap = difference(operator, twin, vector, apply)
        if square:
            forms.append(float(vector.double().cpu().numpy() @ gap))
        squares += np.square(gap, out=gap)
    operator.passes += twin.operator.passes
    rows = twin.factor * np.sqrt(squares / (1 if whole else count))
    if whole:
        trace = abs(float(np.sum(forms))) if twin.finer else float(rows.sum())
        trace = trace if square else float("nan")
        return GraphNoise(rows, float(np.linalg.norm(rows)), trace)
    forms = np.array(forms if square else [np.nan] * count)
    return _bounded(rows, forms, finer=twin.finer)


def noise_norm(operator: Operator) -> float:
    """Return the bound on the norm of an operator's error, measured once; 0 if none."""
    if operator.noise_norm is None:
        found = graph_noise(operator)
        operator.noise_norm = 0.0 if found is None else found.norm
    return operator.noise_norm


def difference(
    operator: Operator,
    twin: Twin,
    vector: Tensor,
    apply: Callable[[Tensor], Tensor] | None = None,
) -> np.ndarray:
    """Return the twin's product less the operator's, in float64."""
    theirs = twin.operator.matvec(vector.to(twin.operator.dtype)).detach().double()
    ours = (apply or operator.matvec)(vector).detach().double()
    return (theirs - ours.to(theirs.device)).cpu().numpy()


def eigenvalue_noise(
    operator: Operator, vectors: Tensor
) -> tuple[np.ndarray, np.ndarray] | None:
    r"""Return $\|Ey\|$ and $|y^\top E y|$ for unit vectors as rows, or None.

    The latter is how far rounding moves the eigenvalue, to first order; a twin that is
    as coarse shows its size by the former only.
    """
    twin = twin_of(operator)
    if twin is None:
        return None
    norms, forms = np.empty(len(vectors)), np.empty(len(vectors))
    for place, vector in enumerate(vectors):
        gap = difference(operator, twin, vector)
        norms[place] = twin.factor * float(np.linalg.norm(gap))
        along = abs(float(vector.double().cpu().numpy() @ gap))
        forms[place] = along if twin.finer else norms[place]
    operator.passes += twin.operator.passes
    return norms, forms


def _vectors(operator: Operator, count: int, *, whole: bool) -> Iterator[Tensor]:
    """Yield all unit vectors, or some random ones, one at a time."""
    if whole:
        yield from torch.eye(count, dtype=operator.dtype, device=operator.device)
        return
    generator = stream(0, "graph noise")
    for _ in range(count):
        yield normal_vector(operator, generator)


def _bounded(rows: np.ndarray, forms: np.ndarray, *, finer: bool) -> GraphNoise:
    from scipy.stats import chi2, t

    count = len(forms)
    inflated = rows * np.sqrt(count / chi2.ppf(1 - _LEVEL, count))
    norm = float(np.linalg.norm(inflated))
    # The variance of a form is twice the squared norm, of which there is a bound.
    chance = float(t.ppf((1 + _LEVEL) / 2, count - 1)) * np.sqrt(2 / count)
    mean = abs(float(forms.mean())) if finer else float(np.abs(forms).max())
    return GraphNoise(inflated, norm, mean + chance * float(np.linalg.norm(rows)))
