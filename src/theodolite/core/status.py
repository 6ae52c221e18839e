"""What a measurement says of itself: status, cost, mode of norm layers, seeds.

A random stream is named by a root seed and labels, never by the order in which work is
scheduled, so a trial draws the same numbers alone, in a pool or on a cluster.
"""

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from numbers import Integral

import numpy as np

from .errors import ConfigError, UnknownNameError, unknown_name


class Status(StrEnum):
    """Outcome of a measurement; never a silent NaN."""

    EXACT = "exact"
    CONVERGED = "converged"
    FINISHED = "finished"
    SAMPLED = "sampled"
    IMPRECISE = "imprecise"
    ROUNDING = "rounding"
    MAX_MATVECS = "max_matvecs"
    NONFINITE = "nonfinite"
    DIVERGED = "diverged"
    INCOMPLETE = "incomplete"

    @property
    def trusted(self) -> bool:
        """Whether the value is right within its stated error."""
        return self in _TRUSTED

    @property
    def advice(self) -> str:
        """What the status means, and what to try."""
        return _ADVICE[self]

    @classmethod
    def worst(cls, statuses: Iterable["Status"]) -> "Status":
        """Return the worst status of several."""
        return min(statuses, key=_GRAVEST_FIRST.index)

    @classmethod
    def of_sample(cls, precision: float, tol: float | None) -> "Status":
        """Return the status of a sampling estimate.

        Args:
            precision: Error that was reached, in the unit of ``tol``.
            tol: Requested precision, or None.

        Example:
            >>> str(Status.of_sample(2.7, None)), str(Status.of_sample(2.7, 0.1))
            ('sampled', 'imprecise')
        """
        if tol is None:
            return cls.SAMPLED
        return cls.CONVERGED if precision <= tol else cls.IMPRECISE


_ADVICE = {
    Status.EXACT: "computed without iteration; the error is rounding",
    Status.CONVERGED: "the error is below the tolerance",
    Status.FINISHED: "all steps of the training were made; the error is rounding",
    Status.SAMPLED: "a sampling estimate: its error bar is its precision",
    Status.IMPRECISE: "the sampling error is above the tolerance: take more vectors",
    Status.ROUNDING: "below the rounding of its matrix: trust the interval alone",
    Status.MAX_MATVECS: "stopped by the budget: raise max_matvecs or loosen tol",
    Status.NONFINITE: "NaN or infinity met: check the data, the loss and the dtype",
    Status.DIVERGED: "the loss passed its ceiling: lower the learning rate",
    Status.INCOMPLETE: "some points are missing: raise max_starts",
}
_TRUSTED = (Status.EXACT, Status.CONVERGED, Status.FINISHED, Status.SAMPLED)
_GRAVEST_FIRST = [
    Status.NONFINITE,
    Status.DIVERGED,
    Status.MAX_MATVECS,
    Status.INCOMPLETE,
    Status.ROUNDING,
    Status.IMPRECISE,
    Status.SAMPLED,
    Status.CONVERGED,
    Status.FINISHED,
    Status.EXACT,
]


class NormMode(StrEnum):
    """Which statistics normalisation layers use during a measurement.

    ``BATCH``: each batch by its own statistics, differentiated through.
    ``FULL``: statistics of all the data given, differentiated through.
    ``FROZEN``: those statistics held constant.
    ``EVAL``: running statistics, as at inference.
    ``AS_IS``: every module keeps the mode it is in. A norm in train mode takes the
    statistics of each batch, differentiated through; one in eval mode its running ones.

    All but ``AS_IS`` set every norm layer, also one that was frozen by ``eval()``.
    """

    BATCH = "batch"
    FULL = "full"
    FROZEN = "frozen"
    EVAL = "eval"
    AS_IS = "as_is"

    @property
    def by_batch(self) -> bool:
        """Whether norms in train mode use the statistics of each batch."""
        return self in (NormMode.BATCH, NormMode.AS_IS)

    @classmethod
    def _missing_(cls, value: object) -> "NormMode":
        if (meant := _MEANT.get(str(value))) is not None:
            raise UnknownNameError(
                f"unknown norm mode {value!r}: it is {meant}; known: "
                f"{', '.join(sorted(one.value for one in cls))}"
            )
        raise unknown_name("norm mode", str(value), [one.value for one in cls])


def norm_counts(layers: Mapping[str, Sequence[str]]) -> str:
    """Return how many norm layers were in train mode and how many in eval mode.

    Example:
        >>> norm_counts({"train": ("stem", "head"), "eval": ("body",)})
        '2 in train, 1 in eval'
    """
    counts = {mode: len(names) for mode, names in layers.items() if names}
    return ", ".join(f"{count} in {mode}" for mode, count in counts.items())


def norm_words(mode: str, layers: Mapping[str, Sequence[str]]) -> str:
    """Return the mode of norms in words, under ``as_is`` their counts.

    Example:
        >>> norm_words("as_is", {"train": ("stem",), "eval": ("body",)})
        'norms: 1 in train, 1 in eval mode'
    """
    if mode != NormMode.AS_IS:
        return f"norms in {mode} mode"
    counts = norm_counts(layers)  # of norms that a mode changes
    return f"norms: {counts} mode" if counts else "no batch norms"


# Names of the modes in other libraries.
_MEANT = {
    "train": "'batch' for the batch's statistics as in training, 'full' for those of "
    "all the data, 'as_is' where norms are in train mode",
    "test": "'eval' for running statistics",
    "inference": "'eval' for running statistics",
    "running": "'eval' for running statistics",
}
_MEANT["training"] = _MEANT["train"]


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


def derive(seed: int, *labels: str | int | bool) -> int:
    """Return a 63-bit seed that depends on a seed and labels.

    A NumPy integer is the same label as the int, an enum of strings as its string.

    Example:
        >>> derive(0, "trial", 1) == derive(0, "trial", 1)
        True
        >>> derive(0, "trial", 1) == derive(0, "trial", 2)
        False
    """
    check_seed(seed)
    text = "\x1f".join([str(seed), *map(_tagged, labels)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def stream(seed: int, *labels: str | int | bool) -> np.random.Generator:
    """Return a generator; without labels it is ``default_rng(seed)`` itself."""
    check_seed(seed)
    return np.random.default_rng(derive(seed, *labels) if labels else seed)


def check_seed(seed: int) -> None:
    """Raise if a seed is not a non-negative integer."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise ConfigError(f"seed is {seed!r}: pass a whole number from 0 up")


def _tagged(label: str | int | bool) -> str:
    # The tag keeps 1 from "1"; the escapes, a separator inside a label from one
    # between labels.
    if isinstance(label, str):
        text = str(label).replace("\x1e", "\x1e0").replace("\x1f", "\x1e1")
        return f"str:{text}"
    if isinstance(label, bool | np.bool_):
        return f"bool:{bool(label)}"
    return f"int:{int(label)}"
