"""How much memory is free."""

import os
from pathlib import Path

_UNKNOWN = 2**63
# The value that cgroups report if there is no limit: a little less than 2⁶³.
_NO_LIMIT = 2**62
_CONTAINER = "/sys/fs/cgroup"
# Files with a container's memory limit, its use, and the cache within that use.
_GROUPS = (
    ("memory.max", "memory.current", "memory.stat"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
    ),
)


def free_memory() -> int:
    """Return the bytes that this process may still allocate, 2⁶³ if unknown.

    Example:
        >>> free_memory() > 0
        True
    """
    return max(0, min(_machine(), _group()))


def _machine() -> int:
    """Return the kernel's available memory, or else all physical memory."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return _UNKNOWN


def _group() -> int:
    """Return what a container may still allocate, if it has a limit."""
    base = Path(_CONTAINER)
    for limit, used, facts in _GROUPS:
        try:
            allowed = int((base / limit).read_text())
            if allowed >= _NO_LIMIT:
                return _UNKNOWN
            return allowed - int((base / used).read_text()) + _cached(base / facts)
        except (OSError, ValueError):
            continue
    return _UNKNOWN


def _cached(path: Path) -> int:
    """Return how much of a container's memory is file cache."""
    rows = (line.split() for line in path.read_text().splitlines())
    return sum(int(value) for name, value in rows if name == "inactive_file")
