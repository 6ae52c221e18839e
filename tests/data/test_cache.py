import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.data.writers import random_images, random_labels, write_cifar10, write_idx
from theodolite.data import load
from theodolite.data.cache import cache_folder

IMAGES, LABELS = random_images(30, 6, 6), random_labels(30)


@pytest.fixture
def folder(tmp_path):
    write_idx(tmp_path / "mnist", IMAGES, LABELS)
    return tmp_path


def read(folder):
    return load("mnist", folder=folder, verify=False)


def spoil_sources(folder):
    """Change the sources without changing their size or time."""
    for path in (folder / "mnist").iterdir():
        facts = path.stat()
        path.write_bytes(b"\0" * facts.st_size)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def entry(cache, part):
    (path,) = cache.glob(f"*.{part}")
    return path


def test_the_second_load_maps_and_does_not_decode(folder):
    first = read(folder)
    assert isinstance(first.inputs, np.memmap)
    assert first.inputs.mode == "r"
    spoil_sources(folder)
    assert_array_equal(read(folder).inputs, IMAGES)


def test_a_changed_source_is_decoded_again_and_the_old_entry_goes(folder, own_cache):
    read(folder)
    write_idx(folder / "mnist", IMAGES[::-1], LABELS)
    for path in (folder / "mnist").iterdir():  # clocks of files may be coarse
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**9))
    assert_array_equal(read(folder).inputs, IMAGES[::-1])
    assert len(list(own_cache.iterdir())) == 3


def test_two_folders_have_two_entries(folder, own_cache, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    write_idx(other / "mnist", IMAGES[::-1], LABELS)
    read(folder)
    assert_array_equal(read(other).inputs, IMAGES[::-1])
    assert len(list(own_cache.iterdir())) == 6
    assert_array_equal(read(folder).inputs, IMAGES)


@pytest.mark.parametrize("part", ["inputs.npy", "labels.npy", "json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "zero", "gone", "zip"])
def test_a_damaged_entry_is_rebuilt(folder, own_cache, part, damage):
    read(folder)
    path = entry(own_cache, part)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        content[-10] ^= 0xFF
        path.write_bytes(content)
    elif damage == "zero":
        path.write_bytes(b"")
    elif damage == "zip":
        path.write_bytes(b"PK\x03\x04" + content[4:])
    else:
        path.unlink()
    data = read(folder)
    assert_array_equal(data.inputs, IMAGES)
    assert_array_equal(data.labels, LABELS)
    # It was put right, not only worked around.
    spoil_sources(folder)
    assert_array_equal(read(folder).inputs, IMAGES)


def test_a_cache_that_cannot_be_made_is_done_without(folder, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path / "file" / "cache"))
    data = read(folder)
    assert_array_equal(data.inputs, IMAGES)
    assert not isinstance(data.inputs, np.memmap)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write")
def test_a_read_only_cache_is_done_without(folder, own_cache):
    own_cache.chmod(0o500)
    try:
        assert_array_equal(read(folder).inputs, IMAGES)
    finally:
        own_cache.chmod(0o700)


def test_a_full_disk_is_done_without_and_leaves_nothing(folder, own_cache):
    resource = pytest.importorskip("resource")
    assert resource.RLIMIT_FSIZE
    code = (
        "import resource, sys; from theodolite.data import load\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
        f"data = load('mnist', folder={str(folder)!r}, verify=False)\n"
        "assert data.inputs.shape == (30, 6, 6)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert not list(own_cache.iterdir())


def test_processes_that_decode_at_once_agree(tmp_path, own_cache):
    images, labels = random_images(500, 32, 32, 3), random_labels(500)
    write_cifar10(tmp_path / "cifar10", images, labels, "delta xz")
    gate = tmp_path / "gate"
    code = (
        "import pathlib, time; from theodolite.data import load\n"
        f"gate = pathlib.Path({str(gate)!r})\n"
        "print('ready', flush=True)\n"
        "while not gate.exists(): time.sleep(0.001)\n"
        f"data = load('cifar10', folder={str(tmp_path)!r}, verify=False)\n"
        "print(data.checksum)\n"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    assert {worker.stdout.readline() for worker in workers} == {b"ready\n"}
    gate.touch()
    sums = {worker.communicate()[0] for worker in workers}
    assert all(worker.returncode == 0 for worker in workers)
    assert len(sums) == 1
    assert len(list(own_cache.iterdir())) == 3
    data = load("cifar10", folder=tmp_path, verify=False)
    assert_array_equal(data.inputs, images)


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("THEODOLITE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "theodolite"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "theodolite"
