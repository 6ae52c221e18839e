"""A digest that identifies a probe in every process: its code and bound values."""

import hashlib
from collections.abc import Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np


def probe_digest(measure: Any) -> str:
    """Return a digest and the name of a function, alike in every process.

    Two functions differ if their code, defaults, bound arguments or closures do, and
    two callable objects if their classes or attributes do. Globals count by name.

    Example:
        >>> two, three = (partial(pow, exp=k) for k in (2, 3))
        >>> probe_digest(two) == probe_digest(three), probe_digest(two).split()[1]
        (False, 'builtins.pow')
    """
    named = measure
    while isinstance(named, partial):
        named = named.func
    text = _Description().of(measure)
    return f"{hashlib.sha256(text.encode()).hexdigest()[:12]} {_named(named)}"


def _named(thing: Any) -> str:
    owner = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{getattr(owner, '__module__', '')}.{owner.__qualname__}"


class _Description:
    """Text for a value, without the addresses that change between processes."""

    _DEEPEST = 20

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._known: dict[int, tuple[str, Any]] = {}

    def of(self, value: Any) -> str:
        if value is None or isinstance(value, bool | int | float | complex | str):
            return repr(value)
        if isinstance(value, bytes | np.generic):
            return repr(value)
        key = id(value)
        if key in self._known:
            return self._known[key][0]
        if key in self._open or len(self._open) > self._DEEPEST:
            return f"<{_named(value)}>"
        self._open.add(key)
        text = self._compound(value)
        self._open.discard(key)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._known[key] = digest, value  # kept, or another could take its id
        return digest

    def _compound(self, value: Any) -> str:
        if isinstance(value, partial):
            return self._all("partial", value.func, value.args, value.keywords)
        if isinstance(value, MethodType):
            return self._all("method", value.__func__, value.__self__)
        if isinstance(value, FunctionType):
            cells = [_content(cell) for cell in value.__closure__ or ()]
            given = value.__defaults__, value.__kwdefaults__
            return self._all(_named(value), value.__code__, *given, *cells)
        if isinstance(value, CodeType):
            code = value.co_code, value.co_names, value.co_varnames
            return self._all("code", *code, value.co_consts)
        if isinstance(value, Mapping):
            pairs = [self.of(k) + ":" + self.of(v) for k, v in value.items()]
            return _named(type(value)) + ",".join(sorted(pairs))
        if isinstance(value, set | frozenset):
            return _named(type(value)) + ",".join(sorted(map(self.of, value)))
        if isinstance(value, tuple | list):
            return self._all(_named(type(value)), *value)
        return self._object(value)

    def _object(self, value: Any) -> str:
        if isinstance(value, type) or hasattr(value, "__qualname__"):
            return _named(value)
        if hasattr(value, "detach"):
            return f"{value.dtype} {self.of(value.detach().tolist())}"
        if isinstance(value, np.ndarray) and value.dtype != object:
            return f"{value.dtype}{value.shape}{value.tobytes().hex()}"
        try:
            return self._all(_named(value), vars(value))
        except TypeError:  # it has no attributes of its own
            shown = repr(value)
            return _named(value) if " at 0x" in shown else shown

    def _all(self, kind: str, *parts: Any) -> str:
        return f"{kind}({','.join(map(self.of, parts))})"


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
