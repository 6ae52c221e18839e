"""Ticks of logarithmic axes: powers over decades, plain numbers within few."""

import numpy as np
from matplotlib.ticker import Formatter, Locator, MaxNLocator

_POWERS = 3  # powers of ten that are ticks enough
_FEW = 0.9  # decades below which 1, 2 and 5 are too few ticks
_PLAIN = 4  # digits up to which a number is written out


class DecadeLocator(Locator):
    """Places ticks at powers of ten, at 1, 2, 5 or at even steps, as room allows.

    Args:
        exponents: Whether the axis holds logarithms to base ten rather than the
            numbers themselves.
    """

    def __init__(self, *, exponents: bool) -> None:
        """Say what the axis holds."""
        self.exponents = exponents

    def __call__(self) -> list[float]:
        """Return the ticks within the limits of the axis, fewer where they lie."""
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks between two limits."""
        if not self.exponents:
            vmin, vmax = np.log10(np.maximum([vmin, vmax], 1e-300))
        lying = getattr(self.axis, "axis_name", "y") == "x"
        found = _ticks(float(vmin), float(vmax), lying=lying)
        found = found[(found >= vmin - 1e-9) & (found <= vmax + 1e-9)]
        return (found if self.exponents else 10.0**found).tolist()


class DecadeFormatter(Formatter):
    """Writes numbers of a few digits plainly, others as powers of ten.

    Args:
        exponents: Whether the axis holds logarithms to base ten.
    """

    def __init__(self, *, exponents: bool) -> None:
        """Say what the axis holds."""
        self.exponents = exponents

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of one tick."""
        power = x if self.exponents else np.log10(x)
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]
        if not self.exponents:
            low, high = np.log10([max(low, 1e-300), max(high, 1e-300)])
        return written(float(power), narrow=len(_powers(low, high)) < _POWERS)


def written(power: float, *, narrow: bool) -> str:
    """Return ten to a power as a label.

    Example:
        >>> written(-3, narrow=False), written(0.30103, narrow=True)
        ('$10^{-3}$', '2')
    """
    whole = round(power)
    if narrow and abs(power) < _PLAIN:
        return f"{10.0**power:.4g}"
    if abs(power - whole) < 1e-6:
        return f"$10^{{{whole}}}$"
    base = int(np.floor(power))
    return rf"${10.0 ** (power - base):.3g}\times10^{{{base}}}$"


def _powers(low: float, high: float) -> np.ndarray:
    return np.arange(np.ceil(low - 1e-9), high + 1e-9)


def _ticks(low: float, high: float, *, lying: bool) -> np.ndarray:
    """Return powers of ten between two, as many as are easily read."""
    powers = _powers(low, high)
    if len(powers) >= _POWERS:
        step = max(1, int(np.ceil((high - low) / 7)))
        return powers[powers % step == 0]
    if high - low >= _FEW:
        whole = np.arange(np.floor(low), np.ceil(high) + 1)
        between = [1.0, 3.0] if lying and len(powers) > 1 else [1.0, 2.0, 5.0]
        return np.sort((whole[:, None] + np.log10(between)).ravel())
    steps = MaxNLocator(4 if lying else 5, steps=[1, 2, 2.5, 5, 10])
    found = np.asarray(steps.tick_values(10.0**low, 10.0**high))
    return np.log10(found[found > 0])
