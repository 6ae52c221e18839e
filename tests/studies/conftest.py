"""Every study runs once at SMOKE; the tests read what it left."""

import pytest

from theodolite.studies import catalogue, plan_study, run_study


@pytest.fixture(scope="session")
def smoke_root(tmp_path_factory, worker_id):
    """Folder with all studies finished at SMOKE; processes of the tests share it."""
    alone = worker_id == "master"
    base = tmp_path_factory.getbasetemp()
    root = (base if alone else base.parent) / "smoke"
    for entry in catalogue():
        run_study(plan_study(entry, scale="smoke"), root=root, jobs=0)
    return root
