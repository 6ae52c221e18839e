"""Number of cells that a cluster can compute at once, while nodes join and leave."""

import time
from contextlib import suppress
from numbers import Integral, Real
from typing import Any

from theodolite.core import ConfigError, RunError

# Seconds between two checks of the nodes, and until giving up without a fitting one.
_REFRESH_S, _PATIENCE_S = 2.0, 60.0
# Cells sent ahead, so that a worker need not wait for the next; few, so that other
# drivers on the same folder find cells to do.
_AHEAD = 2
_SPARE_FILES = 256


class Capacity:
    """Slots of a cluster: places where one cell can be worked on.

    Args:
        ray: The connected library.
        cpus: Processors per cell.
        gpus: GPUs per cell, a part of one or whole ones.
        jobs: Largest number of cells at once.
    """

    def __init__(self, ray: Any, *, cpus: float, gpus: float, jobs: int | None) -> None:
        self._ray, self._cpus, self._gpus, self._jobs = ray, cpus, gpus, jobs
        self._slots, self._asked, self._last_fit = 0, -1e9, time.monotonic()

    def slots(self) -> int:
        """Return how many cells are computed at once."""
        now = time.monotonic()
        if now - self._asked > _REFRESH_S:
            self._asked = now
            nodes = [n["Resources"] for n in self._ray.nodes() if n["Alive"]]
            self._slots = sum(_fits(n, self._cpus, self._gpus) for n in nodes)
        if self._slots:
            self._last_fit = now
        return min(self._slots, self._jobs or self._slots)

    def in_flight(self) -> int:
        """Return how many cells may be sent before one is back."""
        slots = self.slots()
        if not slots and time.monotonic() - self._last_fit > _PATIENCE_S:
            raise self.refusal("is left")
        return _lockable(max(1, slots if self._jobs else _AHEAD * slots))

    def refusal(self, what: str) -> RunError:
        """Return the error that no node can take a cell."""
        gpus = f" and {self._gpus:g} GPUs" if self._gpus else ""
        return RunError(
            f"no node of the Ray cluster {what} that has {self._cpus:g} CPUs{gpus} for "
            "a cell: ask for less or add nodes, then run again; finished cells are kept"
        )


def check_request(cpus: float, gpus: float, jobs: int | None) -> None:
    """Raise if no cluster can give these amounts."""
    for name, amount, least in (("cpus", cpus, "above 0"), ("gpus", gpus, "from 0 up")):
        if not _is_amount(amount) or (name == "cpus" and not amount):
            raise ConfigError(
                f"{name} is {amount!r} for each cell: pass a number {least}, whole if "
                "it is above 1"
            )
    if jobs is not None and (_is_no_number(jobs, Integral) or jobs < 1):
        raise ConfigError(
            f"{jobs!r} cells at once were asked of Ray: try 1 or more, whole ones"
        )


def _is_amount(value: float) -> bool:
    """Return whether a value is a number of at least 0, and an integer above 1."""
    if _is_no_number(value, Real) or not 0 <= value < 1e6:
        return False
    return value <= 1 or value == int(value)


def _is_no_number(value: Any, kind: type) -> bool:
    return isinstance(value, bool) or not isinstance(value, kind)


def _fits(node: dict[str, float], cpus: float, gpus: float) -> int:
    return min(
        _times(node.get("CPU", 0.0), cpus),
        _times(node.get("GPU", 0.0), gpus) if gpus else 10**9,
    )


def _times(there: float, wanted: float) -> int:
    """Return how many requests fit; a fraction of a device stays within one device."""
    if wanted <= 1:
        return int(there) * int(1 / wanted + 1e-9)
    return int(there // wanted)


def _lockable(wanted: int) -> int:
    """Raise the limit of open files for the locks; return how many locks fit."""
    try:
        import resource
    except ImportError:  # Windows, where thousands of files may be open
        return min(wanted, 4096)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    need = wanted + _SPARE_FILES
    if soft != unlimited and soft < need:
        more = need if hard == unlimited else min(need, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
            soft = more
    return wanted if soft == unlimited else max(1, min(wanted, soft - _SPARE_FILES))
