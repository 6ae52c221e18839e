"""Depths, data and networks of the study of activations."""

from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.studies import StudyConfig

# 2-shortcut networks with ReLU at mid, and 1-shortcut networks with activations.
TWO = "two_shortcut"
KINDS: dict[str, dict[str, Any]] = {
    TWO: {"shortcut": 2, "mid": "relu"},
    "tanh": {"shortcut": 1, "pre": "tanh", "post": "tanh"},
    "relu_before": {"shortcut": 1, "pre": "relu"},
    "relu_after": {"shortcut": 1, "post": "relu"},
}
ONE = tuple(kind for kind in KINDS if kind != TWO)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Networks on whitened digits, and small ones on random data."""

    dataset: str = "mnist5k"  # named dataset, whitened
    width: int = 10  # principal components kept
    # Weight matrices of the 2-shortcut networks on digits, even numbers.
    depths: tuple[int, ...] = (2, 4, 8)
    # Up to this depth the first two of them are measured by double backward; all others
    # have the exact Hessian at their weights.
    measured_depth: int = 2
    # Weight matrices of the 1-shortcut networks, all measured.
    one_depths: tuple[int, ...] = (2, 4, 8)
    one_seeds: int = 2  # 1-shortcut networks per depth
    one_samples: int = 1000  # digits that they see, from the front
    predicted_depths: tuple[int, ...] = (2, 4, 8, 16)  # depths for closed forms at zero
    random_width: int = 4  # width of the small networks on random data
    samples: int = 40  # random samples
    units: tuple[int, ...] = (1, 2)  # units of the small networks
    scales: tuple[float, ...] = (0.01, 1.0)  # factors on Xavier weights
    # Factors at which the limit at zero is approached.
    small: tuple[float, ...] = (0.1, 0.03, 0.01, 0.003)
    # Steps of gradient descent after which weights are read.
    steps: tuple[int, ...] = (10, 100)
    rate: float = 0.05  # its learning rate
    n_random: int = 2  # small networks per setting

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(len(self.depths), len(self.one_depths)) < 3:
            raise ConfigError(
                f"depths {self.depths} and {self.one_depths}: a trend wants three each"
            )


PRESETS = {
    "smoke": Config(
        n_seeds=4,
        dataset="digits",
        one_depths=(2, 3, 4),
        one_samples=200,
        predicted_depths=(2, 4, 8),
        steps=(10,),
        n_random=2,
    ),
    "quick": Config(n_seeds=4, one_depths=(2, 3, 4), one_samples=500, committed=True),
    "paper": Config(
        n_seeds=24,
        depths=(2, 4, 8, 16, 32),
        measured_depth=4,
        one_depths=(2, 4, 8, 16),
        one_seeds=4,
        units=(1, 3),
        scales=(0.01, 0.3, 1.0),
        n_random=3,
    ),
}


def plan_of(config: Config, kind: str, depth: int) -> ShortcutBlueprint:
    """Return a network on digits, at small weights."""
    return ShortcutBlueprint(
        width=config.width, depth=depth, init="small", **KINDS[kind]
    )


def small_plan(config: Config, units: int, mid: str = "relu") -> ShortcutBlueprint:
    """Return a small 2-shortcut network for random data."""
    return ShortcutBlueprint(
        width=config.random_width, depth=2 * units, mid=mid, init="xavier"
    )


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per network on digits, deepest first, and per small network."""
    seeds, few = config.seeds, config.seed
    digits = [
        {"task": "digits", "kind": kind, "depth": depth, "trial": seed}
        for kind, depths, chosen in (
            (TWO, config.depths, seeds),
            *((kind, config.one_depths, _from(few, config.one_seeds)) for kind in ONE),
        )
        for depth in sorted(depths, reverse=True)
        for seed in chosen
    ]
    most = max(config.units)
    states = [
        *(("random", u, f"{s:g} Xavier") for u in config.units for s in config.scales),
        *(("trained", most, f"step {step}") for step in config.steps),
        *(("limit", most, f"{s:g} Xavier") for s in config.small),
    ]
    return digits + [
        {"task": task, "units": units, "state": state, "trial": seed}
        for task, units, state in states
        for seed in _from(few, config.n_random)
    ]


def _from(seed: int, count: int) -> range:
    return range(seed, seed + count)
