"""Parse a SPEC: which model, and with which arguments."""

import ast
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from theodolite.core import ConfigError

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

    :func:`theodolite.survey.approve` makes one, and asks the user if needed.

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
    if not colon:
        return _plain(text, bool(opened))
    if opened and not inside.rstrip().endswith(")"):
        raise ConfigError(
            f"SPEC {text!r} has an open bracket and no closing one: quote it for the "
            "shell, as in 'package.module:callable(10)'"
        )
    if not _DOTTED.fullmatch(name):
        raise ConfigError(
            f"SPEC {text!r} names no callable behind its colon: pass {FORMS}"
        )
    args, kwargs = _arguments(text, inside.rstrip()[:-1]) if opened else ((), {})
    kind = "file" if place.endswith(".py") else "module"
    if kind == "module" and not _DOTTED.fullmatch(place):
        raise ConfigError(
            f"SPEC {text!r} names no module before its colon: pass {FORMS}"
        )
    return Spec(text=text, kind=kind, place=place, name=name, args=args, kwargs=kwargs)


def _plain(text: str, called: bool) -> Spec:
    if text.endswith(".py"):
        raise ConfigError(
            f"SPEC {text!r} does not say what in the file makes the model: pass "
            f"{text}:callable"
        )
    if called or not text:
        raise ConfigError(f"SPEC {text!r} is not understood: pass {FORMS}")
    return Spec(text=text, kind="name", place=text)


def _arguments(text: str, inside: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments in the brackets of a SPEC."""
    try:
        return literal_arguments(inside)
    except ValueError as error:
        raise ConfigError(
            f"the arguments ({inside}) of SPEC {text!r} are no plain values: pass "
            "numbers, quoted texts, tuples, lists, True, False or None, such as "
            "(10, depth=4)"
        ) from error


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
