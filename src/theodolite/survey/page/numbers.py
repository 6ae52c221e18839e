"""Numbers as short as a page wants them, never shorter than their error asks."""

import math
from dataclasses import replace

from theodolite.core import BRIEF, format_number, format_seconds, power_of_ten

_TICKS = replace(BRIEF, alone=4)
# Powers of ten that are written out.
_SMALL, _LARGE = -3, 3

seconds = format_seconds


def number(value: float | None, error: float | None = None) -> str:
    """Write a value, with its error where there is one.

    Example:
        >>> number(1.46982, 0.0123), number(0.0000123456), number(None), number(4096)
        ('1.470 ± 0.012', '1.23 × 10⁻⁵', '—', '4096')
        >>> number(0.009740032, 1.9e-8)
        '0.00974 ± 1.9 × 10⁻⁸'
    """
    return format_number(value, error or None, digits=BRIEF)


def count(value: int) -> str:
    """Write a large count in a few letters.

    Example:
        >>> count(11_173_962), count(512), count(25_600)
        ('11.2 M', '512', '25.6 k')
    """
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= unit:
            return f"{value / (1e3 if letter == 'k' else unit):.3g} {letter}"
    return str(value)


def tick(value: float) -> str:
    """Write the number at a tick of an axis.

    Example:
        >>> tick(0.001), tick(1e-6), tick(20000.0), tick(-0.5)
        ('0.001', '10⁻⁶', '20000', '−0.5')
    """
    if value and abs(math.log10(abs(value)) - round(math.log10(abs(value)))) < 1e-9:
        if not _SMALL <= round(math.log10(abs(value))) <= _LARGE:
            return power_of_ten(value)
    return format_number(value, digits=_TICKS)
