"""Join a group of processes that know where to meet, and nothing else."""

import os
import socket
import struct
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from theodolite.core import TeamError
from theodolite.instruments.team.watch import forget_watches

# Processes have started when they are told to meet; who does not come was lost.
_MEETING_S = 30.0
_INTERFACE_ADDRESS = 0x8915  # SIOCGIFADDR of Linux


def join_group(meeting: tuple[str, int], rank: int, size: int) -> None:
    """Make the default group of this process, by gloo.

    Args:
        meeting: Address of the first process and a port that is free there.
        rank: Place of this process.
        size: How many will come.

    Raises:
        TeamError: If not all of them come.
    """
    name = _interface_towards(meeting)
    if name is not None:
        # By default gloo listens where the host's name leads, often to itself alone.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
    options: dict[str, Any] = {"timeout": timedelta(seconds=_MEETING_S)}
    make: Any = dist.TCPStore  # pyright: ignore[reportPrivateImportUsage]
    try:
        store = make(*meeting, size, rank == 0, **options)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    except RuntimeError as error:
        first = (str(error).splitlines() or [""])[0].rstrip(". ")
        raise TeamError(
            f"{size} ranks could not meet at {meeting[0]}:{meeting[1]} ({first}): see "
            "that all of them can reach that host, and start them again"
        ) from error


def leave_group() -> None:
    """Leave all groups of this process, also those whose calls are pending."""
    if dist.is_initialized():
        forget_watches()
        dist.destroy_process_group()


def _interface_towards(meeting: tuple[str, int]) -> str | None:
    """Return the network interface by which an address is reached, where it is told."""
    try:
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(meeting)  # which sends nothing
            own = socket.inet_aton(probe.getsockname()[0])
            for _, name in socket.if_nameindex():
                asked = struct.pack("256s", name.encode()[:15])
                try:
                    told = fcntl.ioctl(probe.fileno(), _INTERFACE_ADDRESS, asked)
                except OSError:  # an interface without an address
                    continue
                if told[20:24] == own:
                    return name
    except (ImportError, OSError):
        return None
    return None
