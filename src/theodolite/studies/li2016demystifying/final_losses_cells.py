"""The networks of figures 7 and 8, cell by cell."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Blueprint, Row, Rows, estimate
from theodolite.data import load, whiten
from theodolite.studies.committed_run import COMMITTED, CommittedRun
from theodolite.studies.li2016demystifying.final_losses_config import RateConfig
from theodolite.studies.li2016demystifying.final_losses_judging import Losses
from theodolite.studies.li2016demystifying.final_losses_search import Search
from theodolite.studies.li2016demystifying.whitened import whitened
from theodolite.theory import moments

TRAINED = "trained"
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


def cells(config: RateConfig) -> list[dict[str, Any]]:
    """One cell a network and depth, the deepest first."""
    found: list[dict[str, Any]] = [
        {"source": TRAINED, "network": name, "depth": depth}
        for names, depths in (
            (config.networks, config.depths),
            (config.beside, config.beside_depths),
        )
        for depth in depths
        for name in names
        if depth % NETWORKS[name]["shortcut"] == 0
    ]
    return sorted(found, key=lambda cell: -cell["depth"])


def quantity(config: RateConfig) -> str:
    """Return what is plotted: loss above the optimum where that is known."""
    return "excess" if config.mid == "identity" else "final_loss"


def inputs(config: RateConfig) -> tuple[np.ndarray, np.ndarray]:
    """Return the whitened data of a config."""
    if not config.samples:
        return whitened(config.dataset, config.width)
    dataset = load(config.dataset)
    some = np.linspace(0, len(dataset) - 1, config.samples).astype(int)
    flat = dataset.flat()[some]
    return whiten(flat, k=config.width).apply(flat), dataset.one_hot()[some]


def train_cell(
    config: RateConfig,
    cell: Mapping[str, Any],
    data: tuple[np.ndarray, np.ndarray],
    *,
    strategy: str = "auto",
) -> Rows:
    """Train one network at all its rates on given data."""
    plan = Blueprint(
        width=config.width,
        depth=cell["depth"],
        mid=config.mid,
        **NETWORKS[cell["network"]],
    )
    if plan.shortcut == 1:
        plan = plan.with_(mid="identity")  # one matrix a unit leaves no middle
    floor = moments(*data).optimal_loss() if quantity(config) == "excess" else 0.0
    search = Search(config, plan, data, floor=floor, strategy=strategy)
    return Rows(search.run().rows(quantity(config)))


def measure(config: RateConfig, cell: Mapping[str, Any], run: CommittedRun) -> Rows:
    """Train one network at all its rates, or fetch the committed rows."""
    if cell["source"] == COMMITTED:
        return run.rows()
    return train_cell(config, cell, inputs(config))


def beside_optimum(losses: Losses, optimum: str, name: str) -> list[Row]:
    """Set a loss of theory beside the final loss of 2-shortcut networks, by depth."""
    best = losses.reference(optimum)
    floor = best if losses.quantity == "excess" else 0.0
    rows: list[Row] = []
    for depth in losses.depths("two_shortcut"):
        mean = estimate(10 ** losses.logs("two_shortcut", depth))
        rows.append(
            {
                "label": f"{name}, depth {depth}",
                "predicted": best,
                "measured": floor + mean.mean,
                "error": mean.stderr,
            }
        )
    return rows
