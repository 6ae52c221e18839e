"""The published datasets themselves, where THEODOLITE_DATA holds them."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from theodolite.core import DataError
from theodolite.data import available, load, standardise_channels
from theodolite.data.checksums import CIFAR10_BATCHES, FILES, cifar_record_sha1

# Images (N, H, W[, RGB]) as uint8 in C order.
SHA256 = {
    (
        "mnist",
        "train",
    ): "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
    (
        "mnist",
        "test",
    ): "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
    (
        "cifar10",
        "train",
    ): "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
    (
        "cifar10",
        "test",
    ): "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
}
MNIST_COUNTS = {
    "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("full-size")


@pytest.fixture(autouse=True)
def one_cache(kept, monkeypatch, own_cache):
    """Decode each set once for this module."""
    monkeypatch.setenv("THEODOLITE_CACHE", str(kept))


def given(name, split, folder):
    try:
        return load(name, split, folder=folder)
    except DataError as error:
        if "not found" in str(error):
            pytest.skip(str(error))
        raise


# Its six seconds to decode: what is tested is tested of its other split, too.
TRAIN = pytest.param("cifar10", "train", marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("name", "split"), [TRAIN if key == TRAIN.values else key for key in SHA256]
)
def test_arrays_are_the_published_ones(name, split, full_size):
    data = given(name, split, full_size)
    digest = hashlib.sha256(np.ascontiguousarray(data.inputs)).hexdigest()
    assert digest == SHA256[name, split]
    assert data.verified
    assert isinstance(data.inputs, np.memmap)
    counts = np.bincount(data.labels)
    wanted = [len(data) // 10] * 10 if name == "cifar10" else MNIST_COUNTS[split]
    assert_array_equal(counts, wanted)


def test_mnist_files_have_their_published_md5(full_size):
    given("mnist", "train", full_size)
    files = list(Path(full_size).glob("**/*-ubyte.gz"))
    for file in files:
        if "fashion" not in str(file).lower():
            md5 = hashlib.md5(file.read_bytes()).hexdigest()
            assert md5 == FILES["mnist"][file.name]


@pytest.mark.parametrize(("name", "split"), [TRAIN, ("cifar10", "test")])
def test_cifar10_makes_the_published_binary_batches(name, split, full_size):
    data, published = given(name, split, full_size), list(CIFAR10_BATCHES.values())
    starts = range(0, len(data), 10_000)
    parts = [slice(start, start + 10_000) for start in starts]
    digests = [cifar_record_sha1(data.inputs[p], data.labels[p]) for p in parts]
    assert digests == (published[:5] if split == "train" else published[5:])


@pytest.mark.slow
def test_cifar10_statistics_are_the_well_known_ones(full_size):
    data = given("cifar10", "train", full_size)
    _, statistics = standardise_channels(data.inputs[:10])
    assert statistics.mean.shape == (3,)
    mean = data.inputs.mean(axis=(0, 1, 2), dtype=np.float64) / 255
    np.testing.assert_allclose(mean, [0.4914, 0.4822, 0.4465], atol=5e-5)


def test_mnist5k_is_a_part_of_mnist(full_size):
    whole = given("mnist", "train", full_size)
    known = {
        image.tobytes(): label
        for image, label in zip(whole.inputs, whole.labels, strict=True)
    }
    part = load("mnist5k")
    labels = [known.get(image.tobytes()) for image in part.inputs]
    assert None not in labels
    assert_array_equal(labels, part.labels)


def test_a_deep_listing_verifies_what_is_there(full_size, tmp_path):
    given("mnist", "train", full_size)
    (tmp_path / "mnist").symlink_to(Path(full_size) / "mnist")  # not CIFAR beside it
    items = {item.name: item for item in available(tmp_path, verify=True)}
    assert items["mnist"].checked == "verified"
    assert items["mnist"].sizes == {"train": 60_000, "test": 10_000}
