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
    """Depths, rates and data of figures 7 and 8.

    Attributes:
        dataset: Named dataset, whitened.
        samples: Samples used, spread evenly over the dataset; 0 for all.
        width: Principal components kept.
        mid: Activation between two matrices of a unit.
        networks: Which networks are trained.
        depths: Weight matrices; a network is trained at those its units divide.
        beside: Networks that are shown beside those of the paper, and not judged.
        beside_depths: Depths of those.
        steps: Updates per run.
        lowest: Decade of the lowest rate.
        highest: Decade of the highest rate.
        rungs: Rates per decade.
        scouts: Seeds that first look for the optimum on every ``stride``-th rung; 0
            trains every seed at every rate.
        stride: Rungs between the scouts' rates.
        reach: Rungs on either side of the optimum that all seeds are trained at.
        dtype: Precision of the training.
    """

    dataset: str = "mnist5k"
    samples: int = 0
    width: int = 10
    mid: str = "identity"
    networks: tuple[str, ...] = ()
    depths: tuple[int, ...] = ()
    beside: tuple[str, ...] = ()
    beside_depths: tuple[int, ...] = ()
    steps: int = 1000
    lowest: int = -4
    highest: int = 1
    rungs: int = 10
    scouts: int = 0
    stride: int = 4
    reach: int = 4
    dtype: str = "float64"

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
        """What is plotted: the loss above the optimum where that is known."""
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
