"""Decide whether the code that a SPEC names may run, before any of it is loaded.

Names of losses run only code of theodolite. Other SPECs name a callable. One of a
Python file always needs approval. One of a module needs it unless it is a model of a
known library and its arguments name no file.
"""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from site import getsitepackages, getusersitepackages
from typing import Any

from torch import nn

from theodolite.core import not_trusted

from .imported import attribute, module_of, read_source
from .specs import ApprovedSpec, Spec, parse_spec

# Modules with models and losses of known libraries; for each, the module of its model
# registry, the function that looks up a name and the one that makes the model.
_LIBRARIES: dict[str, tuple[str, ...]] = {
    "torch.nn": (),
    "torchvision.models": ("torchvision.models", "get_model_builder", "get_model"),
    "timm": ("timm.models", "model_entrypoint", "create_model"),
    "theodolite.networks": (),
    "theodolite.instruments": (),
}
# Keywords that make models read files, such as timm's checkpoint_path.
_OF_FILES = re.compile(r"path|file|dir|url|cfg|config|checkpoint")
_PLAIN_WORD = re.compile(r"[\w.-]*")


def approve(
    text: str, *, trust: bool = False, ask: Callable[[str], None] | None = None
) -> ApprovedSpec:
    """Return a parsed SPEC whose code may run.

    Args:
        text: The SPEC of a model or of a loss.
        trust: Whether foreign code may run.
        ask: Called with what would run if ``trust`` is not given; raises to refuse.

    Returns:
        The approved SPEC, which :func:`subject_of` takes in place of a text.

    Raises:
        ConfigError: The SPEC cannot be parsed, or names foreign code that was not
            approved.

    Example:
        >>> approve("torch.nn:Linear(4, 3)").spec.args
        (4, 3)
        >>> approve("os:system('ls')")
        Traceback (most recent call last):
        theodolite.core.errors.ConfigError: os:system('ls') would run with all your \
rights: read it, then pass --trust, or trust=True from Python
    """
    spec = parse_spec(text)
    source = read_source(spec.place) if spec.kind == "file" else b""
    code = "" if trust else _code_of_others(spec)
    if code and ask is None:
        raise not_trusted(code)
    if code and ask is not None:
        ask(code)
    return ApprovedSpec(spec, source)


def _code_of_others(spec: Spec) -> str:
    """Return words for the foreign code that a SPEC would run; empty if none."""
    if spec.kind == "file":
        return f"the Python file {spec.place}"
    return spec.text if spec.kind == "module" and not _is_known(spec) else ""


def _is_known(spec: Spec) -> bool:
    """Return whether a SPEC names a model or loss of a known library, and no file."""
    within = [one for one in _LIBRARIES if _is_within(spec.place, one)]
    if not within or _names_a_file(spec) or _is_shadowed(spec.place.split(".")[0]):
        return False
    value = attribute(module_of(spec), spec.name, spec.place)
    home = getattr(value, "__module__", None) or ""
    if not any(_is_within(home, one) for one in _LIBRARIES):
        return False
    if isinstance(value, type):
        return issubclass(value, nn.Module)
    return home == "torch.nn.functional" or _is_registered(
        value, *_LIBRARIES[within[0]]
    )


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _is_registered(value: Any, *registry: str) -> bool:
    """Return whether a function is in a library's model registry."""
    if not registry:
        return False
    home, look_up, make = registry
    library = import_module(home)
    if value is getattr(library, make):
        return True
    try:
        return getattr(library, look_up)(value.__name__) is value
    except Exception:  # each library raises its own errors
        return False


def _names_a_file(spec: Spec) -> bool:
    """Return whether arguments may name a file or an address."""
    first, *others = spec.args or (None,)
    return (
        any(_OF_FILES.search(name) for name in spec.kwargs)
        or not all(_is_plain(value) for value in (first, *spec.kwargs.values()))
        or not all(_is_plain(value) and not isinstance(value, str) for value in others)
    )


def _is_plain(value: Any) -> bool:
    """Return whether a value holds only numbers, None and words without separators."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, str):
        return _PLAIN_WORD.fullmatch(value) is not None
    return value is None or isinstance(value, bool | int | float)


def _is_shadowed(name: str) -> bool:
    """Return whether a file below the working directory would be imported instead."""
    if name in sys.modules:  # which has run already
        return False
    module = find_spec(name)
    if module is None:
        return False
    places = (
        [module.origin] if module.origin else module.submodule_search_locations or []
    )
    roots = (*getsitepackages(), getusersitepackages())
    installed = [Path(root).resolve() for root in roots]
    for place in places:
        folders = Path(place).resolve().parents
        if Path.cwd() in folders and not any(root in folders for root in installed):
            return True
    return False
