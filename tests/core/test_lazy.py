import sys
from importlib import import_module, invalidate_caches

import pytest

INIT = """
from theodolite.core import attach
__getattr__, __dir__, __all__ = attach(
    __name__, {"heavy": ["lift", "LOAD"], "trace": ["trace", "Trace"]}
)
"""
HEAVY = """
from made_up_room.trace import Trace
LOAD = object()
def lift():
    return "lifted"
"""
TRACE = """
class Trace: ...
def trace():
    return "traced"
"""


@pytest.fixture
def room(tmp_path, monkeypatch):
    folder = tmp_path / "made_up_room"
    folder.mkdir()
    (folder / "__init__.py").write_text(INIT)
    (folder / "heavy.py").write_text(HEAVY)
    (folder / "trace.py").write_text(TRACE)
    monkeypatch.syspath_prepend(tmp_path)
    invalidate_caches()
    yield import_module("made_up_room")
    for name in [n for n in sys.modules if n.split(".")[0] == "made_up_room"]:
        del sys.modules[name]


def test_a_module_is_loaded_upon_first_use_and_once(room):
    assert "made_up_room.heavy" not in sys.modules
    assert "LOAD" not in vars(room)
    first = room.LOAD
    assert "made_up_room.heavy" in sys.modules
    assert room.LOAD is first is sys.modules["made_up_room.heavy"].LOAD
    assert "LOAD" in vars(room)
    assert room.lift() == "lifted"


def test_names_are_imported_from_the_room(room):
    from made_up_room import trace

    assert trace() == "traced"
    assert "made_up_room.heavy" not in sys.modules


def test_unknown_attributes_are_attribute_errors(room):
    with pytest.raises(AttributeError, match=r"'made_up_room' has no attribute 'lfit'"):
        room.lfit  # noqa: B018
    assert not hasattr(room, "__wrapped__")
    with pytest.raises(ImportError, match="absent"):
        from made_up_room import absent  # noqa: F401
    assert "made_up_room.heavy" not in sys.modules


def test_dir_and_all_list_the_names_without_loading(room):
    names = ["LOAD", "Trace", "lift", "trace"]
    assert dir(room) == room.__all__ == names
    room.__dir__().clear()
    assert dir(room) == names
    assert "made_up_room.heavy" not in sys.modules
    exec("from made_up_room import *", found := {})
    assert set(names) < set(found)
    assert "made_up_room.heavy" in sys.modules


@pytest.mark.parametrize("before", ["Trace", "lift"])
def test_a_name_is_not_hidden_by_the_module_of_that_name(room, before):
    getattr(room, before)  # imports made_up_room.trace, directly or through heavy
    assert room.trace() == "traced"


def test_a_module_imported_by_its_path_does_not_hide_the_name(room):
    module = import_module("made_up_room.trace")
    assert room.trace is module.trace
    import_module("made_up_room.heavy")
    assert room.heavy is sys.modules["made_up_room.heavy"]
