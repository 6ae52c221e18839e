import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.data.writers import (
    idx_bytes,
    one_sentence,
    random_images,
    random_labels,
    write_idx,
)
from theodolite.core import DataError
from theodolite.data import load
from theodolite.data.idx import read_idx

IMAGES, LABELS = random_images(20, 5, 4), random_labels(20)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("place", ["mnist", "MNIST/raw", "."])
def test_mnist_is_found_and_read(tmp_path, packed, split, place):
    write_idx(tmp_path / place, IMAGES, LABELS, split=split, packed=packed)
    data = load("mnist", split, folder=tmp_path, verify=False)
    assert_array_equal(data.inputs, IMAGES)
    assert_array_equal(data.labels, LABELS)
    assert not data.verified


@pytest.mark.parametrize("place", ["fashion-mnist", "FashionMNIST/raw"])
def test_fashion_mnist_is_found_and_named(tmp_path, place):
    write_idx(tmp_path / place, IMAGES, LABELS, dotted=True)
    data = load("fashion-mnist", folder=str(tmp_path), verify=False)
    assert_array_equal(data.inputs, IMAGES)
    assert data.class_names[9] == "Ankle boot"


def test_the_environment_names_the_folder(tmp_path, monkeypatch):
    write_idx(tmp_path / "mnist", IMAGES, LABELS)
    monkeypatch.setenv("THEODOLITE_DATA", str(tmp_path))
    assert len(load("mnist", verify=False)) == 20


def test_a_plain_file_is_mapped_and_not_cached(tmp_path, own_cache):
    write_idx(tmp_path / "mnist", IMAGES, LABELS, packed=False)
    data = load("mnist", folder=tmp_path, verify=False)
    assert isinstance(data.inputs, np.memmap)
    assert not list(own_cache.iterdir())


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True), packed=st.booleans())
def test_a_file_cut_anywhere_is_refused(tmp_path_factory, share, packed):
    content = idx_bytes(IMAGES)
    if packed:
        content = gzip.compress(content)
    name = "train-images-idx3-ubyte" + (".gz" if packed else "")
    path = tmp_path_factory.mktemp("cut") / name
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError, match="again") as error:
        read_idx(path, 3)
    assert name in str(error.value)
    assert one_sentence(error)


@pytest.mark.parametrize("place", [30, 200, -6])
def test_a_flipped_byte_fails_the_gzip_check(tmp_path, place):
    content = bytearray(gzip.compress(idx_bytes(IMAGES)))
    content[place] ^= 0xFF
    path = tmp_path / "a.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.gz"):
        read_idx(path, 3)


def test_swapped_files_are_recognised_by_their_magic(tmp_path):
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(idx_bytes(LABELS))
    with pytest.raises(DataError, match=r"00 00 08 01.*00 00 08 03.*swapped"):
        read_idx(path, 3)


def test_a_surplus_byte_is_refused(tmp_path):
    for name, content in (
        ("a", idx_bytes(IMAGES) + b"x"),
        ("a.gz", gzip.compress(idx_bytes(IMAGES) + b"x")),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match="holds more"):
            read_idx(tmp_path / name, 3)


def test_an_absurd_or_empty_shape_is_refused(tmp_path):
    for name, sizes in (("huge", b"\xff" * 12), ("none", b"\0" * 12)):
        (tmp_path / name).write_bytes(bytes([0, 0, 8, 3]) + sizes)
        with pytest.raises(DataError, match="declares the shape"):
            read_idx(tmp_path / name, 3)


def test_counts_that_differ_are_refused(tmp_path):
    write_idx(tmp_path, IMAGES, LABELS[:-1])
    with pytest.raises(
        DataError, match=r"labels-idx1-ubyte\.gz has 19 labels for"
    ) as e:
        load("mnist", folder=tmp_path, verify=False)
    assert one_sentence(e)


def test_a_label_out_of_range_names_the_file(tmp_path):
    write_idx(tmp_path, IMAGES, np.full(20, 17, np.uint8))
    with pytest.raises(DataError, match=r"labels-idx1-ubyte\.gz holds the label 17"):
        load("mnist", folder=tmp_path, verify=False)
