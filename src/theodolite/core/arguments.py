"""Check arguments of public functions and constructors against their annotations.

Every package hands out its public names by :func:`attach`. The first call of a function
compiles its check with beartype, which then takes a microsecond or two. Functions that
this library itself imports are not checked; constructors are, whoever calls them.

Annotations are read as callers mean them: scalars of NumPy and torch are numbers, lists
do for tuples and arrays, a string is no sequence of strings, and True is no number.
"""

import inspect
import re
import reprlib
import sys
import types
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache, partial, wraps
from itertools import islice
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import lazy_loader
import numpy as np

from .errors import ArgumentError, unknown_name

# Items of a sequence or mapping that are checked; the others are not looked at.
_ITEMS = 64
_WORDS = {int: "a whole number", float: "a number", bool: "True or False"}


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Any, list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package with a stub.

    A name of ``__init__.pyi`` is imported when it is first used. Users get a function
    that checks its arguments, modules of this library the function itself. A class
    checks the arguments of its constructor from then on.
    """
    load, names, public = lazy_loader.attach_stub(package, file)
    checked: dict[str, Any] = {}

    def get(name: str) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        ours = caller.startswith("theodolite.")
        if name in checked and not ours:
            return checked[name]
        value = load(name)
        if not getattr(value, "__module__", "").startswith("theodolite."):
            return value
        if isinstance(value, types.FunctionType):
            if name not in checked:
                checked[name] = _checked(value, package, value)
                checked[name].__module__ = package  # where pickle finds it
            # Not kept in the package, so that the next caller is looked at, too.
            vars(sys.modules[package]).pop(name, None)
            return value if ours else checked[name]
        if isinstance(value, type) and not issubclass(value, BaseException | Enum):
            _check_constructor(value, package)
        return value

    return get, names, public


def _check_constructor(owner: type, package: str) -> None:
    make = owner.__init__
    if getattr(owner, "_is_protocol", False):
        return
    home = next(one for one in owner.__mro__ if "__init__" in vars(one)).__module__
    if not home.startswith("theodolite.") or "__checked__" in vars(make):
        return
    if len(inspect.signature(make).parameters) > 1:  # more than self
        type.__setattr__(owner, "__init__", _checked(make, package, owner))


def _checked(function: Any, package: str, public: Any) -> Any:
    """Return a function that checks its arguments first."""
    check: Any = None
    violation: Any = ()

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal check, violation
        if check is None:
            check, violation = _compiled(function)
        try:
            check(*args, **kwargs)
        except violation:
            raise _refusal(function, package, public, args, kwargs) from None
        except TypeError:  # missing or unknown arguments: the function says so itself
            pass
        return function(*args, **kwargs)

    vars(call)["__checked__"] = True
    return call


def _compiled(function: Any) -> tuple[Any, type[Exception]]:
    """Return a function of the same arguments that only checks, and what it raises."""
    from beartype import beartype
    from beartype.roar import BeartypeCallHintParamViolation

    empty = inspect.Parameter.empty
    parameters = [
        one.replace(annotation=empty, default=empty if one.default is empty else None)
        for one in inspect.signature(function).parameters.values()
    ]
    scope: dict[str, Any] = {"__name__": __name__}
    exec(f"def check{inspect.Signature(parameters)}: pass", scope)
    scope["check"].__annotations__ = _hints(function)
    return beartype(scope["check"]), BeartypeCallHintParamViolation


@cache
def _hints(function: Any) -> dict[str, Any]:
    """Return what is checked of each argument of a function."""
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    return {
        one.name: hint
        for one in inspect.signature(function).parameters.values()
        if (hint := _hint(one.annotation, scope)) is not object
    }


def _hint(given: Any, scope: Mapping[str, Any]) -> Any:
    """Return what is checked of an annotation; ``object`` where nothing is."""
    if isinstance(given, str):
        try:
            given = eval(given, dict(scope))
        except NameError:  # imported for type checkers alone
            package = ".".join(scope["__name__"].split(".")[:2])
            given = getattr(sys.modules[package], given, object)
    kind, inner = get_origin(given), get_args(given)
    if kind is None:
        return _class_hint(given)
    if kind is Literal or kind is type:
        return given
    if kind is Annotated:
        return _hint(inner[0], scope)
    if kind is abc.Callable:
        return kind
    hints = [_hint(one, scope) for one in inner if one is not ...]
    if kind in (Union, types.UnionType):
        return object if object in hints else Union[tuple(hints)]  # noqa: UP007
    if not isinstance(kind, type):
        return object
    if issubclass(kind, Mapping):
        return _pairs(*hints)
    if issubclass(kind, Iterable):
        return _items(kind, hints if kind is tuple and ... not in inner else hints[0])
    return _class_hint(kind) if kind.__module__ != "typing" else object


@cache
def _class_hint(given: Any) -> Any:
    from beartype.vale import Is, IsInstance

    given = getattr(given, "array_type", given)  # of a shape of jaxtyping
    if given is bool:
        return bool | np.bool_
    if given in (int, float):
        wanted = Real if given is float else Integral
        scalar = Annotated[object, Is[partial(_is_scalar, wanted)]]
        plain = Annotated[wanted, ~IsInstance[bool]]
        return Union[plain, scalar]  # noqa: UP007
    if given is np.ndarray:
        return Annotated[object, Is[_is_array]]
    unchecked = getattr(given, "_is_protocol", False) and not given._is_runtime_protocol
    if not isinstance(given, type) or unchecked or given is inspect.Parameter.empty:
        return object
    if issubclass(given, Enum):
        return Annotated[object, Is[partial(_is_member, given)]]
    # Of a class of items beartype would check one at random, and so move the state
    # of random numbers.
    return Annotated[object, IsInstance[given]] if _has_items(given) else given


def _is_member(kind: type[Enum], value: object) -> bool:
    """Return whether a value is a member, or names one by its value."""
    return isinstance(value, kind) or (
        isinstance(value, str) and value in [member.value for member in kind]
    )


def _has_items(given: type) -> bool:
    return issubclass(given, Iterable) and given.__module__ != "builtins"


def _is_array(value: object) -> bool:
    """Return whether a value is an array, a number or nested lists of numbers."""
    if isinstance(value, list | tuple):
        return all(map(_is_array, islice(value, _ITEMS)))
    return isinstance(value, np.ndarray | Real) or hasattr(value, "__array__")


def _is_scalar(wanted: type, value: Any) -> bool:
    """Return whether a value is an array or tensor without axes that holds a number."""
    if getattr(value, "ndim", 1) != 0 or isinstance(value, np.bool_):
        return False
    return isinstance(value.item(), wanted)


def _items(kind: type, wanted: Any) -> Any:
    """Return the hint of a sequence or another iterable, by its items."""
    from beartype.door import is_bearable
    from beartype.vale import Is

    def fits(value: Any) -> bool:
        if isinstance(value, str | bytes) or getattr(value, "ndim", 1) == 0:
            return False
        if isinstance(value, Mapping) or not hasattr(value, "__getitem__"):
            return isinstance(value, kind)
        if isinstance(wanted, list):
            return len(value) == len(wanted) and all(map(is_bearable, value, wanted))
        return all(is_bearable(one, wanted) for one in islice(value, _ITEMS))

    return Annotated[object, Is[fits]]


def _pairs(keys: Any, values: Any) -> Any:
    """Return the hint of a mapping."""
    from beartype.door import is_bearable
    from beartype.vale import Is

    def fits(value: Mapping[Any, Any]) -> bool:
        return all(
            is_bearable(key, keys) and is_bearable(one, values)
            for key, one in islice(value.items(), _ITEMS)
        )

    return Annotated[Mapping, Is[fits]]


def _refusal(
    function: Any, package: str, public: Any, args: tuple[Any, ...], kwargs: Any
) -> ArgumentError:
    """Return the error for the first argument that is not of its type."""
    from beartype.door import is_bearable

    signature = inspect.signature(function)
    given = signature.bind_partial(*args, **kwargs).arguments
    name, value = next(
        (name, value)
        for name, hint in _hints(function).items()
        for value in _values(signature.parameters[name], given)
        if not is_bearable(value, hint)
    )
    wanted = signature.parameters[name].annotation
    if get_origin(wanted) is Literal and (value is None or isinstance(value, str)):
        known = map(str, get_args(wanted))
        return ArgumentError(str(unknown_name(name, value, known)))
    return ArgumentError(
        f"{name} is {_short(value)}: pass {_words(wanted)} "
        f"({_described(name, public)}see help({package}.{public.__name__}))"
    )


def _values(parameter: inspect.Parameter, given: Mapping[str, Any]) -> Iterable[Any]:
    """Return the values that were given for a parameter."""
    if parameter.name not in given:
        return ()
    value = given[parameter.name]
    if parameter.kind is parameter.VAR_KEYWORD:
        return value.values()
    return value if parameter.kind is parameter.VAR_POSITIONAL else (value,)


def _words(annotation: Any) -> str:
    """Return an annotation in words."""
    if annotation in _WORDS:
        return _WORDS[annotation]
    kind, inner = get_origin(annotation), get_args(annotation)
    if kind is Annotated:
        return _words(inner[0])
    if kind in (Union, types.UnionType):
        return " or ".join(map(_words, inner))
    if kind is Literal:
        return " or ".join(map(repr, inner))
    shown = re.sub(r"[\w.]*\.(\w)", r"\1", inspect.formatannotation(annotation))
    return shown.replace("NoneType", "None").strip("'")


def _described(name: str, public: Any) -> str:
    """Return the first sentence on an argument in a docstring."""
    ends = r"(?:[.;:]\s|\.?\Z|\n\n|\n *\w+:)"
    text = inspect.getdoc(public) or ""
    match = re.search(rf"^ +\**{name}: (.+?){ends}", text, re.M | re.S)
    return f"{name}: {' '.join(match[1].split())}; " if match else ""


def _short(value: Any) -> str:
    """Return a value in one short line."""
    shape, kind = getattr(value, "shape", None), type(value).__name__
    if shape is not None and shape != ():
        return f"a {kind} of shape {tuple(shape)}"
    text = " ".join(reprlib.repr(value).split())
    plain = value is None or isinstance(value, int | float | str | tuple | list | dict)
    return text if plain else f"{text}, a {kind}"
