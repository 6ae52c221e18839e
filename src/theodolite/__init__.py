"""Theodolite: survey the loss landscape of deep networks.

Packages are loaded when they are first used (``from theodolite import data`` or
``theodolite.data``); importing the package itself loads nothing heavy.
``theodolite.survey(model, batches)``, ``theodolite.compare``, ``theodolite.summary``
and ``theodolite.watch`` need no further import.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


_PACKAGES = set(
    "anatomy certificates core data figures instruments networks paths report runs "
    "studies surgery survey theory training".split()
)
_FUNCTIONS = {"compare": "survey", "summary": "anatomy", "watch": "survey"}


def __getattr__(name: str) -> Any:
    """Import a package, or that of a function, on first access."""
    if name in _PACKAGES:
        return import_module(f"theodolite.{name}")
    if name in _FUNCTIONS:
        return getattr(import_module(f"theodolite.{_FUNCTIONS[name]}"), name)
    raise AttributeError(f"module 'theodolite' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what completion offers, also before it is imported."""
    return sorted({"__doc__", "__version__", *_PACKAGES, *_FUNCTIONS})
