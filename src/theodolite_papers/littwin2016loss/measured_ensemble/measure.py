"""Path ensembles and lesions of built networks."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from theodolite import networks, paths
from theodolite.core import Row, Rows, named_rows

from ..shared.rows import EPS, by_length
from .config import Config, blueprint, inputs


@lru_cache(maxsize=1)  # `combine` needs it right after, in the same cell
def ensemble(config: Config, key: tuple[tuple[str, Any], ...]) -> Any:
    """Return the network of a cell, its inputs and its path ensemble."""
    import torch

    cell = dict(key)
    plan = blueprint(cell["scale"], cell["width"], cell["depth"])
    network = networks.build(plan, seed=cell["trial"], device=config.device)
    x = torch.as_tensor(inputs(config, plan.width, cell["trial"])).to(config.device)
    loss = (lambda model, batch: model(batch).sum()) if _is_unit(cell) else None
    reading = paths.path_ensemble(network, x, norm_mode="eval", loss=loss)
    return network, x, reading


def open_gates(network: Any, x: Any) -> float:
    """Return the share of gates that are open, of all layers with a skip."""
    import torch

    shares: list[float] = []
    hooks = [
        gate.register_forward_hook(
            lambda _, __, out: shares.append(float((out > 0).double().mean()))
        )
        for gate in network.gates[1:]
    ]
    with torch.no_grad():
        network(x)
    for hook in hooks:
        hook.remove()
    return float(np.mean(shares))


def _is_unit(cell: Mapping[str, Any]) -> bool:
    """Return whether a network has the paper's scale, which gets more readings."""
    return cell["scale"] == "unit"


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure the path ensemble of one network, and lesions of some networks."""
    network, x, reading = ensemble(config, tuple(cell.items()))
    if cell["told"] == "paths":
        return _single(network, x)
    rows: list[Row] = []
    for part in reading.parts:
        rows += _moments(reading.of(part), cell["depth"], part)
    output, opened = reading.of("output"), open_gates(network, x)
    error = output["beta_error"]
    rows += named_rows({"open_gates": opened}, EPS)
    rows += named_rows({"beta_less_open": output["beta"] - opened}, error)
    rows += by_length("share", reading.share[0], EPS * cell["depth"], part="output")
    rows += named_rows({"gain_beta": reading.predicted_beta}, 1e-12)
    rows += named_rows({"residual": reading.residual.max()}, EPS)
    if cell["width"] == config.width and _is_unit(cell):
        rows += _lesions(network, x, cell["depth"] - 1)
    return Rows({**row, "norm_mode": str(reading.norm_mode)} for row in rows)


def _single(network: Any, x: Any) -> Rows:
    """Return rows of every path of a network with few layers."""
    reading = paths.unravel(network, x, norm_mode="eval")
    labels = {"quantity": "path_energy", "norm_mode": str(reading.norm_mode)}
    energies = zip(reading.paths, reading.energy, reading.energy_error, strict=True)
    return Rows(
        {**labels, "path": path, "value": float(value), "error": float(error)}
        for path, value, error in energies
    )


def _moments(held: Mapping[str, Any], depth: int, part: str) -> list[Row]:
    """Return moments of path lengths, which count the first layer too."""
    mean, spread = held["effective_depth"] + 1, held["spread"]
    error, wide = held["effective_depth_error"], held["spread_error"]
    numbers = {
        "length": (mean, error),
        "length_share": (mean / depth, error / depth),
        "variance": (spread**2, 2 * spread * wide),
        "spread_share": (spread / depth, wide / depth),
        "beta": (held["beta"], held["beta_error"]),
        "distance": (held["distance"], EPS * depth),
        "peak_share": ((float(np.argmax(held["share"])) + 1) / depth, EPS),
    }
    return named_rows(numbers, part=part)


def _lesions(network: Any, x: Any, count: int) -> list[Row]:
    """Return the effect of deleting each branch, one at a time."""
    reading = paths.lesion(network, x, norm_mode="eval")
    rows = named_rows({"deletion_gap": reading.residual[0]}, EPS * count)
    true, frozen = reading.true_change.mean(), reading.frozen_change.mean()
    errors = reading.true_change_error.mean(), reading.frozen_change_error.mean()
    rows += named_rows({"true_change": true}, float(errors[0]))
    rows += named_rows({"frozen_change": frozen}, float(errors[1]))
    # Both use the same inputs, so that their errors are correlated.
    off = float(abs(errors[0] / frozen - true * errors[1] / frozen**2))
    return rows + named_rows({"true_over_frozen": true / frozen}, off)
