"""Singular values of matrices, pools and networks."""

from typing import Any

import numpy as np

from theodolite import networks
from theodolite.core import Cell, Row, Rows, TwoBlockBlueprint, named_rows, stream

from ..shared.reads import SHARES
from ..shared.spectra import curve_rows, descend, few_images, loss_rows, spectrum_rows
from .config import KINDS, Config

EPS = float(np.finfo(np.float64).eps)
# Channels and sides of what enters the skip of the second block, and its stride.
CHANNELS, SIDE, STRIDE = (5, 20), 12, 3


def pools() -> Rows:
    """Measure pools by themselves, and the maps of the second block's skip."""
    import torch
    from torch import nn

    rows: list[Row] = []
    for stride in (2, 3, 4):
        values = singular_values(nn.AvgPool2d(stride), 1, 12)
        rows += _ends("pool", values, stride=stride)
    # The commonest pool that overlaps: three by three pixels, every second one.
    overlapping = nn.AvgPool2d(3, 2, 1, count_include_pad=True)
    rows += _ends("overlapping", singular_values(overlapping, 1, 12), stride=2)
    torch_maps = {
        "average": networks.AverageSkip(*CHANNELS, stride=STRIDE),
        "haar": networks.HaarSkip(*CHANNELS, stride=STRIDE),
    }
    for name, skip in torch_maps.items():
        values = singular_values(skip.to(torch.float64), CHANNELS[0], SIDE)
        rows += _counts(name, values)
    # One detail beside the average, from 1 channel to 2 at stride 2.
    one = singular_values(networks.HaarSkip(1, 2, stride=2), 1, 6)
    return Rows([*rows, *_counts("one_detail", one)])


def singular_values(apply: Any, channels: int, side: int) -> np.ndarray:
    """Return all singular values of a linear map of square images, ascending."""
    import torch

    size = channels * side**2
    units = torch.eye(size, dtype=torch.float64).reshape(size, channels, side, side)
    with torch.no_grad():
        matrix = apply(units).flatten(1)
    return np.sort(torch.linalg.svdvals(matrix).numpy())


def _ends(name: str, values: np.ndarray, **labels: Any) -> list[Row]:
    error = EPS * len(values) * float(values[-1])
    ends = {f"{name}_least": values[0], f"{name}_most": values[-1]}
    return named_rows(ends, error, **labels)


def _counts(name: str, values: np.ndarray) -> list[Row]:
    """Count singular values that are 1, that are 0, and all."""
    numbers = {
        "ones": np.sum(np.abs(values - 1) < 1e-9),
        "zeros": np.sum(np.abs(values) < 1e-9),
        "all": len(values),
    }
    return [
        {"quantity": f"skip_{key}", "map": name, "value": int(v), "error": 0.0}
        for key, v in numbers.items()
    ]


def measure(config: Config, cell: Cell) -> Rows:
    """Measure one network, matrix, or the pools."""
    if cell["part"] == "pools":
        return pools()
    if cell["part"] == "matrix":
        return _matrix(config.size, cell["trial"])
    return _network(config, cell)


def _matrix(size: int, trial: int) -> Rows:
    """Return singular values of a random matrix, and of it plus the identity."""
    drawn = stream(trial, "matrix").uniform(-1, 1, size=(size, size)) / np.sqrt(size)
    rows: list[Row] = []
    for shift in (0.0, 1.0):
        values = np.linalg.svd(drawn + shift * np.eye(size), compute_uv=False)[::-1]
        error = EPS * size * float(values[-1])
        parts = np.array_split(values, SHARES)
        for i, part in enumerate(parts, start=1):
            share = {"matrix_share": part.mean()}
            rows += named_rows(share, error, shift=shift, share=i)
        ends = {"low_end": values[0], "high_end": values[-1]}
        rows += named_rows(ends, error, shift=shift)
    return Rows(rows)


def _network(config: Config, cell: Cell) -> Rows:
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
    descent = descend(
        network,
        drawn.images,
        drawn.labels,
        rate=config.rate,
        steps=steps,
        spectra_at=at[part],
        samples=config.block_samples,
        parameters_at=config.parameters_at if part == "figure" else (),
    )
    rows = [*spectrum_rows(descent), *loss_rows(descent, tuple({10, steps}))]
    if part == "figure":
        rows += curve_rows(descent)
        eps = float(np.finfo(np.float32).eps)
        ratios = descent.slopes / descent.losses[:-1]
        for step, ratio in enumerate(ratios):
            rows += named_rows({"ratio": ratio}, 1000 * eps * ratio, step=step)
    return Rows(rows)
