import os

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
