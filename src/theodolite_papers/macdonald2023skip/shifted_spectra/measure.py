"""Singular values of matrices, pools and networks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite import networks
from theodolite.core import Row, Rows, TwoBlockBlueprint, stream

from ..shared.few_images import few_images
from ..shared.shares import SHARES
from ..shared.spectra import descend, loss_rows, spectrum_rows
from .config import KINDS, Config
from .measure_pools import pools

EPS = float(np.finfo(np.float64).eps)


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one network, matrix, or the pools."""
    if cell["part"] == "pools":
        return pools()
    if cell["part"] == "matrix":
        return _matrix(config.size, cell["trial"])
    return _network(config, cell)


def _matrix(size: int, trial: int) -> Rows:
    """Singular values of one random matrix, and of the same plus the identity."""
    drawn = stream(trial, "matrix").uniform(-1, 1, size=(size, size)) / np.sqrt(size)
    rows: list[Row] = []
    for shift in (0.0, 1.0):
        values = np.linalg.svd(drawn + shift * np.eye(size), compute_uv=False)[::-1]
        error = EPS * size * float(values[-1])
        labels = {"shift": shift, "error": error}
        parts = np.array_split(values, SHARES)
        rows += [
            {"quantity": "matrix_share", "share": i + 1, "value": part.mean(), **labels}
            for i, part in enumerate(parts)
        ]
        for name, value in (("low_end", values[0]), ("high_end", values[-1])):
            rows.append({"quantity": name, "value": float(value), **labels})
    return Rows(rows)


def _network(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train one network of figure 2, or one from another start."""
    part, trial = cell["part"], cell["trial"]
    plan = TwoBlockBlueprint(
        **KINDS[cell["kind"]],
        init=cell.get("init", "default"),
        init_scale=cell.get("gain", 1.0),
    )
    network = networks.build(plan, seed=trial, device=config.device)
    drawn = few_images(
        config.dataset, config.samples, seed=trial, standardised=part != "script"
    )
    at = {"figure": config.spectra_at, "script": config.script_at, "start": (0,)}
    steps = config.start_steps if part == "start" else config.steps
    found = descend(
        network,
        drawn.images,
        drawn.labels,
        rate=config.rate,
        steps=steps,
        spectra_at=at[part],
        samples=config.block_samples,
    )
    rows = [*spectrum_rows(found), *loss_rows(found, tuple({10, steps}))]
    if part == "figure":
        eps = float(np.finfo(np.float32).eps)
        rows += [
            {"quantity": "loss", "step": i, "value": float(v), "error": 100 * eps}
            for i, v in enumerate(found.losses)
        ]
    return Rows(rows)
