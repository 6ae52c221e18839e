"""Verification, with the published digests swapped for those of small data."""

import hashlib

import numpy as np
import pytest

from tests.data.writers import (
    one_sentence,
    random_images,
    random_labels,
    write_binary,
    write_cifar10,
    write_idx,
    write_pickle,
)
from theodolite.core import DataError
from theodolite.data import checksums, load

IMAGES, LABELS = random_images(20, 28, 28), random_labels(20)
PICTURES = random_images(20, 32, 32, 3)


def sha256(array):
    return hashlib.sha256(array.tobytes()).hexdigest()


@pytest.fixture
def small_mnist(monkeypatch):
    digests = (sha256(IMAGES), sha256(LABELS))
    monkeypatch.setitem(checksums.ARRAYS, ("mnist", "train"), digests)
    monkeypatch.setitem(checksums.SHAPES, ("mnist", "train"), IMAGES.shape)


@pytest.mark.parametrize("packed", [True, False])
def test_right_arrays_are_verified_twice_over(tmp_path, small_mnist, packed):
    write_idx(tmp_path, IMAGES, LABELS, packed=packed)
    assert load("mnist", folder=tmp_path).verified
    assert load("mnist", folder=tmp_path).verified
    assert not load("mnist", folder=tmp_path, verify=False).verified


@pytest.mark.parametrize("first_unverified", [True, False])
def test_a_changed_pixel_names_the_images(tmp_path, small_mnist, first_unverified):
    wrong = IMAGES.copy()
    wrong[3, 4, 5] ^= 1
    write_idx(tmp_path, wrong, LABELS)
    if first_unverified:  # it is then in the cache
        assert not load("mnist", folder=tmp_path, verify=False).verified
    with pytest.raises(
        DataError, match=r"images-idx3-ubyte\.gz has md5 .*verify=Fal"
    ) as e:
        load("mnist", folder=tmp_path)
    assert "f68b3c2dcbeaaa9fbdd348bbdeb94873" in str(e.value)
    assert one_sentence(e)


def test_a_changed_label_names_the_labels(tmp_path, small_mnist):
    wrong = (LABELS + 1) % 10
    write_idx(tmp_path, IMAGES, wrong, packed=False)
    with pytest.raises(DataError, match="labels-idx1-ubyte decodes to sha256"):
        load("mnist", folder=tmp_path)


def test_a_wrong_size_is_refused_unless_asked_for(tmp_path):
    write_idx(tmp_path, IMAGES, LABELS)
    for name in ("mnist", "fashion-mnist"):
        with pytest.raises(DataError, match=r"60000.*verify=False") as error:
            load(name, folder=tmp_path)
        assert one_sentence(error)


def test_files_are_compared_where_arrays_have_no_digest(tmp_path, monkeypatch):
    monkeypatch.setitem(checksums.SHAPES, ("fashion-mnist", "train"), IMAGES.shape)
    write_idx(tmp_path, IMAGES, LABELS)
    with pytest.raises(DataError, match="8d4fb7e6c68d591d4c3dfef9ec88bf0d") as error:
        load("fashion-mnist", folder=tmp_path)
    assert one_sentence(error)
    right = {
        path.name: hashlib.md5(path.read_bytes()).hexdigest()
        for path in tmp_path.iterdir()
    }
    monkeypatch.setitem(checksums.FILES, "fashion-mnist", right)
    (tmp_path / "train-images-idx3-ubyte.gz").touch()  # forget the cached judgement
    assert load("fashion-mnist", folder=tmp_path).verified
    assert load("fashion-mnist", folder=tmp_path).verified


def test_unpacked_fashion_mnist_has_nothing_to_compare_with(tmp_path, monkeypatch):
    monkeypatch.setitem(checksums.SHAPES, ("fashion-mnist", "train"), IMAGES.shape)
    write_idx(tmp_path, IMAGES, LABELS, packed=False)
    assert not load("fashion-mnist", folder=tmp_path).verified


def test_mnist_under_the_name_of_fashion_mnist_is_seen(
    tmp_path, monkeypatch, small_mnist
):
    monkeypatch.setitem(checksums.SHAPES, ("fashion-mnist", "train"), IMAGES.shape)
    write_idx(tmp_path, IMAGES, LABELS, packed=False)
    with pytest.raises(DataError, match="holds the images of mnist train"):
        load("fashion-mnist", folder=tmp_path)


def test_cifar100_pickles_are_compared_and_binaries_cannot_be(tmp_path, monkeypatch):
    monkeypatch.setitem(checksums.SHAPES, ("cifar100", "train"), PICTURES.shape)
    write_binary(tmp_path / "cifar-100-binary" / "train.bin", PICTURES, LABELS, LABELS)
    assert not load("cifar100", folder=tmp_path).verified
    labels = {"coarse_labels": LABELS.tolist(), "fine_labels": LABELS.tolist()}
    write_pickle(tmp_path / "cifar-100-python" / "train", PICTURES, labels)
    with pytest.raises(DataError, match="16019d7e3df5f24257cddd939b257f8d"):
        load("cifar100", folder=tmp_path)


@pytest.mark.parametrize("style", ["pickle", "binary", "delta xz"])
def test_the_batch_of_cifar10_that_differs_is_named(tmp_path, monkeypatch, style):
    monkeypatch.setitem(checksums.SHAPES, ("cifar10", "test"), PICTURES.shape)
    write_cifar10(tmp_path, PICTURES, LABELS, style, split="test")
    with pytest.raises(DataError, match=r"test_batch.*67eb016db431130d61cd") as error:
        load("cifar10", "test", folder=tmp_path)
    assert one_sentence(error)


def test_record_sha1_is_that_of_the_binary_file(tmp_path):
    path = tmp_path / "a.bin"
    write_binary(path, PICTURES, LABELS)
    wanted = hashlib.sha1(path.read_bytes()).hexdigest()
    assert checksums.cifar_record_sha1(PICTURES, LABELS) == wanted
    assert checksums.cifar_record_sha1(PICTURES, np.roll(LABELS, 1)) != wanted
