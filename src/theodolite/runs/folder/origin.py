"""Where numbers come from: version, commit, packages, platform."""

import functools
import importlib.metadata
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from theodolite import __version__

_PACKAGES = ("numpy", "scipy", "torch")


def provenance() -> dict[str, Any]:
    """Return what a later reader needs to obtain the same numbers again."""
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
    changes = _git(package, "status", "--porcelain", "--", ".")
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
