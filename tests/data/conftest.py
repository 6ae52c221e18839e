import os
import shutil
import tempfile
from pathlib import Path

import pytest

GIVEN = os.environ.get("THEODOLITE_DATA")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Keep every test away from the user's cache and data folder."""
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("THEODOLITE_CACHE", str(cache))
    monkeypatch.delenv("THEODOLITE_DATA", raising=False)
    return cache


@pytest.fixture(scope="session")
def full_size():
    """The folder with the real datasets."""
    if not GIVEN:
        pytest.skip("THEODOLITE_DATA names no folder with the full-size datasets")
    return GIVEN


@pytest.fixture
def nobody():
    """A folder whose owner is not us, to be locked: root reads everything."""
    if os.name != "posix":
        pytest.skip("permissions of POSIX systems")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    user = os.geteuid()

    class Nobody:
        path = folder

        def __enter__(self):
            if user == 0:
                os.seteuid(65534)

        def __exit__(self, *_):
            os.seteuid(user)

    yield Nobody()
    os.seteuid(user)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)
