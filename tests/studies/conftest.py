"""Each study runs once at SMOKE, when a test first asks for its rows."""

from functools import lru_cache

import pytest
from matplotlib.mathtext import MathTextParser

from tests.studies import looks


@pytest.fixture(scope="session")
def smoke_root(tmp_path_factory, worker_id):
    """Folder for runs at SMOKE; processes of the tests share it."""
    base = tmp_path_factory.getbasetemp()
    return (base if worker_id == "master" else base.parent) / "smoke"


@pytest.fixture(scope="session", autouse=True)
def _figures_are_looked_at():
    with pytest.MonkeyPatch.context() as patch:
        looks.install(patch)
        # Labels of ticks recur, and matplotlib remembers only the last 50.
        parse = lru_cache(2000)(MathTextParser._parse_cached.__wrapped__)
        patch.setattr(MathTextParser, "_parse_cached", parse)
        yield
