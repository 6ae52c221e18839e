"""Of the members of a crew only those that were lost are replaced."""

import threading

import pytest

from tests.later import later
from tests.runs import crew_work
from tests.runs.ray_nodes import MARKS
from theodolite.core import MeasurementError, RunError
from theodolite.runs import RayCluster
from theodolite.runs.executors.ray import crew as crews
from theodolite.runs.executors.ray.sending import as_raised

later("ray.cluster_utils", "pip install 'theodolite[ray]'")
pytestmark = MARKS
SIZE = 3


@pytest.fixture(scope="module")
def crew():
    with RayCluster(jobs=SIZE) as cluster:
        yield cluster.crew(crew_work.Place)


def who(crew, folder):
    """Return process, size of the crew and seats so far, by rank."""
    assert crew.ask(crew_work.note, str(folder)) == SIZE
    words = [(folder / str(rank)).read_text().split() for rank in range(SIZE)]
    return [tuple(map(int, some)) for some in words]


@pytest.mark.parametrize("lost", [0, 2])
def test_only_the_lost_is_replaced(tmp_path, crew, lost):
    before = who(crew, tmp_path)
    assert crew.ask(crew_work.fall, str(tmp_path), lost) == SIZE
    after = who(crew, tmp_path)
    for rank, ((pid, _, seats), (other, _, more)) in enumerate(
        zip(before, after, strict=True)
    ):
        if rank == lost:
            assert other != pid
            assert more == 1
        else:
            assert other == pid
            assert more == seats + 1


def test_a_crew_of_a_closed_cluster_says_so(crew):
    """And does not have Ray started once more."""
    other = RayCluster()
    idle = other.crew(crew_work.Place)
    other.close()
    for use in (
        lambda: idle.put(1),
        lambda: idle.ask(crew_work.note),
        lambda: idle.size,
    ):
        with pytest.raises(RunError, match=r"is closed.* within `with RayCluster"):
            use()


def test_what_cannot_be_sent_is_told_without_the_rest_of_it(crew):
    with pytest.raises(RunError, match=r"cannot be sent .*lock") as caught:
        crew.put({"model": "M" * 99, "loss": threading.Lock()})
    assert "MMM" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_error_that_cannot_travel_is_named():
    import ray

    far = "Traceback (most recent call last):\n  File …\nUnsendable: this and that."
    error = ray.exceptions.RayTaskError(
        "ask", far, crew_work.Unsendable("this"), proctitle="member", pid=1, ip="::1"
    )
    named = as_raised(ray, error)
    assert isinstance(named, RunError)
    assert str(named).startswith(
        "a member of a Ray crew failed (Unsendable: this and that): leave executor= out"
    )


def test_a_question_that_ends_members_is_given_up(tmp_path, crew, monkeypatch):
    monkeypatch.setattr(crews, "_LOSSES", 2)
    with pytest.raises(RunError, match="members of a Ray crew were lost 2 times"):
        crew.ask(crew_work.fall_always)
    assert {size for _, size, _ in who(crew, tmp_path)} == {SIZE}


def test_what_a_member_refuses_is_said_though_another_is_lost(tmp_path, crew):
    with pytest.raises(MeasurementError, match=r"^no sample counts$"):
        crew.ask(crew_work.fall_and_refuse)
    assert {size for _, size, _ in who(crew, tmp_path)} == {SIZE}


def test_members_that_compute_as_long_as_before_are_waited_for(
    tmp_path, crew, monkeypatch
):
    monkeypatch.setattr(crews, "_RETURN_S", 0.5)
    assert crew.ask(crew_work.compute, 1.0) == SIZE
    before = who(crew, tmp_path)
    assert crew.ask(crew_work.fall_and_compute, str(tmp_path), 1, 2.0) == SIZE
    after = who(crew, tmp_path)
    assert [one[0] == other[0] for one, other in zip(before, after, strict=True)] == [
        True,
        False,
        True,
    ]
