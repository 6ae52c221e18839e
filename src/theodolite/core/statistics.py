"""Means and lines over networks.

The unit of replication is the network (the seed): inputs to one network share its
weights and are not independent draws. A NaN or infinite value is never left out: it
makes the standard error NaN.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .errors import ConfigError
from .rows import Row, Rows, sortable


def group_means(rows: Rows, by: Iterable[str], *, log: bool = False) -> Rows:
    """Return a row for each combination of labels, with the mean over its rows.

    Rows without a finite value are left out and counted as ``lost``. Each row has
    ``value`` (the mean), ``error`` (its standard error), ``spread`` (the standard
    deviation over networks, 0 for one), ``n``, ``lost``, and ``open``: whether some
    row's own error is not known or not finite.

    Args:
        rows: Rows of one quantity.
        by: Labels that define a point.
        log: Average decimal logarithms.

    Example:
        >>> table = Rows({"depth": 2, "trial": t, "value": 10.0**t} for t in (0, 2))
        >>> group_means(table, ["depth"], log=True).value(depth=2)
        1.0
    """
    labels = tuple(by)
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(label) for label in labels), []).append(row)
    averages = (
        {**dict(zip(labels, key, strict=True)), **_point(group, log)}
        for key, group in groups.items()
    )
    return Rows(sorted(averages, key=lambda row: [sortable(row[x]) for x in labels]))


def _point(rows: list[Row], log: bool) -> Row:
    values = np.array(
        [math.nan if row.get("value") is None else row["value"] for row in rows], float
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log10(values) if log else values
    finite = values[np.isfinite(values)]
    errors = [row.get("error", 0.0) for row in rows]
    average = estimate(finite if len(finite) else [math.nan])
    return {
        "quantity": rows[0].get("quantity"),
        "value": average.mean,
        "error": average.stderr,
        "spread": average.std if average.n > 1 else 0.0,
        "n": len(finite),
        "lost": len(values) - len(finite),
        "open": any(e is None or not math.isfinite(e) for e in errors),
    }


@dataclass(frozen=True)
class Estimate:
    """A mean over networks with its standard error.

    Attributes:
        mean: Sample mean.
        stderr: Standard error of the mean; NaN for a single network.
        std: Sample standard deviation (``ddof=1``); NaN for a single network.
        n: Number of networks.
    """

    mean: float
    stderr: float
    std: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.6g} ± {self.stderr:.2g} (n = {self.n})"


def estimate(values: Sequence[float] | np.ndarray) -> Estimate:
    """Return mean, standard error and standard deviation over networks.

    Example:
        >>> print(estimate([1.0, 2.0, 3.0]))
        2 ± 0.58 (n = 3)
    """
    sample = _sample(values)
    with np.errstate(invalid="ignore", over="ignore"):  # of diverged networks
        mean = float(sample.mean())
        std = float(sample.std(ddof=1)) if sample.size > 1 else float("nan")
    return Estimate(mean, std / float(np.sqrt(sample.size)), std, sample.size)


@dataclass(frozen=True)
class Line:
    """A least-squares line with the standard error of its slope."""

    slope: float
    slope_stderr: float


def fit_line(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> Line:
    """Fit a line; growth exponents are slopes on logarithmic axes.

    Example:
        >>> fit_line([0, 1, 2], [1, 3, 5]).slope
        2.0
    """
    x, y = _sample(x), _sample(y)
    if x.size != y.size or x.size < 3 or np.ptp(x) == 0:
        raise ConfigError(
            f"{x.size} abscissae and {y.size} ordinates do not fix a line with an "
            "error: give at least 3 points at different abscissae"
        )
    if np.ptp(y) == 0:  # otherwise rounding of the mean would decide the slope
        return Line(0.0, 0.0)
    dx, dy = x - x.mean(), y - y.mean()
    slope = float(dx @ dy / (dx @ dx))
    rest = dy - slope * dx
    return Line(slope, float(np.sqrt(rest @ rest / (x.size - 2) / (dx @ dx))))


def _sample(values: Sequence[float] | np.ndarray) -> np.ndarray:
    sample = np.asarray(values, dtype=np.float64).ravel()
    if sample.size == 0:
        raise ConfigError("a statistic of no values was asked for: pass at least one")
    return sample
