"""Theodolite: survey the loss landscape of deep networks.

Packages are imported by name (``from theodolite import data, instruments, theory``);
importing the package itself loads nothing heavy. ``theodolite.survey(model, batches)``,
``theodolite.compare``, ``theodolite.summary`` and ``theodolite.watch`` need no further
import.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import the survey on first access to one of its functions."""
    if name == "survey":
        return import_module("theodolite.survey")
    if name in ("compare", "summary", "watch"):
        return getattr(import_module("theodolite.survey"), name)
    raise AttributeError(f"module 'theodolite' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what completion offers, also before it is imported."""
    return sorted({*globals(), "survey", "compare", "summary", "watch"})
