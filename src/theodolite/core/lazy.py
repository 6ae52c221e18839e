"""Load a room's modules only when one of its names is used.

Rooms that need torch or matplotlib say here which of their modules holds which
name, so that ``theodolite --help`` and ``theodolite list`` import neither.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def attach(
    package: str, exports: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for a room.

    Args:
        package: The room's ``__name__``.
        exports: Module of the room to the public names it holds. A name may be that
            of its module: importing the module does not then hide the name.
    """
    home = {name: module for module, names in exports.items() for name in names}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    class Room(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            # Python binds a submodule to its package once it is imported, by whomever.
            if isinstance(value, ModuleType) and home.get(name) == name:
                value = getattr(value, name)
            super().__setattr__(name, value)

    sys.modules[package].__class__ = Room
    names = sorted(home)
    return load, lambda: list(names), names
