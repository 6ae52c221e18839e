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


@pytest.fixture
def idx_folder(tmp_path):
    write_idx(tmp_path, GREY, LABELS, packed=False)
    return tmp_path


@bounded
@given(content=bytes_or_noise(idx_bytes(GREY)))
def test_plain_idx(idx_folder, content):
    (idx_folder / "train-images-idx3-ubyte").write_bytes(content)
    loaded("mnist", idx_folder, verify=False)


@bounded
@given(content=bytes_or_noise(idx_bytes(LABELS)))
def test_idx_labels(idx_folder, content):
    (idx_folder / "train-labels-idx1-ubyte").write_bytes(content)
    loaded("mnist", idx_folder, verify=False)


@bounded
@given(
    content=st.one_of(
        bytes_or_noise(gzip.compress(idx_bytes(GREY))),
        bytes_or_noise(idx_bytes(GREY)).map(gzip.compress),
    )
)
def test_gzipped_idx(tmp_path, content):
    if not any(tmp_path.iterdir()):
        write_idx(tmp_path, GREY, LABELS)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(content)
    loaded("mnist", tmp_path, verify=False)


DELTA = np.zeros(3072, np.uint8).tobytes()


@pytest.fixture
def delta_folder(tmp_path):
    write_cifar10(tmp_path, COLOUR, random_labels(5), "delta xz")
    return tmp_path


@bounded
@given(
    content=st.one_of(
        bytes_or_noise(lzma.compress(DELTA, preset=0)),
        bytes_or_noise(DELTA).map(lzma.compress),
    )
)
def test_xz_batches(delta_folder, content):
    (delta_folder / "data_batch_1.xz").write_bytes(content)
    loaded("cifar10", delta_folder, verify=False)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@bounded
@given(content=bytes_or_noise(npy(random_labels(5))))
def test_label_arrays(delta_folder, content):
    (delta_folder / "train_labels.npy").write_bytes(content)
    loaded("cifar10", delta_folder, verify=False)


BATCH = {b"data": planes(COLOUR[:1]), b"labels": [3], b"filenames": ["a.png"]}


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickled_batches(tmp_path, protocol):
    write_cifar10(tmp_path, COLOUR, random_labels(5), "pickle")

    @bounded
    @given(content=bytes_or_noise(pickle.dumps(BATCH, protocol=protocol)))
    def run(content):
        (tmp_path / "data_batch_1").write_bytes(content)
        loaded("cifar10", tmp_path, verify=False)

    run()


@pytest.fixture
def batches(tmp_path, request):
    write_cifar10(tmp_path, COLOUR, random_labels(5), request.param)
    return tmp_path


@pytest.mark.parametrize("batches", ["pickle"], indirect=True)
@bounded
@given(
    operations=st.lists(
        st.sampled_from(list(b"(}]).0.12NKabetuRdl\x85\x86\x87\x94qhs")), max_size=60
    )
)
def test_pickles_of_random_operations(batches, operations):
    (batches / "data_batch_1").write_bytes(bytes([0x80, 2, *operations]) + b".")
    loaded("cifar10", batches, verify=False)


@pytest.mark.parametrize("batches", ["binary"], indirect=True)
@bounded
@given(content=bytes_or_noise(b"\3" + bytes(3072)))
def test_binary_batches(batches, content):
    (batches / "data_batch_1.bin").write_bytes(content)
    loaded("cifar10", batches, verify=False)


def picture(kind):
    stream = io.BytesIO()
    Image.fromarray(random_images(1, 9, 7, 3)[0]).save(stream, kind)
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "PPM"])
def test_image_folders(tmp_path, kind):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.png").write_bytes(picture("PNG"))

    @bounded
    @given(content=bytes_or_noise(picture(kind)), size=st.sampled_from([None, 6]))
    def run(content, size):
        (tmp_path / "cat" / "2.png").write_bytes(content)
        loaded("imagefolder", tmp_path, size=size)

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
