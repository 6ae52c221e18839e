"""Image folders that hold anything but images."""

import os
import shutil
import socket
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image, ImageFile

from tests.data.hostile import picture_bytes, posix, refused
from theodolite.data import load


def chunk(kind, body):
    check = struct.pack(">I", zlib.crc32(kind + body))
    return struct.pack(">I", len(body)) + kind + body + check


def png_header(width, height):
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b""))
    )


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
