"""Every reading fits on a screen, and comes back from disk as it was."""

import dataclasses
import io
import json
import zipfile
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from theodolite.core import DataError, Reading, TheodoliteError
from theodolite.instruments import (
    Blocks,
    Trace,
    by_block,
    classifier_norms,
    collapse,
    condition,
    diagonal,
    extreme_eigenvalues,
    hessian,
    index,
    sharpness_along,
    singular_values,
    spectral_density,
    spectrum,
    tangent_kernel,
    trace,
)
from theodolite.training import Trajectory

X = torch.linspace(-4, 4, 36, dtype=torch.float64).sin().reshape(12, 3)
CLASSES = torch.arange(12) % 2
GIVEN = {"loss": nn.CrossEntropyLoss(), "norm_mode": "eval"}


def model(depth=1):
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(3, 3), nn.Tanh())]
    return nn.Sequential(*layers, nn.Linear(3, 2)).double()


def measured(instrument, **settings):
    return lambda: instrument(model(), (X, CLASSES), **GIVEN, **settings)


def along():
    probe = sharpness_along(model(), (X, CLASSES), **GIVEN)
    for step in range(3):
        probe(step)
    return probe.reading()


def run():
    return Trajectory(
        steps=np.arange(5),
        loss=np.linspace(1, 0, 5),
        loss_error=np.full(5, 1e-12),
        status="finished",
        norm_mode="batch",
    )


READINGS = {
    "hessian": measured(hessian),
    "spectrum": measured(spectrum),
    "trace": measured(trace, method="products", max_matvecs=6),
    "diagonal": measured(diagonal),
    "extremes": measured(extreme_eigenvalues, k=3, vectors=True),
    "density": measured(spectral_density, n_probes=2, steps=4),
    "index": measured(index),
    "condition": measured(condition),
    "singular": lambda: singular_values(model(), X, block="0", norm_mode="eval"),
    "kernel": lambda: tangent_kernel(model(), X, norm_mode="eval"),
    "along": along,
    "collapse": lambda: collapse(model(), (X, CLASSES), norm_mode="eval", other=X),
    "norms": lambda: classifier_norms(
        model(), (X, CLASSES), norm_mode="eval", directions=True
    ),
    "blocks": lambda: by_block(trace, model(40), (X, CLASSES), **GIVEN, max_matvecs=6),
    "blocks of lists": lambda: by_block(
        extreme_eigenvalues, model(), (X, CLASSES), **GIVEN, k=2
    ),
}
# No reading changes once it is made, so that tests can share them.
READINGS = {name: cache(make) for name, make in READINGS.items()}


@pytest.mark.parametrize("name", READINGS)
def test_a_reading_fits_on_a_screen(name):
    reading = READINGS[name]()
    lines = str(reading).splitlines()
    assert 1 < len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert type(reading).__name__ in lines[0]
    assert str(reading.status) in lines[0]
    assert any("norm mode eval" in line for line in lines)
    if not isinstance(reading, Blocks):
        errors = set(reading.error_of.values())
        for quantity in set(reading.dims) - errors:
            assert any(quantity in line for line in lines)


def test_a_number_is_shown_with_its_error():
    reading = READINGS["trace"]()
    line = next(line for line in str(reading).splitlines() if " trace " in line)
    assert f"{reading.trace:.6g} ± {reading.trace_error:.6g}" in line


def same(first, second):
    assert type(first) is type(second)
    if isinstance(first, Reading):
        for field in dataclasses.fields(first):
            same(getattr(first, field.name), getattr(second, field.name))
    elif isinstance(first, np.ndarray):
        assert first.dtype == second.dtype
        np.testing.assert_array_equal(first, second)
    elif isinstance(first, tuple | list):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            same(one, other)
    elif isinstance(first, float) and np.isnan(first):
        assert np.isnan(second)
    else:
        assert first == second


@pytest.mark.parametrize("name", READINGS)
def test_a_reading_comes_back_as_it_was(name, tmp_path):
    reading = READINGS[name]()
    path = tmp_path / "reading.npz"
    reading.save(path)
    for kind in (Reading, type(reading)):
        back = kind.load(path)
        same(plain(reading), plain(back))
        assert back.rows() == reading.rows()
    assert [entry.name for entry in tmp_path.iterdir()] == ["reading.npz"]


def plain(reading):
    """NumPy scalars among fields come back as Python's."""
    changed = {
        field.name: getattr(reading, field.name).item()
        for field in dataclasses.fields(reading)
        if isinstance(getattr(reading, field.name), np.generic)
    }
    return dataclasses.replace(reading, **changed)


def test_a_trajectory_comes_back(tmp_path):
    path = tmp_path / "run.npz"
    run().save(path)
    assert Trajectory.load(path).rows() == run().rows()
    with pytest.raises(DataError, match=r"holds a Trajectory, wanted is a Trace"):
        Trace.load(path)


def archive(entries, compression=zipfile.ZIP_STORED):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", compression) as made:
        for name, data in entries.items():
            made.writestr(name, data)
    return held.getvalue()


def saved(tmp_path):
    path = tmp_path / "whole.npz"
    READINGS["diagonal"]().save(path)
    with zipfile.ZipFile(path) as made:
        return {name: made.read(name) for name in made.namelist()}, path.read_bytes()


def changed(entries, **parts):
    header = json.loads(entries["header.json"])
    return {**entries, "header.json": json.dumps({**header, **parts})}


def pickled():
    held = io.BytesIO()
    np.save(held, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return held.getvalue()


def bomb():
    held = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        held, {"shape": (2**40,), "fortran_order": False, "descr": "<f8"}
    )
    return held.getvalue()


HOSTILE = {
    "cut": (lambda e, raw: raw[:-40], "damaged"),
    "noise": (lambda e, raw: b"\x93NUMPY" + raw[:100], "damaged"),
    "empty": (lambda e, raw: b"", "damaged"),
    "no header": (lambda e, raw: archive({"0.npy": e["0.npy"]}), "damaged"),
    "no array": (lambda e, raw: archive({"header.json": e["header.json"]}), "damaged"),
    "compressed": (lambda e, raw: archive(e, zipfile.ZIP_DEFLATED), "damaged"),
    "pickled": (lambda e, raw: archive({**e, "0.npy": pickled()}), "damaged"),
    "bomb": (lambda e, raw: archive({**e, "0.npy": bomb()}), "damaged"),
    "version": (lambda e, raw: archive(changed(e, version=9)), "version 9"),
    "kind": (lambda e, raw: archive(changed(e, kind="Popen")), "'Popen', a kind"),
    "no reading": (lambda e, raw: archive(changed(e, kind="trace")), "'trace', a kind"),
    "fields": (lambda e, raw: archive(changed(e, fields={"x": 1})), "other fields"),
    "list": (lambda e, raw: archive({**e, "header.json": "[1]"}), "damaged"),
    "deep": (lambda e, raw: archive({**e, "header.json": "[" * 10**5}), "damaged"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_not_known_is_refused_in_one_sentence(name, tmp_path):
    make, words = HOSTILE[name]
    path = tmp_path / "odd.npz"
    path.write_bytes(make(*saved(tmp_path)))
    with pytest.raises(TheodoliteError, match=words) as said:
        Reading.load(path)
    assert "\n" not in str(said.value)


def test_paths_that_do_not_work_are_named(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        Reading.load(tmp_path / "nowhere.npz")
    with pytest.raises(DataError, match="cannot be written"):
        run().save(tmp_path / "no" / "folder.npz")
