"""Format numbers with as many digits as their error allows."""

import math
from dataclasses import dataclass, replace
from decimal import Context, Decimal

MINUS, INFINITE = "\u2212", "\u221e"
_TIMES, _PLUS_MINUS, _ABSENT = "\u00d7", "\u00b1", "\u2014"
_RAISED = str.maketrans("-0123456789", "\u207b⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, kw_only=True)
class _Digits:
    """How much of a number is written.

    Attributes:
        alone: Digits of a value without an error.
        cut: Digits of a value whose error is so small that it is written apart: nobody
            reads 1.470000000000 ± 0.000000000001.
        most: Number of digits from which the error is written apart.
        smallest: Smallest exponent in plain notation.
        largest: First exponent that needs a power of ten.
        whole: Whether whole numbers below a million, which are counts, are written out.
    """

    alone: int
    cut: int
    most: int
    smallest: int
    largest: int
    whole: bool = False


# Plain notation for exponents from -4 to 5, as in C's %g.
_AMPLE = _Digits(alone=6, cut=8, most=8, smallest=-4, largest=6)
_BRIEF = _Digits(alone=3, cut=4, most=5, smallest=-3, largest=5, whole=True)
_TICK = replace(_BRIEF, alone=4, smallest=-4)
# Digits from the largest float down to the smallest error.
_EXACT = Context(prec=700)


def format_number(
    value: float | None, error: float | None = None, *, beside: float | None = None
) -> str:
    """Write a value with its error; None is a dash.

    Args:
        value: The value.
        error: Its error; None if it is exact.
        beside: Error of the number next to it: a value without an error is then
            written to the same digit, so that the two compare.

    Example:
        >>> format_number(1.46982, 0.0123), format_number(0.0000123456)
        ('1.470 ± 0.012', '1.23456 × 10⁻⁵')
    """
    return _written(value, error, beside, _AMPLE)


def short_number(value: float | None, error: float | None = None) -> str:
    """Write a value in few digits, with its error if there is one.

    Example:
        >>> short_number(0.0000123456), short_number(None), short_number(4096)
        ('1.23 × 10⁻⁵', '—', '4096')
        >>> short_number(0.009740032, 1.9e-8)
        '0.00974 ± 1.9 × 10⁻⁸'
    """
    return _written(value, error or None, None, _BRIEF)


def tick_label(value: float) -> str:
    """Write a number at a tick of an axis, powers of ten in the fewest letters.

    Example:
        >>> tick_label(0.001), tick_label(1e-6), tick_label(20000.0), tick_label(-0.5)
        ('0.001', '10⁻⁶', '20000', '−0.5')
    """
    power = math.log10(abs(value)) if value else 0.5
    if abs(power - round(power)) < 1e-9 and abs(round(power)) > 3:
        sign = MINUS if value < 0 else ""
        return f"{sign}10{str(round(power)).translate(_RAISED)}"
    return _written(value, None, None, _TICK)


def format_count(value: int) -> str:
    """Write a large count in a few letters.

    Example:
        >>> format_count(11_173_962), format_count(512), format_count(25_600)
        ('11.2 M', '512', '25.6 k')
    """
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= unit:
            return f"{value / (1e3 if letter == 'k' else unit):.3g} {letter}"
    return str(value)


def format_seconds(seconds: float | None) -> str:
    """Write a duration.

    Example:
        >>> format_seconds(0.254), format_seconds(75.2), format_seconds(4000)
        ('0.25 s', '1 min 15 s', '1 h 7 min')
    """
    if seconds is None or not math.isfinite(seconds):
        return _ABSENT
    if 0 < seconds < 0.01:
        return "< 0.01 s"
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def _written(
    value: float | None, error: float | None, beside: float | None, digits: _Digits
) -> str:
    if value is None or math.isnan(value):
        return _ABSENT
    if math.isinf(value):
        return INFINITE if value > 0 else MINUS + INFINITE
    if error is None or not math.isfinite(error):
        if value and beside and math.isfinite(beside):
            return _up_to(value, abs(beside), digits)
        return _alone(value, digits.alone, digits)
    if error == 0:
        return f"{_alone(value, digits.most, digits)} {_PLUS_MINUS} 0"
    return _with_error(value, abs(error), digits)


def _alone(value: float, count: int, digits: _Digits) -> str:
    if value == 0:
        return "0"
    if digits.whole and value == int(value) and abs(value) < 1e6:
        return _signed(str(int(value)))
    rounded = _rounded(value, count)
    exponent = rounded.adjusted()
    if digits.smallest <= exponent < digits.largest:
        return _signed(_trim(f"{rounded:f}"))
    return f"{_signed(_trim(f'{rounded.scaleb(-exponent):f}'))} {_power(exponent)}"


def _up_to(value: float, error: float, digits: _Digits) -> str:
    """Write as many digits as a neighbour with this error shows, zeros trimmed."""
    last = _rounded(error, 2).adjusted() - 1
    count = Decimal(repr(float(value))).adjusted() - last + 1
    return _alone(value, min(max(count, 1), digits.most), digits)


def _with_error(value: float, error: float, digits: _Digits) -> str:
    uncertain = _rounded(error, 2)
    last = uncertain.adjusted() - 1  # place of the second digit of the error
    aligned = Decimal(repr(float(value))).quantize(
        Decimal(1).scaleb(last), context=_EXACT
    )
    top = max(aligned.adjusted(), last + 1) if aligned else last + 1
    if top - last >= digits.most:
        written = _alone(value, digits.cut, digits)
        return f"{written} {_PLUS_MINUS} {_alone(error, 2, digits)}"
    if digits.smallest <= top < digits.largest:
        places = max(-last, 0)
        return (
            f"{_signed(f'{aligned:.{places}f}')} {_PLUS_MINUS} {uncertain:.{places}f}"
        )
    places = top - last
    left, right = (f"{n.scaleb(-top):.{places}f}" for n in (aligned, uncertain))
    return f"({_signed(left)} {_PLUS_MINUS} {right}) {_power(top)}"


def _rounded(value: float, digits: int) -> Decimal:
    return Context(prec=digits).create_decimal(repr(float(value)))


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _signed(text: str) -> str:
    zero = not text.strip("-0.")
    return text.lstrip("-") if zero else text.replace("-", MINUS)


def _power(exponent: int) -> str:
    return f"{_TIMES} 10{str(exponent).translate(_RAISED)}"
