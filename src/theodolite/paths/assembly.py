"""Add up the results of chunks of samples, and make a reading."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from torch import Tensor

from theodolite.core import MeasurementError, Status, Stopwatch

from .branches import Branch, Counted
from .energies import Energies, Fit, energies_of, fit, scale_from_gains
from .frozen_model import Subject
from .reading import PathEnsemble

By = Literal["block", "input"]


@dataclass(frozen=True, kw_only=True)
class EnsembleSettings:
    """Settings of :func:`path_ensemble`."""

    counted: Counted
    by: By
    biases: bool
    linearise: bool
    graph_bytes: int | None


@dataclass(kw_only=True)
class EnergySums:
    """Sums of one part: contributions of samples, and distances to the whole."""

    squares: list[np.ndarray] = field(default_factory=list)
    products: list[np.ndarray] = field(default_factory=list)
    off: float = 0.0
    size: float = 0.0
    largest: float = 0.0

    def add(self, stack: Tensor, whole: Tensor) -> None:
        """Add the coefficients of some samples, and the whole that they sum to."""
        flat = stack.flatten(2) if stack.ndim > 2 else stack[..., None]
        total = flat.sum(0)
        self.squares.append(flat.square().mean(2).T.cpu().double().numpy())
        self.products.append((flat * total).mean(2).T.cpu().double().numpy())
        self.off += float((total.reshape(whole.shape) - whole).square().sum())
        self.size += float(whole.square().sum())
        self.largest += float(flat.square().sum())

    def energies(self) -> Energies:
        """Return energies over all samples."""
        return energies_of(np.concatenate(self.squares), np.concatenate(self.products))

    @property
    def residual(self) -> float:
        """Relative distance between the sum of the coefficients and the whole."""
        return math.sqrt(self.off / self.size) if self.size else math.sqrt(self.off)

    @property
    def cancelled(self) -> float:
        """Size of the coefficients over the size of their sum."""
        return math.sqrt(self.largest / self.size) if self.size else 1.0


@dataclass(kw_only=True)
class ChunkSums:
    """Sums over all chunks."""

    parts: list[EnergySums]
    gains: dict[int, list[float]]
    counts: list[int] = field(default_factory=list)
    branches: tuple[Branch, ...] = ()
    linearised: tuple[str, ...] = ()
    gradients: list[list[Tensor]] = field(default_factory=list)
    gap: np.ndarray = field(default_factory=lambda: np.zeros(0))
    chunks: int = 0
    samples: int = 0
    eps: float


# Largest relative distance of the coefficients' sum from the whole that is exact.
_EXACT = 1e-10
# Also allowed: this many times the rounding of a sum (our choice).
_ROUNDING = 1e4


def reading_of(
    collected: ChunkSums, subject: Subject, plan: EnsembleSettings, *, watch: Stopwatch
) -> PathEnsemble:
    """Return the reading of the sums over all chunks."""
    energies = [part.energies() for part in collected.parts]
    status = _status(collected, energies)
    logs = np.array([math.log(n) if n else -math.inf for n in collected.counts])
    length = max(len(logs), *(len(e.energy) for e in energies))
    logs = np.pad(logs, (0, length - len(logs)), constant_values=-math.inf)
    fits = [fit(_padded(e.share, length), logs) for e in energies]
    gains = [math.sqrt(a / b) if b else math.inf for a, b in collected.gains.values()]
    words = ["float64 twin" if subject.promoted else "direct"]
    words += (
        [f"linearised {', '.join(collected.linearised)}"]
        if collected.linearised
        else []
    )

    def table(name: str) -> np.ndarray:
        return np.stack([_padded(getattr(e, name), length) for e in energies])

    def column(name: str) -> np.ndarray:
        return np.array([getattr(e, name) for e in energies])

    return PathEnsemble(
        energy=table("energy"),
        energy_error=table("energy_error"),
        share=table("share"),
        share_error=table("share_error"),
        alignment=table("alignment"),
        alignment_error=table("alignment_error"),
        law=np.stack([f.shares for f in fits]),
        effective_depth=column("depth"),
        effective_depth_error=column("depth_error"),
        spread=column("spread"),
        spread_error=column("spread_error"),
        beta=np.array([f.beta for f in fits]),
        beta_error=np.array(
            [_beta_error(f, e) for f, e in zip(fits, energies, strict=True)]
        ),
        divergence=np.array([f.divergence for f in fits]),
        distance=np.array([f.distance for f in fits]),
        residual=np.array([part.residual for part in collected.parts]),
        gradient_gap=collected.gap,
        gain=np.array(gains),
        predicted_beta=scale_from_gains(gains),
        log_counts=logs,
        places=tuple(branch.module for branch in collected.branches),
        counted=plan.counted,
        by=plan.by,
        biases=plan.biases,
        linearised=collected.linearised,
        samples=collected.samples,
        status=status,
        norm_mode=subject.norm_mode,
        norm_layers=subject.norm_layers,
        cost=watch.read(passes=collected.chunks * (len(collected.parts) - 1)),
        method="; ".join(words),
    )


def _status(collected: ChunkSums, energies: Sequence[Energies]) -> Status:
    finite = all(np.isfinite(e.energy).all() and e.energy.sum() > 0 for e in energies)
    if not finite:
        return Status.NONFINITE
    worst = Status.EXACT
    for part in collected.parts:
        if part.residual <= _EXACT:
            continue
        if part.residual > _ROUNDING * collected.eps * max(part.cancelled, 1.0):
            raise MeasurementError(
                f"the paths add up to the output within {part.residual:.2g} of it "
                "only, so samples act on one another or passes differ: use 'eval' "
                "mode, and a model that draws nothing at random"
            )
        worst = Status.ROUNDING
    return worst


def _beta_error(fit: Fit, energies: Energies) -> float:
    r"""Return the error of $\beta$ from that of the mean $\mu$.

    In the family $d\mu / d\log\beta = 2\sigma^2$.
    """
    degrees = np.arange(len(fit.shares))
    variance = float(fit.shares @ (degrees - fit.shares @ degrees) ** 2)
    if not variance or not math.isfinite(fit.beta):
        return math.inf
    return fit.beta * energies.depth_error / (2 * variance)


def _padded(values: np.ndarray, length: int) -> np.ndarray:
    return np.pad(values, (0, length - len(values)))
