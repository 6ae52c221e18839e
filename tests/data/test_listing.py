import json

import pytest

from tests.data.writers import random_images, random_labels, write_cifar10, write_idx
from theodolite.data import available, checksums


def by_name(items):
    return {item.name: item for item in items}


def test_without_a_folder_the_rest_says_how_to_get_it():
    items = by_name(available())
    assert list(items) == [
        "digits",
        "mnist5k",
        "gaussians",
        "mnist",
        "fashion-mnist",
        "cifar10",
        "cifar100",
        "imagefolder",
    ]
    assert items["mnist5k"].place == "embedded"
    assert items["mnist5k"].sizes == {"train": 5000}
    for name in ("mnist", "cifar100", "imagefolder"):
        assert not items[name].found
        assert items[name].place == "not found"
        assert "THEODOLITE_DATA" in items[name].advice


def test_items_are_plain_json():
    for item in available():
        assert json.loads(json.dumps(item.to_dict())) == item.to_dict()


def test_what_is_there_is_found_without_reading_it(tmp_path):
    pictures, labels = random_images(10, 32, 32, 3), random_labels(10)
    write_cifar10(tmp_path / "cifar10", pictures, labels, "delta xz")
    (tmp_path / "cifar10" / "data_batch_1.xz").write_bytes(b"damaged")
    item = by_name(available(tmp_path))["cifar10"]
    assert item.found
    assert item.format == "delta xz"
    assert item.place == str(tmp_path / "cifar10")
    assert item.splits == ("train",)
    assert item.checked == "not checked"
    assert "test_batch" in item.advice


@pytest.mark.parametrize("right", [True, False])
def test_a_deep_check_loads_and_judges(tmp_path, monkeypatch, right):
    images, labels = random_images(9, 28, 28), random_labels(9)
    monkeypatch.setitem(checksums.SHAPES, ("mnist", "train"), images.shape)
    digests = (checksums.sha256(images), checksums.sha256(labels))
    monkeypatch.setitem(checksums.ARRAYS, ("mnist", "train"), digests)
    write_idx(tmp_path, images if right else images[::-1], labels)
    items = by_name(available(tmp_path, verify=True))
    assert items["mnist"].checked == ("verified" if right else "wrong")
    assert items["mnist"].sizes == ({"train": 9} if right else {})
    assert items["digits"].checked == "verified"
    assert items["gaussians"].checked == "nothing published"
    # The same files answer to Fashion-MNIST too, and are not it.
    assert items["fashion-mnist"].checked == "wrong"
    # Files of another set are no find; files that are wrong are.
    assert items["fashion-mnist"].found != right
    if right:
        assert "holds the images of mnist train" in items["fashion-mnist"].advice
    if not right:
        assert "md5" in items["mnist"].advice
