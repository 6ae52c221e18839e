"""Every public name of theory takes every real type and computes in float64."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.dtypes import FORMS, RANGES, formed, spoilt
from tests.theory.swept import CASES, COUNTS
from theodolite import theory
from theodolite.core import ConfigError
from theodolite.data import load

# Lists of the other types hold the same kinds of Python's own numbers.
UNLIKE = ("bool", "int64", "float64", "longdouble")


def flat(result):
    """Every number of a result, as arrays."""
    if is_dataclass(result):
        parts = [getattr(result, field.name) for field in fields(result)]
        return [array for part in parts for array in flat(part)]
    if isinstance(result, list | tuple):
        return [array for part in result for array in flat(part)]
    return [np.asarray(result)]


def test_every_public_name_is_swept():
    assert sorted([*CASES, *COUNTS]) == sorted(theory.__all__)


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_the_same_in_every_type(name, request):
    if name[0].isupper():  # fields say what is held, which is less than what is taken
        request.getfixturevalue("untyped")
    for dtype in RANGES:
        check_type(CASES[name], dtype)


def check_type(case, dtype):
    given = case.given(dtype)
    wanted = flat(
        case.call(**{key: value.astype(float) for key, value in given.items()})
    )
    for form in FORMS if dtype in UNLIKE else FORMS[:1]:
        came = {key: formed(value, form) for key, value in given.items()}
        result = flat(case.call(**came))
        kinds = [part.dtype for part in result]
        assert kinds == [part.dtype for part in wanted], (dtype, form)
        for one, other in zip(result, wanted, strict=True):
            assert_array_equal(one, other, err_msg=f"{dtype} as {form}")


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("name", COUNTS)
def test_counts_do_not_wrap(name):
    wanted = flat(COUNTS[name](20))
    for dtype in (np.uint8, np.int8, np.int16, np.uint64):
        for one, other in zip(flat(COUNTS[name](dtype(20))), wanted, strict=True):
            assert_array_equal(one, other, err_msg=str(dtype))


@pytest.mark.usefixtures("untyped")
def test_counts_inside_results_do_not_wrap():
    result = theory.gradient_spectrum(np.diag([1.0, 3.0]), np.ones(2))
    assert result.change(np.float16(0.25), np.uint8(200)) == result.change(0.25, 200)
    path = theory.sphere_path(*np.eye(3)[:2], np.eye(3)[2:], 0.1)
    assert len(path.steps(np.uint8(255))) == 256
    narrow = theory.ToeplitzSpectrum([[1.0]], [[2.0]], np.uint8(200))
    assert narrow.size == 200
    wide = theory.interpolating_network(np.eye(3)[:1], -np.eye(3)[:1], np.uint8(255))
    assert wide.units == 255


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("name", CASES)
def test_what_is_no_number_is_a_sentence(name):
    case = CASES[name]
    given = case.given("float64")
    for argument, array in given.items():
        for what, bad in spoilt(array).items():
            if name in ("Activation", "activation") and what in ("NaN", "infinity"):
                continue
            with pytest.raises(ConfigError) as error:
                case.call(**{**given, argument: bad})
            text = str(error.value)
            assert text.startswith(argument), (what, text)
            assert "\n" not in text
            assert not text.endswith(".")


@pytest.mark.usefixtures("untyped")
def test_activations_let_nan_through():
    result = theory.activation("tanh").value([np.nan, np.inf])
    assert_array_equal(result, [np.nan, 1.0])


def test_moments_of_our_own_digits():
    pixels = load("mnist5k").inputs.reshape(5000, -1)
    result = theory.moments(pixels, pixels)
    wanted = pixels.astype(float).T @ pixels.astype(float) / 5000
    assert_allclose(result.xx, wanted, rtol=1e-13)
    assert result.xx.max() > 20_000  # bytes would stop at 255


@pytest.mark.parametrize("name", ["identity", "tanh", "symmetric_sigmoid", "silu"])
def test_what_an_activation_says_of_zero_is_so(name):
    one, step = theory.activation(name), 1e-4
    low, middle, high = one.value([-step, 0.0, step])
    assert one.at_zero == middle
    np.testing.assert_allclose(one.slope_at_zero, (high - low) / (2 * step), rtol=1e-7)
    curvature = (high - 2 * middle + low) / step**2
    np.testing.assert_allclose(one.curvature_at_zero, curvature, atol=1e-6)
