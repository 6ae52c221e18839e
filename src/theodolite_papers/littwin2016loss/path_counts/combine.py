"""The model's chain from paths to the expected output, at measured weights."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import Row, Rows, named_rows
from theodolite.theory import PathModel

from ..shared.rows import EPS
from .config import GATE, Config
from .measure import coin_means, listed, run


def combine(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Compare Eqs 2, 10 and 13 with sums over paths and over states of gates."""
    network = cell["network"]
    if network not in ("coins", "plain_coins", "cyclic", "residual"):
        return Rows()
    plan, weights, x, seen = run(config, network, cell["depth"], cell["trial"])
    if network in ("cyclic", "residual"):
        model = PathModel(blueprint=plan, weights=weights, gate=GATE)
        rows = named_rows(
            {f"{name}_holds": one.holds for name, one in model.assumptions.items()}, 0.0
        )
        if network == "cyclic":
            rows += _chain(model, x, listed(plan, seen))
        return Rows(rows)
    paths, truth = listed(plan, seen), coin_means(plan, x, seen)
    free = np.stack([paths.terms(point, gated=False) for point in x])
    scale = np.abs(free).sum(axis=1)
    if plan.skip:
        model = PathModel(blueprint=plan, weights=weights, gate=GATE)
        average = model.mean_terms(x).sum(axis=1)
    else:
        average = GATE**plan.depth * free.sum(axis=1)
    gaps = {
        "mean_gap": _gap(truth, average, scale),
        "one_chance_gap": _gap(truth, GATE * free.sum(axis=1), scale),
    }
    return Rows(named_rows(gaps, EPS * len(paths)))


def _chain(model: PathModel, x: np.ndarray, paths: Any) -> list[Row]:
    """Compare Eq 10 and Eq 13 with sums over paths, length by length."""
    depth, inputs = model.blueprint.depth, model.blueprint.inputs
    weighted = np.stack([GATE**paths.length * paths.terms(p, gated=False) for p in x])
    truth = np.stack(
        [np.bincount(paths.length, one, depth + 1)[1:] for one in weighted]
    )
    scale = np.abs(weighted).sum(axis=1)[:, None]
    closed = model.approximate_terms(x)
    gaps = {
        "mean_terms_gap": _gap(truth, model.mean_terms(x), scale),
        "approximate_gap": _gap(truth, closed, scale),
        "unnormalised_gap": _gap(truth, closed * np.sqrt(inputs), scale),
    }
    return named_rows(gaps, EPS * len(paths))


def _gap(first: np.ndarray, second: np.ndarray, scale: np.ndarray) -> float:
    return float((np.abs(first - second) / scale).max())
