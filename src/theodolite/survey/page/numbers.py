"""Numbers as short as a page wants them, never shorter than their error asks."""

import math

MINUS, DASH = "−", "—"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Plain notation within these powers of ten.
_SMALL, _LARGE = -3, 5


def number(value: float | None, error: float | None = None) -> str:
    """Write a value, with its error where there is one.

    Example:
        >>> number(1.46982, 0.0123), number(0.0000123456), number(None), number(4096)
        ('1.470 ± 0.012', '1.23 × 10⁻⁵', '—', '4096')
    """
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return f"{MINUS if value < 0 else ''}∞"
    if not error or not math.isfinite(error):
        return _alone(value, 3)
    power = _power(value) if abs(value) > abs(error) else _power(error)
    last = _power(error) - 1
    if power - last > 4:  # nobody reads 0.009740032 ± 0.000000019
        return f"{_alone(value, 4)} ± {_alone(abs(error), 2)}"
    if _SMALL <= power < _LARGE:
        places = max(-last, 0)
        return f"{_signed(f'{value:.{places}f}')} ± {abs(error):.{places}f}"
    places, unit = power - last, 10.0**power
    inner = f"{_signed(f'{value / unit:.{places}f}')} ± {abs(error) / unit:.{places}f}"
    return f"({inner}) × 10{str(power).translate(_RAISED)}"


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


def seconds(value: float | None) -> str:
    """Write a duration.

    Example:
        >>> seconds(0.254), seconds(75.2), seconds(4000)
        ('0.25 s', '1 min 15 s', '1 h 7 min')
    """
    if value is None or not math.isfinite(value):
        return DASH
    if 0 < value < 0.01:
        return "< 0.01 s"
    if value < 10:
        return f"{value:.2g} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(value / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def tick(value: float) -> str:
    """Write the number at a tick of an axis.

    Example:
        >>> tick(0.001), tick(1e-6), tick(20000.0), tick(-0.5)
        ('0.001', '10⁻⁶', '20000', '−0.5')
    """
    if value and abs(math.log10(abs(value)) - round(math.log10(abs(value)))) < 1e-9:
        power = round(math.log10(abs(value)))
        if not _SMALL <= power <= 3:
            sign = MINUS if value < 0 else ""
            return f"{sign}10{str(power).translate(_RAISED)}"
    return _alone(value, 4)


def _alone(value: float, digits: int) -> str:
    if value == int(value) and abs(value) < 1e6:  # counts are exact
        return _signed(str(int(value)))
    value = float(f"{value:.{digits}g}")
    power = _power(value)
    if _SMALL <= power < _LARGE:
        return _signed(f"{value:.{max(digits, power + 1)}g}")
    inner = _signed(f"{value / 10.0**power:.{digits}g}")
    return f"{inner} × 10{str(power).translate(_RAISED)}"


def _power(value: float) -> int:
    return int(f"{value:.1e}".partition("e")[2])


def _signed(text: str) -> str:
    return text.replace("-", MINUS)
