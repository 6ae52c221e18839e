"""What chunks of samples give, added up."""

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from torch import Tensor

from theodolite.paths.energies import Energies, energies_of
from theodolite.paths.marks import Branch, Counted

By = Literal["block", "input"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is asked for; see :func:`path_ensemble`."""

    counted: Counted
    by: By
    biases: bool
    linearise: bool
    graph_bytes: int | None


@dataclass(kw_only=True)
class Sums:
    """Of one part: what samples contribute, and how far sums are from the whole."""

    squares: list[np.ndarray] = field(default_factory=list)
    products: list[np.ndarray] = field(default_factory=list)
    off: float = 0.0
    size: float = 0.0
    largest: float = 0.0

    def add(self, stack: Tensor, whole: Tensor) -> None:
        """Add the coefficients of some samples, and what they should sum to."""
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
        """How far coefficients are from what they should sum to, relative to it."""
        return math.sqrt(self.off / self.size) if self.size else math.sqrt(self.off)

    @property
    def cancelled(self) -> float:
        """How much larger the coefficients are than their sum."""
        return math.sqrt(self.largest / self.size) if self.size else 1.0


@dataclass(kw_only=True)
class Collected:
    """All that the chunks gave."""

    parts: list[Sums]
    gains: dict[int, list[float]]
    counts: list[int] = field(default_factory=list)
    branches: tuple[Branch, ...] = ()
    linearised: tuple[str, ...] = ()
    gradients: list[list[Tensor]] = field(default_factory=list)
    gap: np.ndarray = field(default_factory=lambda: np.zeros(0))
    chunks: int = 0
    samples: int = 0
    eps: float = 0.0
