"""Folders and files that are not what they should be, or may not be read."""

import os

import pytest

from tests.data.hostile import IMAGES, LABELS, picture_bytes, posix, refused
from tests.data.writers import write_idx
from theodolite.data import available, load
from theodolite.data.cifar import read_binary
from theodolite.data.files import escape
from theodolite.data.idx import read_idx


class TestPlaces:
    @pytest.mark.parametrize("name", ["mnist", "cifar10", "imagefolder"])
    @pytest.mark.parametrize(
        "folder", ["a" * 5000, "a\0b", "~nobody-at-all/x", 7, b"bytes", ["list"]]
    )
    def test_folders_that_can_be_none(self, name, folder):
        refused(load, name, folder=folder, match="folder|looked at")

    @pytest.mark.parametrize("folder", ["a" * 5000, "~nobody-at-all/x"])
    def test_the_listing_goes_on(self, folder, monkeypatch):
        monkeypatch.setenv("THEODOLITE_DATA", folder)
        items = {item.name: item for item in available(verify=True)}
        assert items["digits"].checked == "verified"
        assert not items["mnist"].found
        assert items["mnist"].advice.isprintable()

    @pytest.mark.parametrize("locked", [".", "cat", "cat/1.png"])
    def test_what_may_not_be_read_is_named(self, nobody, locked):
        (nobody.path / "cat").mkdir()
        (nobody.path / "cat" / "1.png").write_bytes(picture_bytes())
        (nobody.path / locked).chmod(0)
        with nobody:
            refused(load, "imagefolder", folder=nobody.path, match="Permission denied")

    @pytest.mark.parametrize("packed", [True, False])
    @pytest.mark.parametrize("locked", ["mnist", "mnist/train-images-idx3-ubyte"])
    def test_files_that_may_not_be_read_are_named(self, nobody, locked, packed):
        write_idx(nobody.path / "mnist", IMAGES[..., 0], LABELS, packed=packed)
        path = nobody.path / (locked + ".gz" * (packed and "/" in locked))
        path.chmod(0)
        with nobody:
            refused(
                load,
                "mnist",
                folder=nobody.path,
                verify=False,
                match="train-images-idx3-ubyte.*Permission denied",
            )

    @posix
    @pytest.mark.parametrize("kind", ["link", "pipe"])
    def test_a_file_that_is_none_is_named(self, tmp_path, kind):
        write_idx(tmp_path / "mnist", IMAGES[..., 0], LABELS)
        path = tmp_path / "mnist" / "train-labels-idx1-ubyte.gz"
        path.unlink()
        if kind == "link":
            path.symlink_to("nowhere")
        else:
            os.mkfifo(path)
        refused(load, "mnist", folder=tmp_path, match=r"labels-idx1-ubyte\.gz is a")

    def test_a_sound_place_is_preferred_to_a_broken_one(self, tmp_path):
        (tmp_path / "mnist").mkdir()
        (tmp_path / "mnist" / "train-images-idx3-ubyte.gz").symlink_to("nowhere")
        write_idx(tmp_path / "MNIST" / "raw", IMAGES[..., 0], LABELS)
        assert len(load("mnist", folder=tmp_path, verify=False)) == 15

    @pytest.mark.parametrize("name", ["train-images-idx3-ubyte.gz", "data_batch_1.bin"])
    def test_a_folder_where_a_file_is_wanted(self, tmp_path, name):
        (tmp_path / name).mkdir()
        read = read_binary if "bin" in name else read_idx
        refused(read, tmp_path / name, 1, match="is a folder where a file is wanted")

    def test_names_are_shown_on_one_line(self):
        assert escape("a b/ü.png") == "a b/ü.png"
        assert escape(os.fsdecode(b"\xff\n")).isascii()
