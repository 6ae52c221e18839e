"""Every study runs once at SMOKE; the tests read what it left."""

import pytest

from theodolite.studies import catalogue, plan_study, run_study


@pytest.fixture(scope="session")
def smoke_root(tmp_path_factory):
    """Folder with all studies finished at SMOKE."""
    root = tmp_path_factory.mktemp("smoke")
    for entry in catalogue():
        run_study(plan_study(entry, scale="smoke"), root=root, jobs=0)
    return root
