"""Depths, rates and data of figures 7 and 8.

Rates lie on a logarithmic ladder and are named by their rung: rung k is the rate
10^(k / rungs per decade).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import ConfigError
from theodolite.data import load, whiten
from theodolite.studies import StudyConfig

from ..whitened import whitened

# Plain networks have units of two as well: appendix B puts their ReLUs where those of
# 2-shortcut networks are. Shortcut networks start at a hundredth of Xavier weights, as
# in section 4.1.
NETWORKS: dict[str, dict[str, Any]] = {
    "xavier": {"shortcut": 2, "skip": False, "init": "xavier"},
    "orthogonal": {"shortcut": 2, "skip": False, "init": "orthogonal"},
    "one_shortcut": {"shortcut": 1, "init": "small"},
    "two_shortcut": {"shortcut": 2, "init": "small"},
    "three_shortcut": {"shortcut": 3, "init": "small"},
}


@dataclass(frozen=True, kw_only=True)
class RateConfig(StudyConfig):
    """Depths, rates and data of figures 7 and 8."""

    dataset: str = "mnist5k"  # named dataset, whitened
    samples: int = 0  # samples used, spread evenly over the dataset; 0 for all
    width: int = 10  # principal components kept
    mid: str = "identity"  # activation between two matrices of a unit
    networks: tuple[str, ...] = ()  # which networks are trained
    # Weight matrices; a network is trained at depths that its units divide.
    depths: tuple[int, ...] = ()
    # Networks that figures show beside the paper's, but no claim judges.
    beside: tuple[str, ...] = ()
    beside_depths: tuple[int, ...] = ()  # depths of those
    steps: int = 1000  # updates per run
    lowest: int = -4  # decade of the lowest rate
    highest: int = 1  # decade of the highest rate
    rungs: int = 10  # rates per decade
    # Seeds that first search for the optimum on every ``stride``-th rung ("scouts"); 0
    # trains every seed at every rate.
    scouts: int = 0
    stride: int = 4  # rungs between the scouts' rates
    reach: int = 4  # rungs on either side of the optimum that all seeds are trained at
    dtype: str = "float64"  # precision of the training

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.depths) < 3:
            raise ConfigError(
                f"depths {self.depths}: growth wants at least three; add some"
            )
        if not self.lowest < self.highest or self.rungs < 1:
            raise ConfigError(
                f"rates from 1e{self.lowest} to 1e{self.highest}, {self.rungs} a "
                "decade, leave nothing to choose from: try -4, 1 and 10"
            )

    @property
    def quantity(self) -> str:
        """The plotted quantity: the loss above the optimum, if the optimum is known."""
        return "excess" if self.mid == "identity" else "final_loss"

    @property
    def ladder(self) -> range:
        """All rungs."""
        return range(self.lowest * self.rungs, self.highest * self.rungs + 1)

    def rate(self, rung: int) -> float:
        """Return the rate of a rung."""
        return float(10.0 ** (rung / self.rungs))


def cells(config: RateConfig) -> list[dict[str, Any]]:
    """Return one cell per network and depth, the deepest first."""
    all_cells: list[dict[str, Any]] = [
        {"network": name, "depth": depth}
        for names, depths in (
            (config.networks, config.depths),
            (config.beside, config.beside_depths),
        )
        for depth in depths
        for name in names
        if depth % NETWORKS[name]["shortcut"] == 0
    ]
    return sorted(all_cells, key=lambda cell: -cell["depth"])


def inputs(config: RateConfig) -> tuple[np.ndarray, np.ndarray]:
    """Return the whitened data of a config."""
    if not config.samples:
        return whitened(config.dataset, config.width)
    dataset = load(config.dataset)
    some = np.linspace(0, len(dataset) - 1, config.samples).astype(int)
    flat = dataset.flat()[some]
    return whiten(flat, k=config.width).apply(flat), dataset.one_hot()[some]
