import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.data.writers import one_sentence
from theodolite.core import DataError
from theodolite.data.plain_pickle import read_plain_pickle

ROWS = np.arange(24, dtype=np.uint8).reshape(4, 6)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("array", [ROWS, np.asfortranarray(ROWS), ROWS.astype(">i4")])
def test_arrays_come_back_under_every_protocol(tmp_path, protocol, array):
    path = tmp_path / "batch"
    batch = {b"data": array, b"labels": [3, 1], "name": b"raw \xff", b"text": "words"}
    path.write_bytes(pickle.dumps(batch, protocol=protocol))
    batch = read_plain_pickle(path)
    assert_array_equal(batch["data"], array)
    assert batch["labels"] == [3, 1]
    assert batch["name"] == b"raw \xff"


def test_a_batch_as_python_2_wrote_it(tmp_path):
    # Protocol 2 by hand, with the 8-bit strings and module names of Python 2.
    raw = bytes([65, 255, 0, 7])
    content = (
        b"\x80\x02}(U\x04datacnumpy.core.multiarray\n_reconstruct\n"
        b"cnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K\x02K\x02\x86"
        b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
        b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x04"
        + raw
        + b"tbU\x06labels](K\x06K\x09eu."
    )
    path = tmp_path / "data_batch_1"
    path.write_bytes(content)
    reference = pickle.loads(content, encoding="bytes")
    batch = read_plain_pickle(path)
    assert_array_equal(batch["data"], np.frombuffer(raw, np.uint8).reshape(2, 2))
    assert_array_equal(batch["data"], reference[b"data"])
    assert batch["labels"] == [6, 9]


class Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


class Evaluate(Touch):
    def __reduce__(self):
        return eval, (f"open({str(self.path)!r}, 'w').close()",)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    ("attack", "called"), [(Touch, "system"), (Evaluate, r"builtins?_*\.eval")]
)
def test_a_hostile_pickle_does_not_run(tmp_path, attack, called, protocol):
    mark, path = tmp_path / "mark", tmp_path / "data_batch_1"
    content = pickle.dumps({b"data": attack(mark)}, protocol=protocol)
    path.write_bytes(content)
    with pytest.raises(DataError, match=called) as error:
        read_plain_pickle(path)
    assert "data_batch_1" in str(error.value)
    assert one_sentence(error)
    assert not mark.exists()
    # The attack is real: an ordinary reader falls for it.
    pickle.loads(content)
    assert mark.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cnumpy\nload\n.",
        b"cnumpy.core.multiarray\nscalar\n.",
        b"cnumpy.ctypeslib\nload_library\n.",
        b"cbuiltins\ngetattr\n.",
        b"c_codecs\ndecode\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__init__\x93.",
    ],
)
def test_names_beside_the_allowed_ones_are_refused(tmp_path, content):
    path = tmp_path / "batch"
    path.write_bytes(content)
    with pytest.raises(DataError, match="nothing was run"):
        read_plain_pickle(path)


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        {b"data": np.array([object()], dtype=object)},
        {b"data": np.zeros(3, dtype=[("a", "u1")])},
        {b"data": np.zeros(3)},
    ],
)
def test_what_no_batch_holds_is_refused(tmp_path, value):
    path = tmp_path / "batch"
    path.write_bytes(pickle.dumps(value))
    with pytest.raises(DataError, match="batch"):
        read_plain_pickle(path)


def test_a_codec_other_than_latin1_is_refused(tmp_path):
    path = tmp_path / "batch"
    path.write_bytes(b"}(Vkey\nc_codecs\nencode\n(Vdata\nVrot13\ntRu.")
    with pytest.raises(DataError, match="rot13"):
        read_plain_pickle(path)


CONTENT = pickle.dumps({b"data": ROWS, b"labels": [1, 2, 3, 4]}, protocol=2)


@settings(max_examples=80, deadline=None)
@given(cut=st.integers(0, len(CONTENT) - 1))
def test_a_pickle_cut_anywhere_is_refused(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "batch"
    path.write_bytes(CONTENT[:cut])
    with pytest.raises(DataError, match="cut off or damaged"):
        read_plain_pickle(path)
