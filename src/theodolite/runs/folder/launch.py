"""Launch records of a run folder, with versions and machine."""

import functools
import importlib.metadata
import json
import os
import platform
import secrets
import socket
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from theodolite import __version__
from theodolite.core import Cost, RunError, to_strict_json

from .atomic import refusing
from .checked import write_checked

_PACKAGES = ("numpy", "scipy", "torch")


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
        """Add one failed cell with its traceback."""
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
            if error is None:  # otherwise the first error is the one to report
                raise

    def _write(self) -> None:
        text = (
            json.dumps(to_strict_json(self._record), indent=2, ensure_ascii=False)
            + "\n"
        )
        with refusing("write to", self._folder):
            write_checked(self._folder, self._name, text.encode())


def _outcome(error: BaseException | None) -> str:
    if error is None:
        return "finished"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return f"failed: {error}"


def provenance() -> dict[str, Any]:
    """Return the versions and the machine, which reproducing the numbers needs."""
    return {
        **code_version(),
        "python": platform.python_version(),
        "packages": {name: _installed(name) for name in _PACKAGES},
        "platform": platform.platform(),
        "processors": usable_cores(),
    }


def code_version() -> dict[str, Any]:
    """Return the version, and the commit where the package lies in a checkout."""
    commit, dirty = _checkout()
    return {"version": __version__, "commit": commit, "dirty": dirty}


def now() -> str:
    """Return the time in UTC, ISO 8601, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def usable_cores() -> int:
    """Return how many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def _checkout() -> tuple[str | None, bool | None]:
    package = Path(__file__).parents[2]
    # Tracked, not merely below a checkout: a virtual environment often lies in one.
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None, None
    commit = _git(package, "rev-parse", "HEAD")
    changes = _git(package.parent, "status", "--porcelain", "--", ".")
    return commit or None, None if changes is None else bool(changes)


def _git(folder: Path, *arguments: str) -> str | None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            env=environment | {"GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
