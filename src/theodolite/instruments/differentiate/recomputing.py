"""Activation checkpointing switched off, for all code that runs inside."""

from collections.abc import Callable
from threading import Lock
from typing import Any

from torch.utils import checkpoint as library

# What torch runs around code that is checkpointed without re-entering.
_GENERATOR = "_checkpoint_without_reentrant_generator"


class _Recomputing:
    """Has checkpointed code run as if it were not, wherever it was imported to.

    The first to enter replaces what torch's ``checkpoint`` calls, and the last to leave
    puts it back, in whatever order threads and sessions come and go.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._generator: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._generator = getattr(library, _GENERATOR)
                setattr(library, _GENERATOR, lambda *args, **kwargs: iter([None]))
                library.CheckpointFunction.apply = staticmethod(_called)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                setattr(library, _GENERATOR, self._generator)
                del library.CheckpointFunction.apply  # which it inherits


def _called(function: Callable[..., Any], _: bool, *args: Any) -> Any:
    return function(*args)


without_recomputing = _Recomputing()
