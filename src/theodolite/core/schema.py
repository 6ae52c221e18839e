"""Records as JSON and back: the types of their fields are the schema.

msgspec reads and checks. Every file carries the number of its format, and one with
another number is refused.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from .rows import to_strict_json

T = TypeVar("T")


class SchemaError(ValueError):
    """JSON that does not fit a record; the message continues "FILE …"."""


def record_values(record: Any) -> Any:
    """Return a record as strict JSON values, which :func:`read_record` reads.

    A number that is not finite becomes None, or is left out where that number is the
    field's default.
    """
    if is_dataclass(record) and not isinstance(record, type):
        values = {f: getattr(record, f.name) for f in fields(record)}
        return {
            f.name: record_values(value)
            for f, value in values.items()
            if not (_unbounded(value) and _unbounded(f.default))
        }
    if isinstance(record, tuple | list):
        return [record_values(each) for each in record]
    if isinstance(record, Mapping):
        return {str(key): record_values(value) for key, value in record.items()}
    return to_strict_json(record)


def parse_record(kind: type[T], text: str, *, number: int) -> T:
    """Read a record from JSON.

    Args:
        kind: Class of the record, a dataclass.
        text: Content of the file.
        number: The supported format number.

    Raises:
        SchemaError: The text is not JSON, of another format, or a field is wrong.
    """
    import msgspec

    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError) as wrong:
        raise SchemaError(f"is not JSON ({wrong})") from None
    except RecursionError:
        raise SchemaError("is nested too deeply") from None
    return read_record(kind, content, number=number)


def read_record(kind: type[T], content: Any, *, number: int) -> T:
    """Read a record from JSON values; see :func:`parse_record`."""
    if not isinstance(content, Mapping):
        raise SchemaError(f"holds a {type(content).__name__}, wanted an object")
    came = content.get("format")
    if type(came) is not int or came != number:
        came_with = f"format {came}" if type(came) is int else "no format number"
        raise SchemaError(f"has {came_with}, wanted format {number}")
    return read_value(kind, content)


def read_value(kind: Any, content: Any, hook: Any = None) -> Any:
    """Return JSON values converted to a type.

    Args:
        kind: The type.
        content: The values.
        hook: Reads a value of a type that msgspec does not know.

    Raises:
        SchemaError: They do not fit.
    """
    import msgspec

    try:
        return msgspec.convert(content, kind, dec_hook=hook or _rows)
    except msgspec.ValidationError as wrong:
        what, _, place = str(wrong).partition(" - at `$")
        place = place.strip("`.") or "top level"
        raise SchemaError(f"is wrong at {place}: {what}") from None
    except RecursionError:
        raise SchemaError("is nested too deeply") from None


def _rows(kind: type, value: Any) -> Any:
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise TypeError(f"Expected a list of rows, got `{type(value).__name__}`")
    if any(isinstance(one, list | dict) for row in value for one in row.values()):
        raise TypeError("Expected rows of single values, got one that holds several")
    return kind(value)


def _unbounded(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
