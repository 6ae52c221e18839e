"""Few samples in place of many, for whoever sees second moments alone."""

import numpy as np

from theodolite.core import DataError, Numbers, as_numbers


def condense(x: Numbers, y: Numbers) -> tuple[np.ndarray, np.ndarray]:
    r"""Return few samples with the second moments of all, as many as both are wide.

    With $S = E[zz^\top] = V\,\mathrm{diag}(w)\,V^\top$ for $z = (x, y)$, the rows
    $\sqrt{n\,w_k}\,v_k$, $n$ the width of $z$, have the same $S$: to a linear network
    and the square loss they are the same data.

    Args:
        x: Inputs, a row a sample.
        y: Targets, a row a sample.

    Returns:
        Inputs and targets.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(50, 3))
        >>> few, _ = condense(x, 2 * x)
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
