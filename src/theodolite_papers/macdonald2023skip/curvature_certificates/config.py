"""Random systems, data and functions for the theorems of sections 2 and 4."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import SystemBlueprint, normalised_residual, stream
from theodolite.studies import StudyConfig

PARTS = (
    "quadratics",
    "roughness",
    "products",
    "lemmas",
    "systems",
    "ascents",
    "kernels",
    "looseness",
)
# Smooth, with slopes of at most one, as section 5 asks of branches.
GATES = ("tanh", "sigmoid", "softplus", "softsign", "log_sigmoid", "elu")
# Distances from zero at which the slope of a nonlinearity is compared with that at 0.
DISTANCES = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8)
# Rates at which a cost without Lipschitz gradient is descended on.
RATES = (0.1, 0.03, 0.01)
# Least variances of data that a batch norm sees.
VARIANCES = (1.0, 0.1, 0.01, 0.001)
# Factors on the weights.
SCALES = (1.0, 3.0, 10.0, 30.0)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Numbers and sizes of random systems."""

    steps: int = 60  # of gradient descent
    # Numbers of residual blocks whose bounds are compared with Hessians.
    blocks: tuple[int, ...] = (0, 1, 2, 4)

    @property
    def climbed(self) -> Sequence[int]:
        """Trials of which ascents are made, which are dearer than points."""
        return self.seeds[: max(2, self.n_seeds // 4)]


PRESETS = {
    "smoke": Config(n_seeds=4, steps=30, blocks=(0, 1, 2)),
    "quick": Config(n_seeds=24),
    "paper": Config(n_seeds=400, blocks=(0, 1, 2, 4, 8)),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per part."""
    del config
    return [{"part": part} for part in PARTS]


@dataclass(frozen=True, eq=False)
class Instance:
    """A normalised residual network to be built, with independent data."""

    plan: SystemBlueprint  # the system
    inputs: np.ndarray  # no more samples than inputs
    classes: np.ndarray  # one class per sample
    scale: float  # factor on the weights as they are built
    eps: float  # of all normalisations


def instance(config: Config, trial: int, *, blocks: int | None = None) -> Instance:
    """Return a random network shape with random data."""
    rng = stream(config.seed, "system", trial)
    inputs = int(rng.integers(3, 6))
    count = int(rng.integers(1, 4)) if blocks is None else blocks
    widths = np.sort(rng.integers(2, 5, size=count + 1))[::-1]
    eps = float(10 ** rng.uniform(-0.5, 0.5))
    plan = normalised_residual(
        inputs=inputs,
        widths=tuple(int(width) for width in widths),
        eps=eps,
        branch_norm=float(rng.uniform(0.3, 0.95)),
        activation=str(rng.choice(GATES)),
        parameterisation=str(rng.choice(["weight_norm", "entry_norm"])),  # type: ignore[arg-type]
    )
    samples = int(rng.integers(2, inputs + 1))
    x = rng.normal(size=(samples, inputs))
    classes = rng.integers(0, int(widths[-1]), size=samples)
    return Instance(plan, x, classes, float(10 ** rng.uniform(-1, 1)), eps)


def quadratic(config: Config, trial: int) -> tuple[np.ndarray, float, np.ndarray]:
    """Return random curvatures, a step below 2 over the largest, and a start."""
    rng = stream(config.seed, "quadratic", trial)
    curvatures = rng.uniform(0.1, 4.0, size=5)
    step = float(rng.uniform(0.05, 1.95) / curvatures.max())
    return curvatures, step, rng.normal(size=5)
