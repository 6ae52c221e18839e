"""Compiled kernels in containers where nothing can be written, and where none may be.

Kernels are imported from a copy of the package whose folder for compiled code is a
file, with a home that is one too: nobody can write there, whatever rights he has.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

SOURCE = Path(__file__).parents[2] / "src" / "theodolite"
PROGRAM = """
import os
import tempfile
import numpy as np
from theodolite.core import ShortcutBlueprint
from theodolite.training import train_grid
from theodolite.training.engines.cpu import FusedEngine
tempfile.tempdir = os.environ.get("ONLY_TEMPORARY_PLACE")
plan = ShortcutBlueprint(width=2, depth=2)
x, y = np.random.default_rng(0).normal(size=(2, 20, 2))
try:
    engine = FusedEngine(plan, x, y)
    if "DECIDE_ONLY" not in os.environ:
        engine.losses(engine.place(np.zeros((1, 2, 2, 2))))
    print(engine.name)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
    tempfile.tempdir = None
    print(train_grid(plan, (x, y), {"lr": [0.1]}, steps=2).methods[0])
"""


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    """A package beside which nothing can be kept."""
    place = tmp_path_factory.mktemp("sealed")
    hidden = shutil.ignore_patterns("__pycache__", "committed", "studies", "report")
    shutil.copytree(SOURCE, place / "theodolite", ignore=hidden)
    kernels = place / "theodolite" / "training" / "engines" / "kernels"
    (kernels / "__pycache__").touch()
    return place


def names(sealed, **environment):
    given = {"PYTHONPATH": str(sealed), "HOME": "/dev/null", **environment}
    unset = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT")
    done = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM],
        env={k: v for k, v in os.environ.items() if k not in unset} | given,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_compiled_code_goes_to_a_temporary_folder(sealed, tmp_path):
    assert names(sealed, TMPDIR=str(tmp_path)) == ["fused (numba)"]
    (folder,) = tmp_path.iterdir()
    assert list(folder.rglob("*.nbi"))
    assert folder.stat().st_mode & 0o777 == 0o700


def test_code_of_a_folder_that_others_can_write_is_not_run(sealed, tmp_path):
    user = os.getuid()
    open_to_all = tmp_path / f"theodolite-compiled-{user}"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    given = {"TMPDIR": str(tmp_path), "DECIDE_ONLY": "1"}
    assert names(sealed, **given) == ["fused (numba)"]
    assert not list(open_to_all.iterdir())
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"NUMBA_DISABLE_JIT": "1"}, "NUMBA_DISABLE_JIT keeps numba from compiling"),
        (
            {"ONLY_TEMPORARY_PLACE": "/dev/null"},
            "set NUMBA_CACHE_DIR to one that can be",
        ),
    ],
    ids=["not allowed", "no place"],
)
def test_torch_computes_where_nothing_can_be_compiled(sealed, environment, told):
    refused, by_default = names(sealed, **environment)
    assert refused.startswith("ConfigError: ")
    assert told in refused
    assert by_default == "stacked moments (torch)"
