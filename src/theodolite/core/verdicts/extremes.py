"""Quantiles over networks, which have a sampling error, and rows of several numbers.

``highest``, ``lowest``, ``largest`` and ``smallest`` of ``sample`` are statements about
the networks at hand alone. What is claimed of any network of the kind, such as the
worst of all, is read by ``quantile``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ConfigError
from ..rows import Row
from .quantity import NO_ROWS, Quantity
from .sample import Read, by_network
from .selecting import PredictedAndMeasured, Select


@dataclass(frozen=True, kw_only=True)
class Quantile(Quantity):
    """A quantile over networks, with the exact bounds of order statistics.

    Attributes:
        level: Which quantile, from 0 to 1; 0.5 is the median.
        values: One value per network, ascending.
    """

    level: float
    values: tuple[float, ...]

    @property
    def random(self) -> bool:
        """Chance has a part in it."""
        return True

    @property
    def n(self) -> int:
        """Networks behind it."""
        return len(self.values)

    @property
    def error(self) -> float:
        """Half of the interval that covers as one standard error does."""
        return (self.upper(0.16) - self.lower(0.16)) / 2

    def p_above(self, point: float, *, strict: bool = True) -> float:
        """How probable so few networks at or below the point are."""
        return self._p(np.add(self.values, -self.slack), point, self.level, strict)

    def p_below(self, point: float, *, strict: bool = True) -> float:
        """How probable so few networks at or above the point are."""
        other = -np.add(self.values, self.slack)
        return self._p(other, -point, 1 - self.level, strict)

    def lower(self, alpha: float) -> float:
        """Largest value that the quantile exceeds at this level, less the slack."""
        return self._bound(np.asarray(self.values), self.level, alpha) - self.slack

    def upper(self, alpha: float) -> float:
        """Least value that exceeds the quantile at this level, plus the slack."""
        other = -np.asarray(self.values)[::-1]
        return self.slack - self._bound(other, 1 - self.level, alpha)

    def _p(self, values: np.ndarray, point: float, level: float, strict: bool) -> float:
        from scipy.special import bdtr

        if not self.values or not np.isfinite(self.values).all():
            return 1.0
        passed = values <= point if strict else values < point
        return float(bdtr(int(np.count_nonzero(passed)), self.n, level))

    def _bound(self, ascending: np.ndarray, level: float, alpha: float) -> float:
        from scipy.special import bdtr

        if not self.values or not np.isfinite(ascending).all():
            return -math.inf
        # Below the k-th value (from 0) lie k networks: it is a bound while so few are
        # improbable. Ties only make the bound safer.
        sure = np.flatnonzero(bdtr(np.arange(self.n), self.n, level) <= alpha)
        return float(ascending[sure[-1]]) if len(sure) else -math.inf


def quantile(rows: Select, level: float, *, name: str = "") -> Read:
    """Read a quantile over networks: what a new network exceeds 1 − ``level`` often.

    With too few networks it has no bound: 59 bound the quantile 0.95 from above.

    Args:
        rows: The rows to read, averaged within each network.
        level: Which quantile, between 0 and 1.
        name: Name of the number.
    """
    if not 0 < level < 1:
        raise ConfigError(f"the quantile {level} was asked for: pass one within (0, 1)")

    def read(both: PredictedAndMeasured) -> Quantity:
        found = by_network(rows(both))
        values = tuple(sorted(found.values.values()))
        return Quantile(
            name=name or f"quantile {level:g} of {rows}",
            value=float(np.quantile(values, level)) if values else math.nan,
            slack=max(found.errors.values(), default=0.0),
            note=found.note or ("" if values else NO_ROWS),
            level=level,
            values=values,
        )

    return read


def named_rows(
    values: Mapping[str, Any], error: float | None = None, **labels: Any
) -> list[Row]:
    """Return one row per quantity, all with the same labels.

    Args:
        values: Number by quantity; a pair of number and error where ``error`` is None.
        error: Error of all of them.
        labels: Labels of all rows.

    Example:
        >>> named_rows({"gap": 2}, 0.5, depth=3)
        [{'quantity': 'gap', 'depth': 3, 'value': 2.0, 'error': 0.5}]
        >>> named_rows({"gap": (2, 0.5)})
        [{'quantity': 'gap', 'value': 2.0, 'error': 0.5}]
    """
    pairs = {k: v if error is None else (v, error) for k, v in values.items()}
    return [
        {"quantity": name, **labels, "value": float(value), "error": bound}
        for name, (value, bound) in pairs.items()
    ]
