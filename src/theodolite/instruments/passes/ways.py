"""What the ways to statistics of all the data take, and which is the cheapest."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to a product where batch statistics run over all the data.

    Attributes:
        name: What it is called.
        gradients: Time of a product, in gradients of all the data, transfers apart.
        device_bytes: Memory that it takes on the device.
        host_bytes: Memory that it takes on the host.
        moved_bytes: What a product moves between the two.
    """

    name: str
    gradients: float
    device_bytes: int
    host_bytes: int = 0
    moved_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What there is, as measured.

    Attributes:
        device_bytes: Memory for graphs on the device.
        host_bytes: Memory for them on the host.
        gradient_seconds: Time of one gradient of all the data.
        bytes_per_second: Rate of transfers between device and host.
    """

    device_bytes: int
    host_bytes: int
    gradient_seconds: float
    bytes_per_second: float

    def seconds(self, way: Way) -> float:
        """Return the time of a product; transfers are not hidden behind work."""
        moving = way.moved_bytes / self.bytes_per_second
        return way.gradients * self.gradient_seconds + moving

    def cheapest(self, ways: Sequence[Way]) -> Way | None:
        """Return the fastest way that fits, or None where none does.

        Example:
            >>> kept = Way(name="kept", gradients=2.5, device_bytes=90)
            >>> swept = Way(name="swept", gradients=4.5, device_bytes=30)
            >>> small = Machine(
            ...     device_bytes=50,
            ...     host_bytes=0,
            ...     gradient_seconds=1.0,
            ...     bytes_per_second=1e9,
            ... )
            >>> small.cheapest([kept, swept]).name
            'swept'
        """
        fitting = [
            way
            for way in ways
            if way.device_bytes <= self.device_bytes
            and way.host_bytes <= self.host_bytes
        ]
        return min(fitting, key=self.seconds, default=None)


def measured_seconds(work: Callable[[], object], device: torch.device) -> float:
    """Return the time of some work the second time that it is done."""
    work()
    _wait(device)
    start = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - start


def measured_rate(device: torch.device, *, size: int = 2**26) -> float:
    """Return how many bytes a second go to the host and back."""
    there = torch.empty(size, dtype=torch.uint8, device=device)
    here = torch.empty(size, dtype=torch.uint8, pin_memory=device.type == "cuda")

    def both_ways() -> None:
        here.copy_(there)
        there.copy_(here)

    return 2 * size / measured_seconds(both_ways, device)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
