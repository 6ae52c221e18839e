"""How numbers are written."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.pages import format_number, short_number


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (None, None, "—"),
        (None, 0.1, "—"),
        (math.nan, None, "—"),
        (math.inf, None, "∞"),
        (-math.inf, 1.0, "−∞"),
        (0.0, None, "0"),
        (-0.0, 0.004, "0.0000 ± 0.0040"),
        (100, None, "100"),
        (1.47, None, "1.47"),
        (-1 / 3, None, "−0.333333"),
        (123456.0, None, "123456"),
        (1234567.0, None, "1.23457 × 10⁶"),
        (999999.7, None, "1 × 10⁶"),
        (0.0001, None, "0.0001"),
        (0.00001234, None, "1.234 × 10⁻⁵"),
        (1.46982, 0.0123, "1.470 ± 0.012"),
        (1.46982, 0, "1.46982 ± 0"),
        (1.46982, math.inf, "1.46982"),
        (1.4698213, 1.2e-12, "1.4698213 ± 1.2 × 10⁻¹²"),
        (182.4, 3.2, "182.4 ± 3.2"),
        (1824.0, 32.0, "1824 ± 32"),
        (18249.0, 320.0, "18250 ± 320"),
        (-0.00213, 0.0041, "−0.0021 ± 0.0041"),
        (0.001, 5.0, "0.0 ± 5.0"),
        (1.31e-7, 4e-9, "(1.310 ± 0.040) × 10⁻⁷"),
        (2.1e-14, 1.7e-13, "(0.2 ± 1.7) × 10⁻¹³"),
        (9.9999e7, 1e5, "(1.0000 ± 0.0010) × 10⁸"),
        (5.0, 0.0996, "5.00 ± 0.10"),
        (1e300, 1e298, "(1.000 ± 0.010) × 10³⁰⁰"),
        (5e-324, None, "5 × 10⁻³²⁴"),
    ],
)
def test_format(value, error, text):
    assert format_number(value, error) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (4096, None, "4096"),
        (4096.5, None, "4100"),
        (0.0123456, None, "0.0123"),
        (-0.000123456, None, "−1.23 × 10⁻⁴"),
        (123456.7, None, "1.23 × 10⁵"),
        (0.009740032, 1.9e-8, "0.00974 ± 1.9 × 10⁻⁸"),
        (1.46982, 0.0123, "1.470 ± 0.012"),
        (2.5e-7, 3e-9, "(2.500 ± 0.030) × 10⁻⁷"),
    ],
)
def test_a_page_with_little_room_writes_less(value, error, text):
    assert short_number(value, error) == text


def test_a_prediction_is_written_as_far_as_its_measurement():
    assert format_number(182.43751, beside=3.2) == "182.4"
    assert format_number(1.4698213, beside=1e-12) == "1.4698213"
    assert format_number(1.4698213, beside=None) == "1.46982"
    assert format_number(0.0, beside=0.1) == "0"
    assert format_number(0.001, beside=5.0) == "0.001"


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, st.none() | finite)
def test_any_number_can_be_written_and_read_back(value, error):
    text = format_number(value, error)
    assert "e" not in text
    plain = text.replace("−", "-").replace(" ", "").strip("()")
    mantissa = float(plain.replace(")", "").split("±")[0].split("×")[0])
    raised = text.rpartition("× 10")[2] if "× 10" in text else "⁰"
    shared = text.startswith("(") or "±" not in text
    own = text.split(" ±")[0]
    if not shared:
        raised = own.rpartition("× 10")[2] if "× 10" in own else "⁰"
    power = int(raised.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    allowed = max(abs(value) * 1e-5, abs(error or 0.0) * 0.06, 1e-323)
    back = float(f"{mantissa}e{power}") if abs(mantissa) < 1e16 else mantissa
    if math.isfinite(back):
        assert abs(back - value) <= allowed
