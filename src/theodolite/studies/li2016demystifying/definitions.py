r"""Definitions 1 and 2, Eqs 1 to 3, figure 1 and appendix B: what is studied at all.

Li et al. (2016), Demystifying ResNet. An n-shortcut network is a chain of units of n
matrices with activations before the first, between them and after the last, and the
identity added around; data is whitened to ten components. Each definition is written
out once more in NumPy and compared with the networks and data that all other studies
use.

Departures: none. Cost: seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite import networks
from theodolite.core import Blueprint, Row, Rows, stream
from theodolite.studies.li2016demystifying import (
    definitions_claims,
    definitions_figure,
)
from theodolite.studies.li2016demystifying.measuring import EPS
from theodolite.studies.li2016demystifying.whitened import whitened
from theodolite.studies.study import Drawing, Study, StudyConfig
from theodolite.theory import activation

# One activation at a place, all others the identity.
PLACES = ("pre", "mid", "post")
# Activations in another order than the definition's.
SWAPPED = {"pre": "mid", "mid": "post", "post": "pre"}


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Networks and data to compare.

    Attributes:
        dataset: Named dataset, whitened.
        width: Principal components kept.
        shortcuts: Matrices a unit.
        units: Units a network.
        samples: Random inputs a network.
    """

    dataset: str = "mnist5k"
    width: int = 10
    shortcuts: tuple[int, ...] = (1, 2, 3, 4)
    units: int = 3
    samples: int = 50


SMOKE = Config(n_seeds=2, dataset="digits")
QUICK = Config(n_seeds=5)
PAPER = Config(n_seeds=20, dataset="mnist")


def cells(config: Config) -> list[dict[str, Any]]:
    """One cell a trial, and one for the data."""
    trials = [{"task": "networks", "trial": seed} for seed in config.seeds]
    return [*trials, {"task": "data", "trial": config.seed}]


def predict(config: Config) -> Rows:
    """Parameters of each network, and the second moments of white data."""
    counts = [
        {
            "quantity": "parameters",
            "n": n,
            "value": float(n * config.units * config.width**2),
            "error": 0.0,
        }
        for n in config.shortcuts
    ]
    return Rows([*counts, {"quantity": "second_moment", "value": 1.0, "error": 0.0}])


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Compare networks with their definition, or describe the data."""
    if cell["task"] == "data":
        return Rows(_data(config))
    return Rows(row for n in config.shortcuts for row in _networks(config, n, cell))


def _networks(config: Config, n: int, cell: Mapping[str, Any]) -> list[Row]:
    import torch

    trial = cell["trial"]
    x = stream(trial, "definitions", n).normal(size=(config.samples, config.width))
    rows: list[Row] = []
    for place in PLACES:
        if place == "mid" and n == 1:
            continue  # a unit of one matrix has nothing between its matrices
        plan = Blueprint(
            width=config.width,
            depth=n * config.units,
            shortcut=n,
            init="xavier",
        ).with_(**{place: "tanh"})
        network = networks.build(plan, seed=trial)
        with torch.no_grad():
            built = network(torch.tensor(x)).numpy()
        weights = networks.get_weights(network)
        truth = _by_definition(plan, weights, x)
        moved = plan.with_(**{place: "identity", SWAPPED[place]: "tanh"})
        scale = float(np.abs(built).max())
        found = {
            "output": np.abs(built - truth).max() / scale,
            "output_elsewhere": np.abs(built - _by_definition(moved, weights, x)).max()
            / scale,
            "output_without_skip": np.abs(
                built - _by_definition(plan.with_(skip=False), weights, x)
            ).max()
            / scale,
        }
        error = EPS * plan.depth * config.width
        rows += [
            {"quantity": name, "n": n, "place": place, "value": value, "error": error}
            for name, value in found.items()
        ]
        count = sum(p.numel() for p in network.parameters())
        rows.append(
            {
                "quantity": "parameters",
                "n": n,
                "place": place,
                "value": float(count),
                "error": 0.0,
            }
        )
    return rows


def _by_definition(plan: Blueprint, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Write definitions 1 and 2 out, sample by sample in columns."""
    pre, mid, post = (activation(getattr(plan, place)) for place in PLACES)
    state = x.T
    for unit in np.split(weights, plan.units):
        branch = pre.value(state)
        for place, matrix in enumerate(unit):
            branch = matrix @ (mid.value(branch) if place else branch)
        branch = post.value(branch)
        state = state + branch if plan.skip else branch
    return state.T


def _data(config: Config) -> list[Row]:
    x, y = whitened(config.dataset, config.width)
    second = x.T @ x / len(x)
    found = {
        "whiteness_gap": np.abs(second - np.eye(config.width)).max(),
        "mean": np.abs(x.mean(axis=0)).max(),
        "label_norm_gap": np.abs(np.linalg.norm(y, axis=1) - 1).max(),
        "largest_norm": np.linalg.norm(x, axis=1).max(),
        "smallest_norm": np.linalg.norm(x, axis=1).min(),
    }
    error = EPS * len(x)
    return [
        {"quantity": name, "value": float(value), "error": error}
        for name, value in found.items()
    ]


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Parameter counts and whiteness."""
    rows: list[Row] = [
        {
            "label": f"parameters of a {row['n']}-shortcut network",
            "predicted": row["value"],
            "measured": float(
                measured.where(quantity="parameters", n=row["n"]).values().max()
            ),
            "error": 0.0,
        }
        for row in predicted.where(quantity="parameters")
    ]
    gap = measured.only(quantity="whiteness_gap")
    rows.append(
        {
            "label": "second moment of the whitened data, farthest from 1",
            "predicted": 1.0,
            "measured": 1.0 + gap["value"],
            "error": gap["error"],
        }
    )
    return rows


STUDY = Study(
    title="Definitions: n-shortcut networks, positions of activations, the data",
    summary=(
        "A unit of an $n$-shortcut network computes $x + \\sigma_{post}(W_n\\,"
        "\\sigma_{mid}(\\cdots W_1\\,\\sigma_{pre}(x)))$. The networks that every "
        "other study builds are compared with this formula written out, and the data "
        "with what appendix B asks of it."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=definitions_claims.CLAIMS,
    drawings=(
        Drawing(
            "positions",
            "Figure 1: a unit of a 2-shortcut network, with the three places of "
            "activations. Matrices are parameters, the upper arrow is the shortcut.",
            definitions_figure.draw,
        ),
    ),
    departures=(),
)
