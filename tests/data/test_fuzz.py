"""Random and mutated files: a dataset or a sentence, and nothing else.

Each example flips, cuts, grows or rewrites bytes of a small valid file, or makes one of
noise, and loads it. A traceback, a hang or a wrong type fails; memory is watched too.
"""

import gzip
import io
import json
import lzma
import pickle
import resource
import struct
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.data.writers import (
    idx_bytes,
    planes,
    random_images,
    random_labels,
    write_cifar10,
    write_idx,
)
from theodolite.core import ConfigError, DataError
from theodolite.data import Dataset, load

bounded = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
GREY, LABELS = random_images(6, 5, 4), random_labels(6)
COLOUR = random_images(5, 32, 32, 3)
# More than any of these small files needs, and far less than a bomb takes.
MOST_GROWTH = 300 * 2**20


@st.composite
def mutated(draw, content):
    """The bytes of a file after a few accidents, most of them near its header."""
    damaged = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        near = min(len(damaged), 160) if draw(st.booleans()) else len(damaged)
        place = draw(st.integers(0, max(0, near - 1)))
        accident = draw(st.sampled_from(["flip", "set", "word", "cut", "grow", "swap"]))
        if accident == "flip" and damaged:
            damaged[place] ^= 1 << draw(st.integers(0, 7))
        elif accident == "set" and damaged:
            damaged[place] = draw(st.integers(0, 255))
        elif accident == "word":
            word = draw(st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1]))
            order = draw(st.sampled_from(["<I", ">I"]))
            damaged[place : place + 4] = struct.pack(order, word)
        elif accident == "cut":
            del damaged[place:]
        elif accident == "grow":
            damaged[place:place] = draw(st.binary(min_size=1, max_size=40))
        elif damaged:
            other = draw(st.integers(0, len(damaged) - 1))
            damaged[place], damaged[other] = damaged[other], damaged[place]
    return bytes(damaged)


def bytes_or_noise(content):
    return st.one_of(mutated(content), mutated(content), st.binary(max_size=400))


@pytest.fixture(autouse=True)
def _little_memory():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert 1024 * (after - before) < MOST_GROWTH


def loaded(name, folder, **options):
    """Load; return the dataset, or None where it was refused in one sentence."""
    try:
        dataset = load(name, folder=folder, **options)
    except (DataError, ConfigError) as error:
        text = str(error)
        assert text.isprintable()
        assert len(text) > 40
        assert not text.endswith(".")
        return None
    assert isinstance(dataset, Dataset)
    assert dataset.inputs.dtype == np.uint8
    assert dataset.labels.max() < dataset.n_classes
    return dataset


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def picture(kind):
    stream = io.BytesIO()
    Image.fromarray(random_images(1, 9, 7, 3)[0]).save(stream, kind)
    return stream.getvalue()


def write_mnist(folder, *, packed):
    write_idx(folder, GREY, LABELS, packed=packed)


def write_cifar(folder, layout):
    write_cifar10(folder, COLOUR, random_labels(5), layout)


def write_cats(folder):
    (folder / "cat").mkdir()
    (folder / "cat" / "1.png").write_bytes(picture("PNG"))


DELTA = np.zeros(3072, np.uint8).tobytes()
BATCH = {b"data": planes(COLOUR[:1]), b"labels": [3], b"filenames": ["a.png"]}
OPERATIONS = st.lists(
    st.sampled_from(list(b"(}]).0.12NKabetuRdl\x85\x86\x87\x94qhs")), max_size=60
)
PLAIN, PACKED = partial(write_mnist, packed=False), partial(write_mnist, packed=True)
PICKLE, BINARY, XZ = (
    partial(write_cifar, layout=layout) for layout in ("pickle", "binary", "delta xz")
)
IDX = bytes_or_noise(idx_bytes(GREY))
# A dataset, what writes a sound one, the file that is replaced, and its contents.
FILES = {
    "idx": ("mnist", PLAIN, "train-images-idx3-ubyte", IDX),
    "idx labels": (
        "mnist", PLAIN, "train-labels-idx1-ubyte", bytes_or_noise(idx_bytes(LABELS)),
    ),
    "gzipped idx": (
        "mnist", PACKED, "train-images-idx3-ubyte.gz",
        bytes_or_noise(gzip.compress(idx_bytes(GREY))) | IDX.map(gzip.compress),
    ),
    "xz batch": (
        "cifar10", XZ, "data_batch_1.xz",
        bytes_or_noise(lzma.compress(DELTA, preset=0))
        | bytes_or_noise(DELTA).map(lzma.compress),
    ),
    "label array": (
        "cifar10", XZ, "train_labels.npy", bytes_or_noise(npy(random_labels(5))),
    ),
    **{
        f"pickle {protocol}": (
            "cifar10", PICKLE, "data_batch_1",
            bytes_or_noise(pickle.dumps(BATCH, protocol=protocol)),
        )
        for protocol in (0, 2, 5)
    },
    "pickle of random operations": (
        "cifar10", PICKLE, "data_batch_1",
        OPERATIONS.map(lambda operations: bytes([0x80, 2, *operations]) + b"."),
    ),
    "binary batch": (
        "cifar10", BINARY, "data_batch_1.bin", bytes_or_noise(b"\3" + bytes(3072)),
    ),
    **{
        kind: ("imagefolder", write_cats, "cat/2.png", bytes_or_noise(picture(kind)))
        for kind in ("PNG", "JPEG", "BMP", "PPM")
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
def test_files(tmp_path, kind):
    name, write, file, contents = FILES[kind]
    write(tmp_path)
    choices = [{"verify": False}]
    if name == "imagefolder":
        choices = [{"size": None}, {"size": 6}]

    @bounded
    @given(content=contents, options=st.sampled_from(choices))
    def run(content, options):
        (tmp_path / file).write_bytes(content)
        loaded(name, tmp_path, **options)

    run()


@pytest.mark.parametrize("part", ["inputs.npy", "labels.npy", "json"])
def test_cached_entries(tmp_path, own_cache, part):
    write_idx(tmp_path, GREY, LABELS)
    load("mnist", folder=tmp_path, verify=False)
    (path,) = own_cache.glob(f"*.{part}")
    sound = path.read_bytes()

    @bounded
    @given(content=bytes_or_noise(sound))
    def run(content):
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        dataset = loaded("mnist", tmp_path, verify=False)
        # Whatever the cache holds, the numbers are those of the sources.
        np.testing.assert_array_equal(dataset.inputs, GREY)
        np.testing.assert_array_equal(dataset.labels, LABELS)

    run()


JSON = st.sampled_from(
    [None, True, -1, 2**70, 1e300, "", "é", [], {}, [[]], [6, 5, 4], [[6, 5, 4], "|u1"]]
)


@bounded
@given(changes=st.dictionaries(st.sampled_from(["inputs", "labels", "record"]), JSON))
def test_records_of_any_json(tmp_path, own_cache, changes):
    if not any(tmp_path.iterdir()):
        write_idx(tmp_path, GREY, LABELS)
    load("mnist", folder=tmp_path, verify=False)
    (path,) = own_cache.glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    dataset = loaded("mnist", tmp_path, verify=False)
    np.testing.assert_array_equal(dataset.inputs, GREY)
