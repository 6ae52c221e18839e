"""Pickles made to harm: nothing runs, hangs or fills the memory."""

import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.data.hostile import IMAGES, LABELS, refused
from tests.data.writers import planes, write_pickle
from theodolite.data.cifar import read_pickle
from theodolite.data.plain_pickle import read_plain_pickle


def limited(code, gigabytes=2.0, seconds=60):
    """Run code in a process that dies where it takes more memory or processor time."""
    start = (
        "import resource\n"
        "import theodolite.data, theodolite.data.cifar, theodolite.data.plain_pickle\n"
        "from pathlib import Path\n"
        "from theodolite.core import DataError\n"
        f"limit = int({gigabytes} * 2**30)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        f"resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))\n"
    )
    return subprocess.run(
        [sys.executable, "-c", start + code],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
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
        before = time.process_time()
        refused(read_plain_pickle, path, match="name is no text")
        assert time.process_time() - before < 1

    def test_lists_of_lists_that_share_are_not_walked(self, tmp_path):
        labels = [1, 2]
        for _ in range(40):
            labels = [labels, labels]
        write_pickle(tmp_path / "b", IMAGES, {"labels": labels})
        before = time.process_time()
        refused(read_pickle, tmp_path / "b", 1, match="not whole numbers")
        assert time.process_time() - before < 1

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
