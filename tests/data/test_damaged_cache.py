"""A cache that was damaged or cannot be written never changes a number."""

import os

import numpy as np
import pytest

from tests.data.hostile import IMAGES, LABELS, posix, refused
from tests.data.writers import write_idx
from theodolite.data import load
from theodolite.data.cache import cache_folder


class TestCache:
    @pytest.fixture
    def source(self, tmp_path):
        write_idx(tmp_path / "mnist", IMAGES[..., 0], LABELS)
        return lambda: load("mnist", folder=tmp_path, verify=False)

    def entry(self, part):
        (path,) = cache_folder().glob(f"*.{part}")
        return path

    def is_right(self, source):
        """Whether the numbers are those of the files."""
        dataset = source()
        np.testing.assert_array_equal(dataset.inputs, IMAGES[..., 0])
        assert dataset.inputs.dtype == np.uint8
        np.testing.assert_array_equal(dataset.labels, LABELS)

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
        self.is_right(source)
        assert path.read_bytes() == content

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
        before = path.read_bytes()
        path.write_bytes(content)
        self.is_right(source)
        assert path.read_bytes() == before

    def test_a_record_that_was_changed_is_seen(self, source):
        source()
        path = self.entry("json")
        text = path.read_text()
        assert '"files_match": null' in text
        path.write_text(text.replace('"files_match": null', '"files_match": true'))
        self.is_right(source)
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
        self.is_right(source)

    @pytest.mark.parametrize("folder", ["~nobody-at-all/x", "a" * 5000, "/dev/null/x"])
    def test_a_cache_that_can_be_nowhere_is_done_without(
        self, source, monkeypatch, folder
    ):
        monkeypatch.setenv("THEODOLITE_CACHE", folder)
        self.is_right(source)

    def test_a_cache_without_a_home_is_a_sentence(self, monkeypatch):
        monkeypatch.setenv("THEODOLITE_CACHE", "~nobody-at-all/x")
        refused(cache_folder, match="THEODOLITE_CACHE")
