"""Numbers as a reader wants them: as many digits as their error leaves."""

import math
from dataclasses import dataclass
from decimal import Context, Decimal

MINUS, TIMES, PLUS_MINUS = "\u2212", "\u00d7", "\u00b1"
ABSENT, INFINITE = "\u2014", "\u221e"
_RAISED = str.maketrans("-0123456789", "\u207b⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, kw_only=True)
class Digits:
    """How much of a number is written.

    Attributes:
        alone: Digits of a value that has no error.
        cut: Digits of a value whose error is so small that it stands by itself: nobody
            reads 1.470000000000 ± 0.000000000001.
        most: Digits from which on that is so.
        smallest: Exponent from which notation is plain.
        largest: Exponent from which it is no more.
        whole: Whether whole numbers below a million, being counts, are written out.
    """

    alone: int
    cut: int
    most: int
    smallest: int
    largest: int
    whole: bool = False


# Plain notation for exponents from -4 to 5, as in C's %g.
AMPLE = Digits(alone=6, cut=8, most=8, smallest=-4, largest=6)
BRIEF = Digits(alone=3, cut=4, most=5, smallest=-3, largest=5, whole=True)
# Digits from the largest float down to the smallest error.
_EXACT = Context(prec=700)


def format_number(
    value: float | None,
    error: float | None = None,
    *,
    beside: float | None = None,
    digits: Digits = AMPLE,
) -> str:
    """Write a value with its error; None is a dash.

    Args:
        value: The value.
        error: Its error; None where it is exact.
        beside: Error of the number next to it: a value without an error of its own
            is then written as far as that one, so that the two compare.
        digits: How much is written.

    Example:
        >>> format_number(1.46982, 0.0123)
        '1.470 ± 0.012'
        >>> format_number(0.0000123456)
        '1.23456 × 10⁻⁵'
        >>> format_number(4096, digits=BRIEF), format_number(0.25432, digits=BRIEF)
        ('4096', '0.254')
    """
    if value is None or math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return INFINITE if value > 0 else MINUS + INFINITE
    if error is None or not math.isfinite(error):
        if value and beside and math.isfinite(beside):
            return _up_to(value, abs(beside), digits)
        return _alone(value, digits.alone, digits)
    if error == 0:
        return f"{_alone(value, digits.most, digits)} {PLUS_MINUS} 0"
    return _with_error(value, abs(error), digits)


def format_seconds(seconds: float | None) -> str:
    """Write a duration.

    Example:
        >>> format_seconds(0.254), format_seconds(75.2), format_seconds(4000)
        ('0.25 s', '1 min 15 s', '1 h 7 min')
    """
    if seconds is None or not math.isfinite(seconds):
        return ABSENT
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


def power_of_ten(value: float) -> str:
    """Write a power of ten, of either sign, or zero, in the fewest letters.

    Example:
        >>> power_of_ten(1e-5), power_of_ten(-100.0), power_of_ten(0)
        ('10⁻⁵', '−100', '0')
    """
    if value == 0:
        return "0"
    sign, exponent = MINUS if value < 0 else "", round(math.log10(abs(value)))
    if -3 <= exponent <= 3:
        return sign + _trim(f"{Decimal(1).scaleb(exponent):f}")
    return f"{sign}10{str(exponent).translate(_RAISED)}"


def _alone(value: float, count: int, digits: Digits) -> str:
    if value == 0:
        return "0"
    if digits.whole and value == int(value) and abs(value) < 1e6:
        return _signed(str(int(value)))
    rounded = _rounded(value, count)
    exponent = rounded.adjusted()
    if digits.smallest <= exponent < digits.largest:
        return _signed(_trim(f"{rounded:f}"))
    return f"{_signed(_trim(f'{rounded.scaleb(-exponent):f}'))} {_power(exponent)}"


def _up_to(value: float, error: float, digits: Digits) -> str:
    """Write as many digits as a neighbour with this error shows, zeros trimmed."""
    last = _rounded(error, 2).adjusted() - 1
    count = Decimal(repr(float(value))).adjusted() - last + 1
    return _alone(value, min(max(count, 1), digits.most), digits)


def _with_error(value: float, error: float, digits: Digits) -> str:
    uncertain = _rounded(error, 2)
    last = uncertain.adjusted() - 1  # place of the second digit of the error
    aligned = Decimal(repr(float(value))).quantize(
        Decimal(1).scaleb(last), context=_EXACT
    )
    top = max(aligned.adjusted(), last + 1) if aligned else last + 1
    if top - last >= digits.most:
        written = _alone(value, digits.cut, digits)
        return f"{written} {PLUS_MINUS} {_alone(error, 2, digits)}"
    if digits.smallest <= top < digits.largest:
        places = max(-last, 0)
        return f"{_signed(f'{aligned:.{places}f}')} {PLUS_MINUS} {uncertain:.{places}f}"
    places = top - last
    left, right = (f"{n.scaleb(-top):.{places}f}" for n in (aligned, uncertain))
    return f"({_signed(left)} {PLUS_MINUS} {right}) {_power(top)}"


def _rounded(value: float, digits: int) -> Decimal:
    return Context(prec=digits).create_decimal(repr(float(value)))


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _signed(text: str) -> str:
    zero = not text.strip("-0.")
    return text.lstrip("-") if zero else text.replace("-", MINUS)


def _power(exponent: int) -> str:
    return f"{TIMES} 10{str(exponent).translate(_RAISED)}"
