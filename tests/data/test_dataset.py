import hashlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.data.writers import one_sentence, random_images
from theodolite.core import DataError
from theodolite.data import Dataset


def small(**changes):
    fields = {
        "name": "toy",
        "split": "train",
        "inputs": random_images(4, 3, 3),
        "labels": np.array([0, 1, 2, 1]),
        "class_names": ("a", "b", "c"),
        "origin": "Drawn here.",
    }
    return Dataset(**{**fields, **changes})


def test_flat_divides_bytes_by_255_and_leaves_floats():
    data = small()
    assert_array_equal(data.flat(), data.inputs.reshape(4, 9) / 255.0)
    floats = small(inputs=np.full((4, 2), 7.0))
    assert_array_equal(floats.flat(), np.full((4, 2), 7.0))


def test_one_hot_rows():
    assert_array_equal(small().one_hot(), [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]])


def test_checksum_is_of_the_bytes_of_both_arrays():
    data = small()
    content = data.inputs.tobytes() + data.labels.astype("<i8").tobytes()
    assert data.checksum == hashlib.sha256(content).hexdigest()
    turned = small(inputs=np.asfortranarray(data.inputs))
    assert turned.checksum == data.checksum
    assert small(labels=np.array([0, 1, 2, 2])).checksum != data.checksum


def test_arrays_are_read_only_and_labels_int64():
    data = small(labels=np.array([0, 1, 2, 1], np.uint8))
    assert data.labels.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        data.inputs[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        data.labels[0] = 0


def test_making_a_dataset_leaves_the_given_array_writable():
    inputs = np.zeros((4, 2))
    small(inputs=inputs)
    inputs[0] = 1.0
    assert inputs[0].tolist() == [1.0, 1.0]


def test_subset_by_indices_mask_and_slice():
    data = small(verified=True)
    for chosen in ([2, 0], np.array([2, 0]), slice(2, None, -2)):
        part = data.subset(chosen)
        assert_array_equal(part.labels, [2, 0])
        assert_array_equal(part.inputs, data.inputs[[2, 0]])
        assert part.verified
        assert part.n_classes == 3
    assert len(data.subset(data.labels == 1)) == 2


def test_subset_out_of_range_is_refused():
    with pytest.raises(DataError, match="0 to 3") as error:
        small().subset([9])
    assert one_sentence(error)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": np.array([0, 1, 2])}, "3 labels"),
        ({"labels": np.array([0, 1, 2, 3])}, "0 to 2"),
        ({"labels": np.array([0, 1, 2, -1])}, "from -1"),
        ({"labels": np.zeros((4, 1), int)}, "shape"),
        ({"labels": np.zeros(4)}, "float64"),
        ({"inputs": np.zeros(4)}, "2-D"),
        ({"inputs": np.zeros((0, 3)), "labels": np.zeros(0, int)}, "empty"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(DataError, match=words):
        small(**changes)


def test_repr_is_short():
    assert repr(small()) == "Dataset(toy train: 4×3×3 uint8, 3 classes, not verified)"


def test_images_are_refused_where_there_are_none():
    assert small().images.shape == (4, 3, 3)
    with pytest.raises(DataError, match="not images"):
        _ = small(inputs=np.zeros((4, 2))).images


def test_signs_need_two_classes():
    pair = small(labels=np.array([0, 1, 1, 0]), class_names=("a", "b"))
    assert_array_equal(pair.signs(), [-1.0, 1.0, 1.0, -1.0])
    with pytest.raises(DataError, match="two_classes"):
        small().signs()
