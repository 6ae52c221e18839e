"""Defaults of public functions and classes, which users rely on without naming them.

Also: records are frozen, and those that hold arrays compare by identity.

``python -m tests.test_defaults`` writes ``defaults.txt`` again.
"""

import dataclasses
import inspect
from enum import EnumType
from importlib import import_module
from pathlib import Path

FILE = Path(__file__).with_name("defaults.txt")
SOURCE = FILE.parents[1] / "src" / "theodolite"
PLAIN = (bool, int, float, str, tuple)


def public():
    """Yield every public name of every package, and what it stands for."""
    for package in sorted(path.parent.name for path in SOURCE.glob("*/__init__.py")):
        module = import_module(f"theodolite.{package}")
        for name in sorted(n for n in dir(module) if not n.startswith("_")):
            yield f"{package}.{name}", getattr(module, name)


def defaults():
    """Yield a line for each public callable with a default that is no mere absence."""
    for name, thing in public():
        if told := _told(thing):
            yield f"{name} {told}"


def _told(thing):
    ours = getattr(thing, "__module__", "").startswith("theodolite")
    if not ours or isinstance(thing, EnumType):  # whose arguments Python decides on
        return ""
    try:
        given = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return ""
    return " ".join(
        f"{p.name}={p.default!r}"
        for p in given
        if isinstance(p.default, PLAIN) and p.default not in ("", ())
    )


def test_defaults_change_with_notice_only():
    wanted = FILE.read_text().splitlines()
    assert list(defaults()) == wanted, "to keep them: python -m tests.test_defaults"


def test_records_are_frozen():
    records = {
        name: thing
        for name, thing in public()
        if inspect.isclass(thing) and dataclasses.is_dataclass(thing)
    }
    assert len(records) > 100
    for name, record in records.items():
        made = record.__dataclass_params__
        types = " ".join(str(field.type) for field in dataclasses.fields(record))
        assert made.frozen, name
        assert not (made.eq and ("ndarray" in types or "Tensor" in types)), name


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in defaults()))
