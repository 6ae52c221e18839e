import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

from tests.data.writers import one_sentence, random_images
from theodolite.core import ConfigError, DataError
from theodolite.data import load

PICTURES = random_images(6, 9, 7, 3)


def write(folder, name, pixels):
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(folder / name)


@pytest.fixture
def folder(tmp_path):
    for number, picture in enumerate(PICTURES):
        kind = ("png", "ppm", "bmp")[number % 3]
        write(tmp_path / ("cat", "dog")[number // 3], f"{number}.{kind}", picture)
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    (tmp_path / ".hidden").mkdir()
    return tmp_path


def test_classes_and_files_come_in_alphabetical_order(folder):
    data = load("imagefolder", folder=folder)
    assert_array_equal(data.inputs, PICTURES)
    assert_array_equal(data.labels, [0, 0, 0, 1, 1, 1])
    assert data.class_names == ("cat", "dog")
    assert not data.verified


def test_splits_are_folders(tmp_path):
    write(tmp_path / "train" / "a", "1.png", PICTURES[0])
    write(tmp_path / "test" / "a", "1.png", PICTURES[1])
    assert_array_equal(load("imagefolder", folder=tmp_path).inputs[0], PICTURES[0])
    test = load("imagefolder", "test", folder=tmp_path)
    assert_array_equal(test.inputs[0], PICTURES[1])
    with pytest.raises(DataError, match="val is no folder"):
        load("imagefolder", "val", folder=tmp_path)


def test_grey_images_have_no_channel_axis(tmp_path):
    write(tmp_path / "a", "1.png", PICTURES[0, :, :, 0])
    assert load("imagefolder", folder=tmp_path).inputs.shape == (1, 9, 7)
    write(tmp_path / "a", "2.png", PICTURES[1])
    both = load("imagefolder", folder=tmp_path)
    assert both.inputs.shape == (2, 9, 7, 3)
    assert_array_equal(both.inputs[0], np.repeat(PICTURES[0, :, :, :1], 3, axis=2))


def test_jpeg_is_read_nearly(tmp_path):
    smooth = np.full((16, 16, 3), 100, np.uint8)
    write(tmp_path / "a", "1.JPG", smooth)
    read = load("imagefolder", folder=tmp_path).inputs[0]
    assert_allclose(read.astype(int), smooth, atol=3)


def test_sizes_must_agree_or_be_given(folder):
    write(folder / "dog", "z.png", random_images(1, 4, 5, 3)[0])
    with pytest.raises(DataError, match=r"z\.png is 4×5.*9×7.*pass size=7") as error:
        load("imagefolder", folder=folder)
    assert one_sentence(error)
    assert load("imagefolder", folder=folder, size=8).inputs.shape == (7, 8, 8, 3)
    wide = load("imagefolder", folder=folder, size=(4, 5))
    assert wide.inputs.shape == (7, 4, 5, 3)
    assert_array_equal(wide.inputs[-1], random_images(1, 4, 5, 3)[0])


@pytest.mark.parametrize("size", [0, -1, (3,), (3, 0), 2.5, True])
def test_a_wrong_size_option_is_refused(folder, size):
    with pytest.raises((ConfigError, TypeError)):
        load("imagefolder", folder=folder, size=size)


@pytest.mark.parametrize("kind", ["png", "ppm", "bmp"])
@pytest.mark.parametrize("keep", [0, 1, 30, 0.5, 0.9])
def test_a_broken_image_is_named(folder, kind, keep):
    (path,) = folder.glob(f"dog/*.{kind}")
    content = path.read_bytes()
    path.write_bytes(
        content[: keep if isinstance(keep, int) else int(keep * len(content))]
    )
    with pytest.raises(DataError, match=f"{path.name} cannot be read") as error:
        load("imagefolder", folder=folder)
    assert one_sentence(error)


def test_text_with_the_name_of_an_image_is_named(folder):
    (folder / "cat" / "9.png").write_text("not an image")
    with pytest.raises(DataError, match=r"9\.png cannot be read as an image"):
        load("imagefolder", folder=folder)


def test_deep_pixels_are_refused(tmp_path):
    write(tmp_path / "a", "1.png", np.zeros((3, 3), np.uint16))
    with pytest.raises(DataError, match="8-bit"):
        load("imagefolder", folder=tmp_path)


def test_an_empty_class_or_folder_is_named(tmp_path):
    with pytest.raises(DataError, match="is empty"):
        load("imagefolder", folder=tmp_path)
    (tmp_path / "void").mkdir()
    with pytest.raises(DataError, match="void holds no images") as error:
        load("imagefolder", folder=tmp_path)
    assert one_sentence(error)


def test_a_second_load_comes_from_the_cache(folder, own_cache):
    load("imagefolder", folder=folder)
    again = load("imagefolder", folder=folder)
    assert isinstance(again.inputs, np.memmap)
    assert_array_equal(again.inputs, PICTURES)


def test_a_palette_with_transparency_is_read(tmp_path):
    write(tmp_path / "a", "1.png", PICTURES[0])
    image = Image.fromarray(PICTURES[1]).quantize(16)
    image.save(tmp_path / "a" / "2.png", transparency=bytes(range(16)))
    data = load("imagefolder", folder=tmp_path)
    assert_array_equal(data.inputs[1], np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("limit", [10, 40])
def test_an_image_of_absurd_size_is_named(folder, monkeypatch, limit):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(DataError, match=r"0\.png cannot be read.*DecompressionBomb"):
        load("imagefolder", folder=folder)
