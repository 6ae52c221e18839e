"""Compiled kernels in containers where nothing can be written, and where none may be.

Kernels are imported from a copy of the package whose folder for compiled code is a
file, with a home that is one too: nobody can write there, whatever rights he has.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

SOURCE = Path(__file__).parents[2] / "src" / "theodolite"
# A process for each environment, in which numba and our code are first imported.
PROGRAM = """
import json
import os
import sys
import tempfile
import numpy as np
import torch

def compute():
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
        return [engine.name]
    except Exception as error:
        refused = f"{type(error).__name__}: {error}"
        tempfile.tempdir = None
        grid = train_grid(plan, (x, y), {"lr": [0.1]}, steps=2)
        return [refused, grid.methods[0]]

assert "numba" not in sys.modules and tempfile.tempdir is None
for name, environment in json.loads(sys.argv[1]).items():
    if os.fork() == 0:
        os.environ.update(environment)
        print(json.dumps([name, compute()]), flush=True)
        os._exit(0)
    os.wait()
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


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Temporary folders: an empty one, and one with a folder open to all."""
    empty, shared = (tmp_path_factory.mktemp(name) for name in ("empty", "shared"))
    open_to_all = shared / f"theodolite-compiled-{os.getuid()}"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    return empty, shared


@pytest.fixture(scope="module")
def names(sealed, places):
    """What each environment computes with, and why not with kernels."""
    empty, shared = map(str, places)
    environments = {
        "empty": {"TMPDIR": empty},
        "shared": {"TMPDIR": shared, "DECIDE_ONLY": "1"},
        "not allowed": {"NUMBA_DISABLE_JIT": "1"},
        "no place": {"ONLY_TEMPORARY_PLACE": "/dev/null"},
    }
    given = {"PYTHONPATH": str(sealed), "HOME": "/dev/null"}
    unset = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT")
    done = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM, json.dumps(environments)],
        env={k: v for k, v in os.environ.items() if k not in unset} | given,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(map(json.loads, done.stdout.splitlines()))


def test_compiled_code_goes_to_a_temporary_folder(names, places):
    assert names["empty"] == ["fused (numba)"]
    (folder,) = places[0].iterdir()
    assert list(folder.rglob("*.nbi"))
    assert folder.stat().st_mode & 0o777 == 0o700


def test_code_of_a_folder_that_others_can_write_is_not_run(names, places):
    assert names["shared"] == ["fused (numba)"]
    shared = places[1]
    assert len(list(shared.iterdir())) == 2
    assert not list((shared / f"theodolite-compiled-{os.getuid()}").iterdir())


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ("not allowed", "NUMBA_DISABLE_JIT keeps numba from compiling"),
        ("no place", "set NUMBA_CACHE_DIR to one that can be"),
    ],
)
def test_torch_computes_where_nothing_can_be_compiled(names, environment, told):
    refused, by_default = names[environment]
    assert refused.startswith("ConfigError: ")
    assert told in refused
    assert by_default == "stacked moments (torch)"
