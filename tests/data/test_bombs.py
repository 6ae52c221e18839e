"""Small files that would take much: refused before they do."""

import gzip
import lzma
import struct
import time
import zlib

import numpy as np
import pytest

from tests.data.hostile import IMAGES, LABELS, posix, refused
from tests.data.writers import write_cifar10
from theodolite.data import load
from theodolite.data.cifar import read_binary, read_delta, read_pickle
from theodolite.data.idx import read_idx


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
        before = time.process_time()
        refused(read_idx, path, 3, match=r"inflate to 8,589,934,592 bytes.*gunzip")
        assert time.process_time() - before < 1

    def test_no_more_is_inflated_than_the_header_says(self, tmp_path):
        path = tmp_path / "a.gz"
        head = gzip.compress(struct.pack(">BBBB3I", 0, 0, 8, 3, 2, 2, 2))
        path.write_bytes(head + 2**10 * gzip.compress(bytes(2**23)))
        before = time.process_time()
        refused(read_idx, path, 3, match="declares 8 bytes .* holds more")
        assert time.process_time() - before < 1

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
