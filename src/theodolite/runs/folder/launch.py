"""One record for each time somebody works on a run folder."""

import json
import os
import secrets
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from theodolite.core import Cost, RunError, strict
from theodolite.runs.folder.atomic import refusing
from theodolite.runs.folder.checked import write_checked
from theodolite.runs.folder.origin import code_version, now


class Launch:
    """A record under ``launches/``, written at the start and again at the end.

    A record without an end belongs to a launch that is running or was killed.
    """

    def __init__(self, folder: Path, *, jobs: int, spec: Mapping[str, Any]) -> None:
        self._folder = folder
        self._clock = time.perf_counter()
        self._record: dict[str, Any] = {
            "started": now(),
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "jobs": jobs,
            "scale": spec["scale"],
            **code_version(),
            "finished": None,
            "wall_s": None,
            "cpu_s": 0.0,
            "n_computed": 0,
            "failures": {},
            "outcome": None,
            "spec": dict(spec),
        }
        stamp = "".join(c for c in self._record["started"][:26] if c.isdigit())
        self._name = f"launches/{stamp}-{os.getpid()}-{secrets.token_hex(2)}.json"

    def count(self, cost: Cost) -> None:
        """Add one computed cell."""
        self._record["n_computed"] += 1
        self._record["cpu_s"] += cost.cpu_s

    def fail(self, cell: str, message: str, trace: str) -> None:
        """Add one failed cell, with its traceback for whoever mends it."""
        self._record["failures"][cell] = {"message": message, "trace": trace}

    @property
    def name(self) -> str:
        """Name of the record, relative to the run folder."""
        return self._name

    def __enter__(self) -> Self:
        self._write()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._record |= {
            "finished": now(),
            "wall_s": time.perf_counter() - self._clock,
            "outcome": _outcome(error),
        }
        try:
            self._write()
        except RunError:
            if error is None:  # else the first error is the one to tell
                raise

    def _write(self) -> None:
        text = json.dumps(strict(self._record), indent=2, ensure_ascii=False) + "\n"
        with refusing("write to", self._folder):
            write_checked(self._folder, self._name, text.encode())


def _outcome(error: BaseException | None) -> str:
    if error is None:
        return "finished"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return f"failed: {error}"
