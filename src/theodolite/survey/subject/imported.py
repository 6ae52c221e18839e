"""Models made by installed packages and by Python files."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from theodolite.core import SubjectError, error_text
from theodolite.instruments import preserve_process, reseed

from .specs import ApprovedSpec, Spec


def model_of(approved: ApprovedSpec, *, seed: int) -> nn.Module:
    """Make the model that a SPEC of a module or file names.

    Args:
        approved: The SPEC of the callable and its arguments.
        seed: Seed of the random numbers that its construction draws.
    """
    spec, made = approved.spec, callable_of(approved)
    if not isinstance(made, nn.Module):
        if not callable(made):
            raise SubjectError(
                f"{spec.place}:{spec.name} is a {type(made).__name__} and cannot be "
                "called: name a class or function that returns a torch.nn.Module"
            )
        made = _called(made, spec, seed)
    if not isinstance(made, nn.Module):
        raise SubjectError(
            f"{spec.place}:{spec.name} returned a {type(made).__name__} and a "
            "torch.nn.Module was wanted: name what makes the model"
        )
    return made


def _called(make: Any, spec: Spec, seed: int) -> Any:
    try:
        with preserve_process():
            reseed(seed)
            return make(*spec.args, **spec.kwargs)
    except (Exception, SystemExit) as error:
        raise SubjectError(
            f"{spec.place}:{spec.name} could not be called ({error_text(error)}): pass "
            f"the arguments that it wants, as in {spec.name}(10, depth=4)"
        ) from error


def callable_of(approved: ApprovedSpec) -> Any:
    """Return the object that a SPEC names, from its module or file."""
    spec = approved.spec
    if spec.kind == "file":
        home = _module_in_file(spec.place, approved.source)
    else:
        home = module_of(spec)
    return attribute(home, spec.name, spec.place)


def module_of(spec: Spec) -> ModuleType:
    """Import the module of an approved SPEC, or one of a known library."""
    try:
        return import_module(spec.place)
    except (Exception, SystemExit) as error:
        beside = Path(*spec.place.split(".")).with_suffix(".py")
        hint = (
            f"pass {beside}:{spec.name} for the file that is here"
            if beside.is_file()
            else f"install it, or pass path/to/file.py:{spec.name}"
        )
        raise SubjectError(
            f"the module {spec.place} cannot be imported ({error_text(error)}): {hint}"
        ) from error


def read_source(path: str) -> bytes:
    """Return the source of a Python file; no code runs."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise SubjectError(
            f"the file {path} cannot be read ({why}): pass the path of a Python file"
        ) from error


def _module_in_file(path: str, text: bytes) -> ModuleType:
    """Run the source of a Python file as a module."""
    name = f"theodolite_model_in_{sha256(text).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    try:
        with _beside(path):
            exec(compile(text, path, "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception | SystemExit):
            raise
        raise SubjectError(
            f"the file {path} cannot be run ({error_text(error)}): see what "
            f"`python {path}` says"
        ) from error
    return module


@contextmanager
def _beside(path: str) -> Iterator[None]:
    """Let a file import modules from its own folder."""
    folder = str(Path(path).absolute().parent)
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def attribute(home: Any, name: str, place: str) -> Any:
    """Return the object with a dotted name in a module; an error lists the names."""
    value = home
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except Exception:  # some modules raise other errors than AttributeError
            near = _near(part, home)
            raise SubjectError(
                f"{place} has no {name!r}: {near or 'name a class or function in it'}"
            ) from None
    return value


def _near(name: str, home: Any) -> str:
    from difflib import get_close_matches

    public = [one for one in dir(home) if not one.startswith("_")]
    near = get_close_matches(name, public, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""
