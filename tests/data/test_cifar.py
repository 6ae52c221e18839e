import lzma
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.data.writers import (
    one_sentence,
    random_images,
    random_labels,
    write_binary,
    write_cifar10,
    write_delta,
    write_pickle,
)
from theodolite.core import DataError, UnknownNameError
from theodolite.data import load
from theodolite.data.cifar import read_binary, read_delta, read_pickle

IMAGES, LABELS = random_images(15, 32, 32, 3), random_labels(15)
COARSE, FINE = random_labels(15, 20), random_labels(15, 100, seed=2)
FOLDERS = {
    "pickle": "cifar-10-batches-py",
    "binary": "cifar-10-batches-bin",
    "delta xz": "cifar10",
}


@pytest.mark.parametrize("style", FOLDERS)
@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("direct", [True, False])
def test_the_three_formats_agree(tmp_path, style, split, direct):
    folder = tmp_path / FOLDERS[style]
    write_cifar10(folder, IMAGES, LABELS, style, split=split)
    at = folder if direct else tmp_path
    data = load("cifar10", split, folder=at, verify=False)
    assert_array_equal(data.inputs, IMAGES)
    assert_array_equal(data.labels, LABELS)
    assert data.class_names[9] == "truck"


@pytest.mark.parametrize("style", ["pickle", "binary"])
def test_cifar100_has_fine_and_coarse_labels(tmp_path, own_cache, style):
    if style == "pickle":
        labels = {"coarse_labels": COARSE.tolist(), "fine_labels": FINE.tolist()}
        write_pickle(tmp_path / "cifar-100-python" / "train", IMAGES, labels)
    else:
        path = tmp_path / "cifar-100-binary" / "train.bin"
        write_binary(path, IMAGES, COARSE, FINE)
    fine = load("cifar100", folder=tmp_path, verify=False)
    coarse = load("cifar100", folder=tmp_path, verify=False, labels="coarse")
    assert_array_equal(fine.inputs, IMAGES)
    assert_array_equal(fine.labels, FINE)
    assert_array_equal(coarse.labels, COARSE)
    assert (fine.n_classes, coarse.n_classes) == (100, 20)
    assert len(list(own_cache.glob("*.inputs.npy"))) == 1
    with pytest.raises(UnknownNameError, match="did you mean 'coarse'"):
        load("cifar100", folder=tmp_path, verify=False, labels="course")


@pytest.mark.parametrize("gone", ["data_batch_3.xz", "train_labels.npy"])
def test_a_missing_batch_is_named(tmp_path, gone):
    write_cifar10(tmp_path / "cifar10", IMAGES, LABELS, "delta xz")
    (tmp_path / "cifar10" / gone).unlink()
    with pytest.raises(DataError, match=f"{gone} is missing.*cifar-10-python") as error:
        load("cifar10", folder=tmp_path, verify=False)
    assert one_sentence(error)


def test_a_complete_format_is_preferred_to_a_partial_one(tmp_path):
    write_cifar10(tmp_path / "cifar10", IMAGES, LABELS, "pickle")
    (tmp_path / "cifar10" / "data_batch_2").unlink()
    write_cifar10(tmp_path / "cifar10", IMAGES, LABELS, "binary")
    assert len(load("cifar10", folder=tmp_path, verify=False)) == 15


@settings(max_examples=30, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True), n_labels=st.sampled_from([1, 2]))
def test_a_binary_batch_cut_within_a_record_is_refused(
    tmp_path_factory, share, n_labels
):
    path = tmp_path_factory.mktemp("cut") / "data_batch_1.bin"
    write_binary(path, IMAGES[:3], *(LABELS[:3],) * n_labels)
    content = path.read_bytes()
    cut = int(share * len(content))
    path.write_bytes(content[:cut])
    if cut and cut % (n_labels + 3072) == 0:
        assert len(read_binary(path, n_labels)[0]) < 3
        return
    with pytest.raises(DataError, match=r"data_batch_1\.bin has .* records") as error:
        read_binary(path, n_labels)
    assert one_sentence(error)


@settings(max_examples=30, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_an_xz_batch_cut_anywhere_is_refused(tmp_path_factory, share):
    path = tmp_path_factory.mktemp("cut") / "data_batch_1.xz"
    write_delta(path, IMAGES[:3])
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError, match=r"data_batch_1\.xz .* again") as error:
        read_delta(path)
    assert one_sentence(error)


def test_a_flipped_byte_fails_the_xz_check(tmp_path):
    path = tmp_path / "a.xz"
    write_delta(path, IMAGES)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.xz"):
        read_delta(path)


def test_an_xz_of_the_wrong_length_is_refused(tmp_path):
    path = tmp_path / "a.xz"
    path.write_bytes(lzma.compress(bytes(3071)))
    with pytest.raises(DataError, match="3,071 bytes"):
        read_delta(path)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (LABELS[:-1], r"shape \(14,\)"),
        (LABELS.astype(float), "float64"),
        (LABELS.astype(int) - 300, "from -"),
        (np.full(15, 12, np.uint8), "holds the label 12"),
        (np.array([object()] * 15), "Object arrays"),
    ],
)
def test_wrong_labels_name_their_file(tmp_path, labels, words):
    write_cifar10(tmp_path, IMAGES, LABELS, "delta xz")
    np.save(tmp_path / "train_labels.npy", labels, allow_pickle=True)
    with pytest.raises(DataError, match=words) as error:
        load("cifar10", folder=tmp_path, verify=False)
    assert "train_labels.npy" in str(error.value)
    assert one_sentence(error)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 zip", b"\x93NUMPY\x01\x00v"])
def test_a_labels_file_that_is_no_array_is_refused(tmp_path, content):
    write_cifar10(tmp_path, IMAGES, LABELS, "delta xz")
    (tmp_path / "train_labels.npy").write_bytes(content)
    with pytest.raises(DataError, match=r"train_labels\.npy cannot be read"):
        load("cifar10", folder=tmp_path, verify=False)


def test_a_pickle_with_other_entries_is_refused(tmp_path):
    path = tmp_path / "data_batch_1"
    path.write_bytes(pickle.dumps({b"fine_labels": []}))
    with pytest.raises(DataError, match="lacks data, labels"):
        read_pickle(path, 1)
    path.write_bytes(pickle.dumps({b"data": LABELS, b"labels": LABELS.tolist()}))
    with pytest.raises(DataError, match=r"shape \(15,\)"):
        read_pickle(path, 1)


def test_a_pickle_with_too_few_labels_is_refused(tmp_path):
    write_pickle(tmp_path / "b", IMAGES, {"labels": LABELS[:3].tolist()})
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        read_pickle(tmp_path / "b", 1)


def test_keys_of_python_3_are_read_too(tmp_path):
    labels = {"labels": LABELS.tolist()}
    write_pickle(tmp_path / "b", IMAGES, labels, protocol=4, text_keys=True)
    images, classes = read_pickle(tmp_path / "b", 1)
    assert_array_equal(images, IMAGES)
    assert_array_equal(classes, LABELS)
