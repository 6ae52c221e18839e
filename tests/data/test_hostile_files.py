"""Files made to harm, and files that are none: a sentence, and little memory."""

import gzip
import io
import lzma
import os
import pickle
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile

from tests.data.writers import (
    one_sentence,
    planes,
    random_images,
    random_labels,
    write_cifar10,
    write_idx,
    write_pickle,
)
from theodolite.core import DataError
from theodolite.data import available, cache_folder, clear_cache, load
from theodolite.data.cifar import read_binary, read_delta, read_pickle
from theodolite.data.files import shown
from theodolite.data.idx import read_idx
from theodolite.data.plain_pickle import read_plain_pickle

posix = pytest.mark.skipif(os.name != "posix", reason="files of POSIX systems")
IMAGES, LABELS = random_images(15, 32, 32, 3), random_labels(15)


def refused(read, *arguments, match, **settings):
    with pytest.raises(DataError, match=match) as error:
        read(*arguments, **settings)
    assert one_sentence(error), str(error.value)
    assert str(error.value).isprintable()


def limited(code, gigabytes=2.0, seconds=20):
    """Run code in a process that dies where it takes more memory or time."""
    start = (
        "import resource\n"
        "import theodolite.data, theodolite.data.cifar, theodolite.data.plain_pickle\n"
        "from pathlib import Path\n"
        "from theodolite.core import DataError\n"
        f"limit = int({gigabytes} * 2**30)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
    )
    return subprocess.run(
        [sys.executable, "-c", start + code],
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )


class TestBombs:
    @pytest.mark.parametrize("shape", [(2**20, 2**10, 2**9), (2**30, 2**8, 2)])
    def test_a_header_that_declares_half_a_terabyte(self, tmp_path, shape):
        head = struct.pack(">BBBB3I", 0, 0, 8, 3, *shape)
        packed, plain = tmp_path / "a.gz", tmp_path / "a"
        packed.write_bytes(gzip.compress(head + bytes(1000)))
        refused(read_idx, packed, 3, match=r"a\.gz declares 549,755,813,888 bytes")
        plain.write_bytes(head + bytes(1000))
        refused(read_idx, plain, 3, match="declares 549,755,813,888 bytes")

    def test_a_gzipped_file_of_zeros_is_not_inflated(self, tmp_path):
        # 8 MB that keep their promise of 8 GB: one part of 2**23 bytes, many times.
        path, shape = tmp_path / "a.gz", (2**13, 2**10, 2**10)
        head = gzip.compress(struct.pack(">BBBB3I", 0, 0, 8, 3, *shape))
        path.write_bytes(head + 2**10 * gzip.compress(bytes(2**23)))
        assert path.stat().st_size < 10**7
        before = time.perf_counter()
        refused(read_idx, path, 3, match=r"inflate to 8,589,934,592 bytes.*gunzip")
        assert time.perf_counter() - before < 1

    def test_no_more_is_inflated_than_the_header_says(self, tmp_path):
        path = tmp_path / "a.gz"
        head = gzip.compress(struct.pack(">BBBB3I", 0, 0, 8, 3, 2, 2, 2))
        path.write_bytes(head + 2**10 * gzip.compress(bytes(2**23)))
        before = time.perf_counter()
        refused(read_idx, path, 3, match="declares 8 bytes .* holds more")
        assert time.perf_counter() - before < 1

    def test_an_xz_of_zeros_stops_at_a_batch(self, tmp_path):
        packer = lzma.LZMACompressor(preset=0)
        with (tmp_path / "a.xz").open("wb") as stream:
            for _ in range(40):
                stream.write(packer.compress(bytes(2**20)))
            stream.write(packer.flush())
        refused(
            read_delta, tmp_path / "a.xz", match="inflates to more than the 30,720,000"
        )

    def test_an_xz_that_wants_a_huge_dictionary(self, tmp_path):
        path = tmp_path / "a.xz"
        # Written with a small dictionary, and a header that asks for the largest.
        small = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**16}]
        content = bytearray(lzma.compress(bytes(3072), filters=small))
        content[16] = 39  # 3 GiB
        content[20:24] = struct.pack("<I", zlib.crc32(content[12:20]))
        path.write_bytes(content)
        refused(read_delta, path, match=r"a\.xz cannot be read \(Memory usage limit")

    def test_bytes_after_an_xz_are_refused(self, tmp_path):
        (tmp_path / "a.xz").write_bytes(2 * lzma.compress(bytes(3072)))
        refused(read_delta, tmp_path / "a.xz", match="bytes follow the end")

    @posix
    def test_a_sparse_file_is_not_read(self, tmp_path):
        for name, read in (
            ("data_batch_1", lambda path: read_pickle(path, 1)),
            ("data_batch_1.bin", lambda path: read_binary(path, 1)),
            ("data_batch_1.xz", read_delta),
        ):
            with (tmp_path / name).open("wb") as stream:
                stream.truncate(2**42)
            refused(read, tmp_path / name, match=f"{name} has 4,398,046,511,104 bytes")

    def test_labels_that_declare_more_than_they_hold(self, tmp_path):
        write_cifar10(tmp_path, IMAGES, LABELS, "delta xz")
        path = tmp_path / "train_labels.npy"
        header = {"descr": "|u1", "fortran_order": False, "shape": (2**36,)}
        with path.open("wb") as stream:
            np.lib.format.write_array_header_1_0(stream, header)
        refused(
            load, "cifar10", folder=tmp_path, verify=False, match="train_labels.npy"
        )

    def test_labels_that_are_a_zip_are_not_unpacked(self, tmp_path):
        write_cifar10(tmp_path, IMAGES, LABELS, "delta xz")
        np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros(10**6, np.uint8))
        (tmp_path / "bomb.npz").rename(tmp_path / "train_labels.npy")
        refused(
            load, "cifar10", folder=tmp_path, verify=False, match="train_labels.npy"
        )


def dict_pickle(key, value):
    """A pickle, by hand, of one entry whose name and value are given as operations."""
    return b"\x80\x02}(" + key + value + b"u."


class TestPickles:
    def test_a_memo_that_asks_for_gigabytes(self, tmp_path):
        path = tmp_path / "batch"
        path.write_bytes(b"\x80\x02}r\xff\xff\xff\x2f.")
        code = (
            "from theodolite.data.plain_pickle import read_plain_pickle\n"
            f"print(read_plain_pickle(Path({str(path)!r})))\n"
        )
        done = limited(code)
        assert done.stdout.strip() == "{}", done.stderr[-500:]

    def test_a_name_that_takes_for_ever_to_hash(self, tmp_path):
        path = tmp_path / "batch"
        nested = b")" + 60 * b"2\x86"  # a pair of the same, sixty times over
        path.write_bytes(dict_pickle(nested, b"N"))
        before = time.perf_counter()
        refused(read_plain_pickle, path, match="name is no text")
        assert time.perf_counter() - before < 1

    def test_lists_of_lists_that_share_are_not_walked(self, tmp_path):
        labels = [1, 2]
        for _ in range(40):
            labels = [labels, labels]
        write_pickle(tmp_path / "b", IMAGES, {"labels": labels})
        before = time.perf_counter()
        refused(read_pickle, tmp_path / "b", 1, match="not whole numbers")
        assert time.perf_counter() - before < 1

    def test_a_list_that_holds_itself(self, tmp_path):
        labels = [1, 2]
        labels.append(labels)
        write_pickle(tmp_path / "b", IMAGES, {"labels": labels})
        refused(
            read_pickle, tmp_path / "b", 1, match=r"b has labels that are not whole"
        )

    @pytest.mark.parametrize(
        "labels",
        [[1, [2, 3]], [[1], [2, 3]], [1.5] * 15, ["a"] * 15, [None], [10**30] * 15, 7],
    )
    def test_labels_that_are_none(self, tmp_path, labels):
        write_pickle(tmp_path / "b", IMAGES, {"labels": labels})
        refused(read_pickle, tmp_path / "b", 1, match="labels")

    @pytest.mark.parametrize(("value", "words"), [(300, "to 300"), (-1, "from -1")])
    def test_pixels_that_are_no_bytes_do_not_wrap(self, tmp_path, value, words):
        pixels = planes(IMAGES).astype(np.int32)
        pixels[0, 0] = value
        batch = {b"data": pixels, b"labels": LABELS.tolist()}
        (tmp_path / "b").write_bytes(pickle.dumps(batch, protocol=2))
        refused(read_pickle, tmp_path / "b", 1, match=words)

    def test_a_flood_of_operations_ends(self, tmp_path):
        (tmp_path / "b").write_bytes(b"\x80\x02}" + (2**20 + 10) * b"N" + b".")
        refused(
            read_plain_pickle, tmp_path / "b", match="more than 1,048,576 operations"
        )

    @pytest.mark.parametrize(
        "content",
        [
            b"\x80\x02]](K\x01e}a.",  # a list in place of a dict
            b"\x80\x02}K\x01K\x02s.",  # a name that is a number
            b"\x80\x02K\x01K\x02a.",  # appended to a number
            b"\x80\x02K\x01)R.",  # a call of a number
            b"\x80\x02}}b.",  # a state for a dict
            b"\x80\x02}\x86.",  # a pair of one
            b"e.",  # no mark
            b"g0\n.",  # nothing remembered
            b"\x80\x04\x95" + b"\xff" * 8 + b"}.",  # an endless frame
            b"\x80\x05\x96" + b"\xff" * 7 + b"\x7f.",  # an endless array of bytes
            b"\x82\x01.",  # a registered extension
            b"(i__builtin__\neval\n.",  # an instance of old
            b"Pid\n.",  # an object from elsewhere
        ],
    )
    def test_programs_that_build_no_batch(self, tmp_path, content):
        (tmp_path / "b").write_bytes(content)
        refused(read_plain_pickle, tmp_path / "b", match="b ")

    def test_names_of_entries_are_shown_safely(self, tmp_path):
        batch = {f"\x1b[2J{place}" + 500 * "a": 1 for place in range(500)}
        (tmp_path / "b").write_bytes(pickle.dumps(batch))
        refused(read_pickle, tmp_path / "b", 1, match="lacks data, labels")
        (tmp_path / "b").write_bytes(b"cos\x1b\nsys\x07tem\n.")
        refused(read_pickle, tmp_path / "b", 1, match="nothing was run")


def chunk(kind, body):
    check = struct.pack(">I", zlib.crc32(kind + body))
    return struct.pack(">I", len(body)) + kind + body + check


def png_header(width, height):
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b""))
    )


def picture_bytes(kind="PNG"):
    stream = io.BytesIO()
    Image.fromarray(IMAGES[0]).save(stream, kind)
    return stream.getvalue()


@pytest.fixture
def pictures(tmp_path):
    """A good image folder, to be made bad."""
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(picture_bytes())
    return tmp_path


class TestImages:
    def test_postscript_is_not_handed_to_another_program(
        self, pictures, monkeypatch, tmp_path_factory
    ):
        # Ghostscript as Pillow looks for it: one that leaves a mark where it is called.
        tools = tmp_path_factory.mktemp("bin")
        mark = tools / "mark"
        (tools / "gs").write_text(f"#!/bin/sh\ntouch {mark}\n")
        (tools / "gs").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)
        program = (
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 7\n%%EndComments\n"
            b"showpage\n%%EOF\n"
        )
        (pictures / "cat" / "a.png").write_bytes(program)
        refused(load, "imagefolder", folder=pictures, match=r"a\.png cannot be read as")
        assert not mark.exists()

    @pytest.mark.parametrize(
        "kind", ["GIF", "TIFF", "ICO", "TGA", "PCX", "WEBP", "SGI"]
    )
    def test_formats_that_are_not_promised_are_refused(self, pictures, kind):
        (pictures / "cat" / "a.png").write_bytes(picture_bytes(kind))
        refused(
            load, "imagefolder", folder=pictures, match="PNG, JPEG, PPM, BMP are read"
        )

    @pytest.mark.parametrize("limit", [None, 2**40])
    def test_a_bomb_is_refused_where_pillows_limit_was_lifted(
        self, pictures, monkeypatch, limit
    ):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        (pictures / "cat" / "1.png").write_bytes(png_header(60_000, 50_000))
        refused(
            load, "imagefolder", folder=pictures, size=8, match="50000×60000 pixels"
        )

    def test_many_large_images_must_fit_into_memory(self, pictures):
        refused(load, "imagefolder", folder=pictures, size=2**20, match="GiB of memory")

    @pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "PPM"])
    def test_a_cut_image_is_refused_where_pillow_was_told_to_bear_it(
        self, pictures, monkeypatch, kind
    ):
        monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
        content = picture_bytes(kind)
        (pictures / "cat" / "1.png").write_bytes(content[: len(content) * 2 // 3])
        refused(load, "imagefolder", folder=pictures, match=r"1\.png cannot be read")
        assert ImageFile.LOAD_TRUNCATED_IMAGES

    @posix
    @pytest.mark.parametrize("name", ["pipe.png", "socket.png", "link.png", "loop.png"])
    def test_what_is_no_file_is_named(self, pictures, name):
        path = pictures / "cat" / name
        if name == "pipe.png":
            os.mkfifo(path)
        elif name == "socket.png":
            here = os.getcwd()
            os.chdir(path.parent)  # names of sockets are short
            try:
                with socket.socket(socket.AF_UNIX) as end:
                    end.bind(name)
            finally:
                os.chdir(here)
        else:
            path.symlink_to(name if name == "loop.png" else "nowhere.png")
        refused(load, "imagefolder", folder=pictures, match=name)

    @posix
    def test_a_class_that_is_a_broken_link_is_not_left_out(self, pictures):
        (pictures / "owl").symlink_to(pictures / "nowhere")
        refused(load, "imagefolder", folder=pictures, match="owl is a link that leads")

    @posix
    @pytest.mark.parametrize("name", [b"\xff\xfe", b"a\nb", b"\x1b[2J"])
    def test_a_class_whose_name_is_no_text(self, pictures, name):
        folder = os.path.join(os.fsencode(pictures), name)
        try:
            shutil.copytree(os.fsencode(pictures / "cat"), folder)
        except OSError:
            pytest.skip("this file system wants text")
        refused(load, "imagefolder", folder=pictures, match="rename the folder")

    @posix
    def test_an_image_with_an_odd_name_is_read_or_named_safely(self, pictures):
        odd = os.path.join(os.fsencode(pictures / "cat"), b"\xff\n\x1b.png")
        Path(os.fsdecode(odd)).write_bytes(picture_bytes())
        assert len(load("imagefolder", folder=pictures)) == 3
        Path(os.fsdecode(odd)).write_bytes(b"no image")
        refused(load, "imagefolder", folder=pictures, match=r"\\udcff\\n\\x1b\.png'")


@pytest.fixture
def nobody():
    """A folder whose owner is not us, to be locked: root reads everything."""
    if os.name != "posix":
        pytest.skip("permissions of POSIX systems")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    user = os.geteuid()

    class Nobody:
        path = folder

        def __enter__(self):
            if user == 0:
                os.seteuid(65534)

        def __exit__(self, *_):
            os.seteuid(user)

    yield Nobody()
    os.seteuid(user)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


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
        assert shown("a b/ü.png") == "a b/ü.png"
        assert shown(os.fsdecode(b"\xff\n")).isascii()


class TestCache:
    @pytest.fixture
    def source(self, tmp_path):
        write_idx(tmp_path / "mnist", IMAGES[..., 0], LABELS)
        return lambda: load("mnist", folder=tmp_path, verify=False)

    def entry(self, part):
        (path,) = cache_folder().glob(f"*.{part}")
        return path

    def damaged(self, source, path):
        """Whether the entry is made anew, with the right numbers."""
        found = source()
        np.testing.assert_array_equal(found.inputs, IMAGES[..., 0])
        assert found.inputs.dtype == np.uint8
        np.testing.assert_array_equal(found.labels, LABELS)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (b"'|u1'", b"'|i1'"),
            (b"(15, 32, 32)", b"(32, 15, 32)"),
            (b"False", b"True "),
            (b"(15, 32, 32)", b"(99, 99, 99)"),
            (b"'descr'", b"'desc\n'"),
            (b"{", b"["),
            (b"{'descr'", b"{((((((("),
        ],
    )
    def test_a_changed_header_is_seen(self, source, old, new):
        source()
        path = self.entry("inputs.npy")
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new, 1))
        self.damaged(source, path)

    @pytest.mark.parametrize(
        "content",
        [
            b"[" * 100_000,
            b"\xff\xfe\x00",
            b"[]",
            b"7",
            b"{}",
            b'{"record": null}',
            b'{"inputs_sha256": {}, "labels_sha256": [], "files_match": 1}',
            b" " * 10**6,
        ],
    )
    def test_a_record_of_anything(self, source, content):
        source()
        path = self.entry("json")
        path.write_bytes(content)
        self.damaged(source, path)

    def test_a_record_that_was_changed_is_seen(self, source):
        source()
        path = self.entry("json")
        text = path.read_text()
        assert '"files_match": null' in text
        path.write_text(text.replace('"files_match": null', '"files_match": true'))
        self.damaged(source, path)
        assert '"files_match": null' in path.read_text()

    @posix
    @pytest.mark.parametrize("part", ["json", "inputs.npy"])
    @pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
    def test_what_is_no_file_is_done_without(self, source, part, kind):
        source()
        path = self.entry(part)
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to("nowhere")
        self.damaged(source, path)

    @posix
    def test_clearing_spares_folders_and_takes_broken_links(self, source):
        source()
        (cache_folder() / "mine.json").mkdir()
        (cache_folder() / "old.json").symlink_to("nowhere")
        assert clear_cache() > 0
        assert [path.name for path in cache_folder().iterdir()] == ["mine.json"]

    def test_a_cache_that_may_not_be_cleared_is_named(self, nobody, monkeypatch):
        monkeypatch.setenv("THEODOLITE_CACHE", str(nobody.path))
        (nobody.path / "a.json").write_text("{}")
        nobody.path.chmod(0o555)
        with nobody:
            refused(clear_cache, match=r"a\.json cannot be deleted")

    @pytest.mark.parametrize("folder", ["~nobody-at-all/x", "a" * 5000, "/dev/null/x"])
    def test_a_cache_that_can_be_nowhere_is_done_without(
        self, source, monkeypatch, folder
    ):
        monkeypatch.setenv("THEODOLITE_CACHE", folder)
        self.damaged(source, folder)

    def test_a_cache_without_a_home_is_a_sentence(self, monkeypatch):
        monkeypatch.setenv("THEODOLITE_CACHE", "~nobody-at-all/x")
        refused(cache_folder, match="THEODOLITE_CACHE")
