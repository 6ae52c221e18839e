"""Whitening, and a small set of samples with the second moments of a large one."""

from dataclasses import dataclass

import numpy as np

from theodolite.core import ConfigError, DataError, Numbers, as_numbers, convert_fields


@dataclass(frozen=True, eq=False)
class Whitening:
    r"""The map $x \mapsto \Lambda^{-1/2} V^\top (x - \bar x)$.

    Attributes:
        mean: $\bar x$, shape (d,).
        components: $V$, one unit eigenvector per column, shape (d, k); the entry of
            largest size in each is positive.
        eigenvalues: Diagonal of $\Lambda$, descending, shape (k,).
    """

    mean: np.ndarray
    components: np.ndarray
    eigenvalues: np.ndarray

    def __post_init__(self) -> None:
        convert_fields(self, mean=("d",))
        convert_fields(self, components=(len(self.mean), "k"))
        convert_fields(self, eigenvalues=self.components.shape[1:])

    def apply(self, x: Numbers) -> np.ndarray:
        """Return whitened rows (N, k), of the data fitted or of others."""
        rows = _matrix(x)
        if rows.shape[1] != len(self.mean):
            raise DataError(
                f"samples have {rows.shape[1]} entries, this whitening was fitted to "
                f"{len(self.mean)}: pass samples of the same kind"
            )
        return (rows - self.mean) @ self.components / np.sqrt(self.eigenvalues)


def whiten(x: Numbers, k: int = 10) -> Whitening:
    r"""Return the whitening of the ``k`` leading principal components.

    The covariance is $\frac{1}{m}\sum (x-\bar x)(x-\bar x)^\top$, so the whitened
    training rows satisfy $\frac{1}{m} X^\top X = I$.

    Args:
        x: Rows (m, d), for instance ``dataset.flat()``.
        k: Components to keep.

    Raises:
        DataError: The data span fewer than ``k`` directions: the k-th eigenvalue is
            below $\varepsilon\, d$ times the largest, the error of the eigensolver.

    Example:
        >>> x = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
        >>> whiten(x, k=2).eigenvalues
        array([2. , 0.5])
    """
    rows = _matrix(x)
    width = rows.shape[1]
    if not 1 <= k <= width:
        raise ConfigError(f"k is {k!r}: pass a whole number from 1 to {width}")
    mean = rows.mean(axis=0)
    centred = rows - mean
    values, vectors = np.linalg.eigh(centred.T @ centred / len(rows))
    values, vectors = values[::-1], vectors[:, ::-1]
    rounding = float(np.finfo(np.float64).eps) * width * float(values[0])
    rank = int((values > rounding).sum())
    if rank < k:
        raise DataError(
            f"{len(rows)} samples of {width} entries span {rank} directions, "
            f"k={k} were asked for: pass k={rank} or more varied samples"
            if rank
            else f"all {len(rows)} samples are equal: whitening needs varied samples"
        )
    vectors = vectors[:, :k]
    peak = vectors[np.abs(vectors).argmax(axis=0), np.arange(k)]
    return Whitening(mean, vectors * np.sign(peak), values[:k].copy())


def _matrix(x: Numbers) -> np.ndarray:
    rows = as_numbers("x", x, ..., error=DataError)
    if rows.ndim != 2 or rows.size == 0:
        raise DataError(
            f"samples have shape {rows.shape}: pass rows (N, d), such as dataset.flat()"
        )
    return rows


def moment_samples(x: Numbers, y: Numbers) -> tuple[np.ndarray, np.ndarray]:
    r"""Return a small set of samples with the same second moments.

    With $S = E[zz^\top] = V\,\mathrm{diag}(w)\,V^\top$ for $z = (x, y)$, the rows
    $\sqrt{n\,w_k}\,v_k$, $n$ the width of $z$, have the same $S$: to a linear network
    and the square loss they are the same data.

    Args:
        x: Inputs, one row per sample.
        y: Targets, one row per sample.

    Returns:
        Inputs and targets; the number of samples is the sum of both widths.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(50, 3))
        >>> few, _ = moment_samples(x, 2 * x)
        >>> few.shape, bool(np.allclose(few.T @ few / 6, x.T @ x / 50))
        ((6, 3), True)
    """
    parts = [
        as_numbers(name, part, "samples", "width", error=DataError)
        for name, part in (("x", x), ("y", y))
    ]
    if len({len(part) for part in parts}) > 1 or not len(parts[0]):
        raise DataError(
            f"{len(parts[0])} inputs and {len(parts[1])} targets were given: pass as "
            "many of each, and at least one"
        )
    both = np.hstack(parts)
    values, vectors = np.linalg.eigh(both.T @ both / len(both))
    rows = np.sqrt(len(values) * np.clip(values, 0, None))[:, None] * vectors.T
    width = parts[0].shape[1]
    return rows[:, :width], rows[:, width:]
