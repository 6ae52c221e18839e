"""Each check of a real Ray cluster, by what came of it in a child process."""

import sys

import pytest

from tests.later import later
from tests.runs import fatal_checks, ray_checks, ray_child

later("ray.cluster_utils", "pip install 'theodolite[ray]'")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="starts and kills processes"),
    pytest.mark.timeout(2 * ray_child.LIMIT_S),
]
CHECKS = [
    pytest.param(
        name,
        id=name.removeprefix("test_"),
        marks=[m for m in getattr(check, "pytestmark", ()) if m.name == "slow"],
    )
    for name, check in vars(ray_checks).items()
    if name.startswith("test_") and callable(check)
]


@pytest.fixture(scope="module")
def outcomes(request):
    """What went wrong in the checks that were chosen, by name."""
    chosen = [
        item.callspec.params["check"]
        for item in request.session.items
        if item.path == request.path and "outcomes" in item.fixturenames
    ]
    return ray_child.outcomes(ray_checks.__file__, chosen)


@pytest.mark.parametrize("check", CHECKS)
def test_on_a_real_cluster(check, outcomes):
    assert not outcomes[check], outcomes[check]


def test_a_child_that_dies_costs_one_check_and_leaves_nothing(monkeypatch):
    """The limit of time is for a child that does nothing any more."""
    counts = []
    end_marked = ray_child.end_marked
    monkeypatch.setattr(ray_child, "end_marked", lambda m: counts.append(end_marked(m)))
    names = ["test_before", "test_wrong", "test_fatal", "test_after"]
    fast = {"options": ["--noconftest"]}
    outcomes = ray_child.outcomes(fatal_checks.__file__, names, **fast)
    assert outcomes["test_before"] == outcomes["test_after"] == ""
    assert "ValueError: wrong here" in outcomes["test_wrong"]
    assert "the last words" in outcomes["test_fatal"]
    assert "exit status -9" in outcomes["test_fatal"]
    assert counts == [1, 0], "the process that the first child left behind"
    names = ["test_endless", "test_after"]
    outcomes = ray_child.outcomes(fatal_checks.__file__, names, limit_s=3, **fast)
    assert "the child ended in this check" in outcomes["test_endless"]
    assert outcomes["test_after"] == "not run: 3 s had passed"
