"""Rooms that load their modules when one of their names is used."""

import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_rooms import OPEN_INNER

SOURCE = Path(__file__).parents[1] / "src" / "theodolite"
ROOMS = sorted(stub.parent.name for stub in SOURCE.glob("*/__init__.pyi"))


def printed(program):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout.strip()


def test_rooms_that_need_torch_or_matplotlib_are_lazy():
    assert {"data", "figures", "instruments", "networks", "report"} <= set(ROOMS)


@pytest.mark.parametrize("name", ROOMS)
def test_every_name_of_a_room_is_there(name):
    room = import_module(f"theodolite.{name}")
    assert room.__all__ == dir(room) == sorted(room.__all__)
    for public in room.__all__:
        module = isinstance(getattr(room, public), ModuleType)
        assert module == ((name, public) in OPEN_INNER), public
    with pytest.raises(AttributeError, match="no_such_name"):
        room.no_such_name  # noqa: B018


def test_the_rooms_and_core_import_nothing_heavy():
    program = f"""
        import sys
        import theodolite.core
        for room in {ROOMS}:
            __import__("theodolite." + room)
        heavy = "torch scipy.stats matplotlib jinja2 pandas xarray sklearn".split()
        print(sorted(set(heavy) & set(sys.modules)))
    """
    assert printed(program) == "[]"


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_is_pickled_by_reference(name):
    """A function sent to another process names the room, and finds it there."""
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    room = import_module(f"theodolite.{name}")
    assert isinstance(room, ModuleType)
    sent = cloudpickle.dumps(lambda: room)
    assert len(sent) < 2000
    assert cloudpickle.loads(sent)() is room
