"""SPECs: text that names code which makes a model or a loss, and its arguments.

Before any code that a SPEC names is loaded, the user decides whether it may run. Names
of losses run only code of theodolite. Other SPECs name a callable, which always needs
approval, unless it is a module or a function of ``torch.nn`` itself.
"""

import ast
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from torch import nn

from theodolite.core import ConfigError, SubjectError, error_text, not_trusted

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
FORMS = "package.module:callable(args) or path.py:callable(args)"


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A parsed SPEC.

    Attributes:
        text: The original text, without spaces around it.
        kind: Kind of what it names.
        place: Name of a loss, module, or path of a file.
        name: The callable of a module or file, dotted where it is nested.
        args: Positional arguments.
        kwargs: Keyword arguments.
    """

    text: str
    kind: Literal["name", "module", "file"]
    place: str
    name: str = ""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ApprovedSpec:
    """A SPEC whose code may run; loaders take no other.

    :func:`approve` makes one, and asks the user if needed.

    Attributes:
        spec: The SPEC.
        source: Source of the file when it was approved, if the SPEC names a file.
    """

    spec: Spec
    source: bytes = b""


def parse_spec(text: str) -> Spec:
    """Return the parsed SPEC; nothing is imported or read.

    Example:
        >>> parse_spec("torchvision.models:resnet18(num_classes=10)").kwargs
        {'num_classes': 10}
        >>> parse_spec("models/net.py:Net(3, 'relu')").args
        (3, 'relu')
        >>> parse_spec("cross-entropy").kind
        'name'
    """
    text = text.strip()
    head, opened, inside = text.partition("(")
    place, colon, name = head.strip().rpartition(":")
    if not colon and text.endswith(".py"):
        raise ConfigError(
            f"SPEC {text!r} does not say what in the file makes the model: pass "
            f"{text}:callable"
        )
    if not colon:
        if opened or not text:
            raise ConfigError(f"SPEC {text!r} is not understood: pass {FORMS}")
        return Spec(text=text, kind="name", place=text)
    if opened and not inside.rstrip().endswith(")"):
        raise ConfigError(
            f"SPEC {text!r} has an open bracket and no closing one: quote it for the "
            "shell, as in 'package.module:callable(10)'"
        )
    if not _DOTTED.fullmatch(name):
        raise ConfigError(
            f"SPEC {text!r} names no callable behind its colon: pass {FORMS}"
        )
    inside = inside.rstrip()[:-1]
    try:
        args, kwargs = literal_arguments(inside)
    except ValueError as error:
        raise ConfigError(
            f"the arguments ({inside}) of SPEC {text!r} are no plain values: pass "
            "numbers, quoted texts, tuples, lists, True, False or None, such as "
            "(10, depth=4)"
        ) from error
    kind = "file" if place.endswith(".py") else "module"
    if kind == "module" and not _DOTTED.fullmatch(place):
        raise ConfigError(
            f"SPEC {text!r} names no module before its colon: pass {FORMS}"
        )
    return Spec(text=text, kind=kind, place=place, name=name, args=args, kwargs=kwargs)


def literal_arguments(text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments of a call: numbers, texts, tuples, lists, dicts, True, None.

    Raises:
        ValueError: The text is something else.

    Example:
        >>> literal_arguments("10, depth=4")
        ((10,), {'depth': 4})
    """
    written = f"f({text})"
    try:
        call = ast.parse(written, mode="eval").body
        # Brackets inside may close the call early; a comment may hide the last one.
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("more than arguments")
        if call.end_col_offset != len(written.encode()):
            raise ValueError("more behind the arguments")
        if any(k.arg is None for k in call.keywords):
            raise ValueError("arguments without a name")
        args = tuple(ast.literal_eval(one) for one in call.args)
        return args, {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError("no literals") from error


def approve(
    text: str, *, trust: bool = False, ask: Callable[[str], None] | None = None
) -> ApprovedSpec:
    """Return a parsed SPEC whose code may run.

    Args:
        text: The SPEC of a model or of a loss.
        trust: Whether foreign code may run.
        ask: Called with what would run if ``trust`` is not given; raises to refuse.

    Returns:
        The approved SPEC, which :func:`theodolite.survey.subject_of` takes in place of
        a text.

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
    spec, source = parse_spec(text), b""
    code = spec.text if spec.kind == "module" else ""
    if spec.kind == "file":
        source, code = _source_of(spec.place), f"the Python file {spec.place}"
    if code and not trust and not _is_known(spec):
        if ask is None:
            raise not_trusted(code)
        ask(code)
    return ApprovedSpec(spec, source)


def _is_known(spec: Spec) -> bool:
    """Return whether a SPEC names a module of torch.nn, or a function of losses."""
    if spec.place not in ("torch.nn", "torch.nn.functional") or "." in spec.name:
        return False
    value = callable_of(ApprovedSpec(spec))
    home = getattr(value, "__module__", None) or ""
    if isinstance(value, type):
        return issubclass(value, nn.Module) and home.startswith("torch.nn.modules.")
    return callable(value) and home == "torch.nn.functional"


def callable_of(approved: ApprovedSpec) -> Any:
    """Return the object that a SPEC names, from its module or file."""
    spec = approved.spec
    if spec.kind == "file":
        value: Any = _module_in_file(spec.place, approved.source)
    else:
        value = _module_of(spec)
    names = [one for one in dir(value) if not one.startswith("_")]
    for part in spec.name.split("."):
        try:
            value = getattr(value, part)
        except Exception:  # some modules raise other errors than AttributeError
            near = " or ".join(map(repr, get_close_matches(part, names)))
            hint = f"did you mean {near}?" if near else "name a class or function in it"
            raise SubjectError(f"{spec.place} has no {spec.name!r}: {hint}") from None
    return value


def _module_of(spec: Spec) -> ModuleType:
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


def _source_of(path: str) -> bytes:
    """Return the source of a Python file; no code runs."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise SubjectError(
            f"the file {path} cannot be read ({why}): pass the path of a Python file"
        ) from error


def _module_in_file(path: str, text: bytes) -> ModuleType:
    """Run the source of a Python file as a module, which may import its neighbours."""
    name = f"theodolite_model_in_{sha256(text).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    module, folder = ModuleType(name), str(Path(path).absolute().parent)
    module.__file__ = path
    sys.modules[name] = module
    sys.path.append(folder)
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception | SystemExit):
            raise
        raise SubjectError(
            f"the file {path} cannot be run ({error_text(error)}): see what "
            f"`python {path}` says"
        ) from error
    finally:
        sys.path.remove(folder)
    return module
