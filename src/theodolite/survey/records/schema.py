"""Records as strict JSON and back: the types of their fields are the schema."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from theodolite.core import ConfigError, Rows, strict

T = TypeVar("T")
_WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def written(record: Any) -> dict[str, Any]:
    """Return a record as strict JSON values; NaN and infinities become None."""
    return strict({f.name: getattr(record, f.name) for f in fields(record)})


def read_record(kind: type[T], content: Any, *, way: str = "the survey") -> T:
    """Read a record that :func:`written` wrote, checked field by field.

    Args:
        kind: Class of the record.
        content: Plain JSON values.
        way: What it is called where something is wrong.

    Raises:
        ConfigError: A field is missing or of the wrong kind.
    """
    if not isinstance(content, Mapping):
        raise _wrong(way, content, "an object")
    hints = get_type_hints(kind)
    assert is_dataclass(kind)
    found = {
        f.name: _field(f, hints[f.name], content, f"{way}.{f.name}")
        for f in fields(kind)
        if f.name in content or _required(f)
    }
    return kind(**found)


def _required(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _field(one: Field[Any], hint: Any, content: Mapping[str, Any], way: str) -> Any:
    if one.name not in content:
        raise ConfigError(f"{way} is missing: give JSON that to_json wrote")
    return _value(hint, content[one.name], way)


def _value(hint: Any, value: Any, way: str) -> Any:
    """Return a value as its type wants it, or say where it does not fit."""
    if get_origin(hint) is UnionType:
        return _optional(hint, value, way)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise _wrong(way, value, f"one of {', '.join(get_args(hint))}")
        return value
    if hint is Rows:
        return _rows(value, way)
    if get_origin(hint) is tuple:
        return _several(get_args(hint)[0], value, way)
    if isinstance(hint, type) and is_dataclass(hint):
        return read_record(hint, value, way=way)
    if hint in _WORDS:
        return _atom(hint, value, way)
    if not isinstance(value, Mapping):
        raise _wrong(way, value, "an object")
    return dict(value)


def _optional(hint: Any, value: Any, way: str) -> Any:
    if value is None:
        return None
    (inner,) = (each for each in get_args(hint) if each is not type(None))
    return _value(inner, value, way)


def _atom(hint: type, value: Any, way: str) -> Any:
    if hint is float and value is None:
        return math.nan
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise _wrong(way, value, _WORDS[hint])
    return value


def _several(hint: Any, value: Any, way: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong(way, value, "a list")
    return tuple(_value(hint, each, f"{way}[{i}]") for i, each in enumerate(value))


def _rows(value: Any, way: str) -> Rows:
    if not isinstance(value, list | tuple):
        raise _wrong(way, value, "a list of rows")
    for i, each in enumerate(value):
        if not isinstance(each, Mapping):
            raise _wrong(f"{way}[{i}]", each, "a row")
    return Rows(value)


def _wrong(way: str, value: Any, wanted: str) -> ConfigError:
    told = repr(value)
    told = told if len(told) <= 40 else f"{told[:37]}…"
    return ConfigError(
        f"{way} is {told}, wanted {wanted}: give JSON that to_json wrote"
    )
