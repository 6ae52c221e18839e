"""Read the pickles of CIFAR without running their code.

A pickle is a program that may call any function. This reader never hands it to
Python's own: it steps through the operations itself, knows the few that build text,
numbers, lists, dicts and arrays, and refuses every other one. Nothing it builds is
larger than the file: lists may share or hold themselves, but are never walked.
"""

import pickletools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from theodolite.core import DataError

from .files import escape, read_limited, reason_of

_MODULES = ("numpy", "numpy.core", "numpy._core")
_TYPES = {"u1", "i4", "i8"}
# CIFAR-100's 50,000 images are 155 MB; old protocols write a byte as up to five.
_MOST_BYTES = 2**30
# Labels and file names of 50,000 images take at most 10 operations per image.
_MOST_STEPS = 2**20


def read_plain_pickle(path: Path) -> dict[str, Any]:
    """Return the dict in a pickle of strings, numbers, lists and byte arrays.

    Keys come back as str whether the file was written by Python 2 or 3.
    """
    content = read_limited(path, _MOST_BYTES, "a CIFAR batch")
    try:
        batch = _Machine(path).run(content)
        if not isinstance(batch, dict):
            raise DataError(
                f"{escape(path)} holds a {type(batch).__name__}, a CIFAR batch holds a "
                "dict: download it again"
            )
        return {
            _text(key): value.real() if isinstance(value, _Array) else value
            for key, value in batch.items()
        }
    except DataError:
        raise
    except Exception as error:  # a damaged pickle raises almost anything
        raise DataError(
            f"{escape(path)} cannot be read as a CIFAR batch ({type(error).__name__}: "
            f"{reason_of(error)}): it is cut off or damaged; unpack the archive again"
        ) from error


class _Dtype:
    """Replacement for ``numpy.dtype``."""

    def __init__(self, code: str | bytes, *_: object) -> None:
        self.code = _text(code)
        self.order = "|"

    def take(self, state: tuple[Any, ...]) -> None:
        self.order = _text(state[1])

    def real(self) -> np.dtype:
        if self.code not in _TYPES or self.order not in tuple("|<>="):
            raise ValueError(f"array of type {self.code[:20]}, wanted bytes")
        return np.dtype(self.order + self.code)


class _Array:
    """Replacement for ``numpy.ndarray``."""

    def __init__(self, *_: object) -> None:
        self.raw: Any = b""

    def take(self, state: tuple[Any, ...]) -> None:
        _, self.shape, self.dtype, fortran, self.raw = state
        self.order = "F" if fortran else "C"

    def real(self) -> np.ndarray:
        raw = self.raw.encode("latin1") if isinstance(self.raw, str) else self.raw
        if not all(type(size) is int for size in self.shape):
            raise ValueError("an array whose shape is not of whole numbers")
        flat = np.frombuffer(raw, self.dtype.real())
        return flat.reshape(self.shape, order=self.order)  # type: ignore[call-overload]


def _from_buffer(raw: Any, dtype: Any, shape: Any, order: str) -> _Array:
    array = _Array()
    array.take((1, shape, dtype, order == "F", raw))
    return array


def _encode(text: str, encoding: str = "latin1") -> bytes:
    if encoding != "latin1":
        raise ValueError(f"bytes in the encoding {encoding[:20]}")
    return text.encode("latin1")


class _Machine:
    """Interprets the operations of a pickle with a stack and a memo."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        for name, argument in _operations(content):
            if name == "STOP":
                return self.stack.pop()
            if name in _VALUES:
                self.stack.append(argument)
            elif name in _MAKERS:
                self.stack.append(_MAKERS[name]())
            elif name in _STEPS:
                _STEPS[name](self, argument)
            elif name not in ("PROTO", "FRAME") or (argument or 0) > len(content):
                raise ValueError(f"the operation {name}, which no batch needs")
        raise EOFError("it does not end")

    def since_mark(self) -> list[Any]:
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def tuple_of(self, count: int) -> None:
        if len(self.stack) < count:
            raise ValueError("too few values for a tuple")
        items = tuple(self.stack[-count:])
        self.stack[-count:] = [items]

    def append(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise ValueError("values for a list that is none")
        self.stack[-1].extend(items)

    def fill(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not dict or len(items) % 2:
            raise ValueError("entries for a dict that is none")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str | bytes):
                raise ValueError("an entry whose name is no text")
            self.stack[-1][key] = value

    def look_up(self, module: Any, name: Any) -> None:
        if (called := _KNOWN.get((_text(module), _text(name)))) is None:
            raise DataError(
                f"{escape(self.path)} asks to call {escape(_text(module)[:80])}."
                f"{escape(_text(name)[:80])}, which no CIFAR batch needs: nothing was "
                "run; do not trust this file, and unpack the original archive"
            )
        self.stack.append(called)

    def call(self) -> None:
        arguments, called = self.stack.pop(), self.stack.pop()
        if called not in _KNOWN.values() or type(arguments) is not tuple:
            raise ValueError("a call of what is no function")
        self.stack.append(called(*arguments))

    def build(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], _Array | _Dtype) or type(state) is not tuple:
            raise ValueError("a state for what has none")
        self.stack[-1].take(state)


_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    **{(f"{module}.multiarray", "_reconstruct"): _Array for module in _MODULES},
    **{(f"{module}.numeric", "_frombuffer"): _from_buffer for module in _MODULES},
    **{(module, "ndarray"): _Array for module in _MODULES},
    **{(module, "dtype"): _Dtype for module in _MODULES},
    ("_codecs", "encode"): _encode,
}
# Operations whose argument is the value.
_VALUES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"),
    *("FLOAT", "BINFLOAT", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("STRING", "SHORT_BINSTRING", "BINSTRING"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_MAKERS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
}


def _keep(machine: _Machine, place: int | None) -> None:
    machine.memo[len(machine.memo) if place is None else place] = machine.stack[-1]


def _recall(machine: _Machine, place: int) -> None:
    machine.stack.append(machine.memo[place])


def _make_dict(machine: _Machine, _: object) -> None:
    items = machine.since_mark()
    machine.stack.append({})
    machine.fill(items)


def _set_item(machine: _Machine, _: object) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    machine.fill([key, value])


def _stack_global(machine: _Machine, _: object) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.look_up(module, name)


_STEPS: dict[str, Callable[[_Machine, Any], object]] = {
    "MARK": lambda m, _: m.marks.append(len(m.stack)),
    "POP": lambda m, _: m.stack.pop(),
    "POP_MARK": lambda m, _: m.since_mark(),
    "DUP": lambda m, _: m.stack.append(m.stack[-1]),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _keep),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _recall),
    "LIST": lambda m, _: m.stack.append(m.since_mark()),
    "APPEND": lambda m, _: m.append([m.stack.pop()]),
    "APPENDS": lambda m, _: m.append(m.since_mark()),
    "DICT": _make_dict,
    "SETITEM": _set_item,
    "SETITEMS": lambda m, _: m.fill(m.since_mark()),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.since_mark())),
    "TUPLE1": lambda m, _: m.tuple_of(1),
    "TUPLE2": lambda m, _: m.tuple_of(2),
    "TUPLE3": lambda m, _: m.tuple_of(3),
    "GLOBAL": lambda m, argument: m.look_up(*argument.split(" ", 1)),
    "STACK_GLOBAL": _stack_global,
    "REDUCE": lambda m, _: m.call(),
    "BUILD": lambda m, _: m.build(),
}


def _operations(content: bytes) -> Iterator[tuple[str, Any]]:
    """Yield names and arguments of operations, a limited number of them."""
    for step, (code, argument, _) in enumerate(pickletools.genops(content)):
        if step == _MOST_STEPS:
            raise ValueError(f"more than {_MOST_STEPS:,} operations")
        yield code.name, argument


def _text(value: Any) -> str:
    if not isinstance(value, str | bytes):
        raise ValueError(f"a {type(value).__name__} where text is wanted")
    return value.decode("latin1") if isinstance(value, bytes) else value
