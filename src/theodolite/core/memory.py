"""How much memory is free, as far as the system tells."""

import os
from pathlib import Path

_UNKNOWN = 2**63
# Where a container's limit, use and what of that use is only cache are told.
_GROUPS = (
    ("memory.max", "memory.current", "memory.stat"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
    ),
)


def free_memory() -> int:
    """Return the bytes that this process may still take, 2⁶³ where nobody knows.

    Example:
        >>> free_memory() > 0
        True
    """
    return max(0, min(_machine(), _group()))


def _machine() -> int:
    """Read what the kernel calls available, or else all physical memory."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return _UNKNOWN


def _group() -> int:
    """Read what a container may still take, where it has a limit."""
    base = Path("/sys/fs/cgroup")
    for limit, used, facts in _GROUPS:
        try:
            taken = int((base / used).read_text()) - _cached(base / facts)
            return int((base / limit).read_text()) - taken
        except (OSError, ValueError):
            continue
    return _UNKNOWN


def _cached(path: Path) -> int:
    """Read how much of a container's use are files that can be dropped."""
    rows = (line.split() for line in path.read_text().splitlines())
    return sum(int(value) for name, value in rows if name == "inactive_file")
