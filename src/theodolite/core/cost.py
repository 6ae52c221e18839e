"""The time and the passes that a measurement took."""

import time
from dataclasses import asdict, dataclass


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Wall and processor seconds, and the derivative passes spent.

    Attributes:
        wall_s: Elapsed seconds.
        cpu_s: Processor seconds of this process, all threads.
        passes: Backward passes (gradients or Hessian-vector products).
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    passes: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            wall_s=self.wall_s + other.wall_s,
            cpu_s=self.cpu_s + other.cpu_s,
            passes=self.passes + other.passes,
        )

    def to_dict(self) -> dict[str, float]:
        """Return the cost as plain JSON values."""
        return asdict(self)


class Stopwatch:
    """Measure a cost from construction to each call of :meth:`read`."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def read(self, passes: int = 0) -> Cost:
        """Return the cost so far."""
        return Cost(
            wall_s=time.perf_counter() - self._wall,
            cpu_s=time.process_time() - self._cpu,
            passes=passes,
        )
