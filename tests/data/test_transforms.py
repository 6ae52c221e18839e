import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nst
from numpy.testing import assert_allclose, assert_array_equal

from tests.data.writers import random_images
from theodolite.core import DataError, UnknownNameError
from theodolite.data import load, one_hot, standardise_channels, two_classes, unit_norm


@settings(max_examples=60, deadline=None)
@given(
    nst.arrays(
        np.float64,
        nst.array_shapes(min_dims=2, max_dims=3, max_side=5),
        elements=st.floats(-1e200, 1e200).filter(lambda v: abs(v) > 1e-200),
    )
)
def test_unit_norm_keeps_direction_and_has_norm_one(x):
    rows = unit_norm(x)
    assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-14)
    flat = x.reshape(len(x), -1)
    scale = np.abs(flat).max(axis=1, keepdims=True)
    cosine = ((flat / scale) * rows).sum(axis=1)
    assert_allclose(cosine, np.linalg.norm(flat / scale, axis=1), rtol=1e-12)


def test_unit_norm_of_bytes_does_not_overflow():
    rows = unit_norm(np.array([[200, 200]], np.uint8))
    assert_allclose(rows, [[np.sqrt(0.5)] * 2])


def test_zero_rows_are_refused():
    with pytest.raises(DataError, match=r"row 1 \(of 2 such\) is zero"):
        unit_norm(np.array([[1.0], [0.0], [0.0]]))
    with pytest.raises(DataError, match="NaN"):
        unit_norm(np.array([[np.nan, 1.0]]))


@pytest.mark.parametrize("tail", [(6, 5), (6, 5, 3)])
@pytest.mark.parametrize("as_float", [True, False])
def test_channels_come_to_mean_0_and_deviation_1(tail, as_float):
    images = random_images(50, *tail)
    given_images = images / 255.0 if as_float else images
    scaled, statistics = standardise_channels(given_images, np.float64)
    axes = (0, 1, 2)
    assert_allclose(scaled.mean(axis=axes), 0.0, atol=1e-12)
    assert_allclose(scaled.std(axis=axes), 1.0, rtol=1e-12)
    plain = images / 255.0
    assert_allclose(statistics.mean.squeeze(), plain.mean(axis=axes), rtol=1e-12)
    assert_allclose(statistics.std.squeeze(), plain.std(axis=axes), rtol=1e-12)


def test_a_test_set_is_scaled_by_the_statistics_of_train():
    train, test = random_images(20, 4, 4, 3), random_images(5, 4, 4, 3, seed=9) // 2
    _, statistics = standardise_channels(train)
    scaled = statistics.apply(test)
    assert scaled.dtype == np.float32
    wanted = (test / 255.0 - statistics.mean) / statistics.std
    assert_allclose(scaled, wanted, rtol=1e-5, atol=1e-6)
    assert abs(float(scaled.mean())) > 0.1  # not scaled by its own
    with pytest.raises(DataError, match="3 channels"):
        statistics.apply(test[..., :2])


def test_a_constant_channel_and_a_wrong_shape_are_refused():
    images = random_images(5, 4, 4, 3)
    images[..., 1] = 7
    with pytest.raises(DataError, match="channel 1"):
        standardise_channels(images)
    with pytest.raises(DataError, match="shape"):
        standardise_channels(np.zeros((4, 4)))


@pytest.mark.parametrize("labels", [[0, 3], [-1, 0]])
def test_one_hot_refuses_labels_out_of_range(labels):
    with pytest.raises(DataError, match="0 to 2"):
        one_hot(np.array(labels), 3)


def test_one_hot_refuses_fractions():
    with pytest.raises(DataError, match="whole number"):
        one_hot(np.array([0.5]), 3)


def test_two_classes_by_number_and_name():
    data = load("mnist5k")
    pair = two_classes(data, 7, "2")
    assert pair.class_names == ("7", "2")
    assert len(pair) == 1000
    assert_array_equal(pair.inputs[pair.labels == 0], data.inputs[data.labels == 7])
    assert_array_equal(pair.inputs[pair.labels == 1], data.inputs[data.labels == 2])
    assert_array_equal(pair.signs(), np.where(pair.labels == 1, 1.0, -1.0))
    assert pair.verified


def test_wrong_classes_are_refused():
    data = load("mnist5k")
    with pytest.raises(DataError, match="no class 10"):
        two_classes(data, 1, 10)
    with pytest.raises(UnknownNameError, match="class of mnist5k"):
        two_classes(data, 1, "ten")
    with pytest.raises(DataError, match="two different"):
        two_classes(data, 1, "1")
