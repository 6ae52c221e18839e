"""One text for one meaning: canonical JSON, the ground under every hash."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import ConfigError, plain


def canonical(value: Any, what: str = "config") -> str:
    """Write a value as JSON that does not depend on how it was spelt.

    Key order, tuples or lists, sets, NumPy scalars or Python numbers make no
    difference; 1 and 1.0 do, because a study may treat them differently.

    Args:
        value: Mappings, sequences, sets, arrays, strings, finite numbers, None.
        what: Name of the value in the error.

    Example:
        >>> canonical({"b": (1, 2), "a": np.float64(0.5)})
        '{"a":0.5,"b":[1,2]}'
    """
    try:
        return _dump(_settled(value))
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the {what} cannot be saved ({error}): use text, finite numbers, "
            "booleans, None, and lists or mappings of them"
        ) from error


def short_hash(text: str, length: int = 12) -> str:
    """Return the first hexadecimal characters of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _dump(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":"))


def _settled(value: Any) -> Any:
    if isinstance(value, Mapping):
        settled = {str(key): _settled(item) for key, item in value.items()}
        if len(settled) != len(value):
            raise ValueError(f"two keys of {list(value)} read the same as text")
        return settled
    if isinstance(value, set | frozenset):
        return sorted((_settled(item) for item in value), key=_dump)
    if isinstance(value, np.ndarray):
        return _settled(value.tolist())
    if isinstance(value, list | tuple):
        return [_settled(item) for item in value]
    return plain(value)
