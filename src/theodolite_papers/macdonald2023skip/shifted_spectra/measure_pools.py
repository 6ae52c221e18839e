"""Singular values of average pools, of the paper's skip, and of isometries."""

from typing import Any

import numpy as np

from theodolite import networks
from theodolite.core import Row, Rows

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
    return [
        {"quantity": f"{name}_{end}", "value": float(v), "error": error, **labels}
        for end, v in (("least", values[0]), ("most", values[-1]))
    ]


def _counts(name: str, values: np.ndarray) -> list[Row]:
    """Count singular values that are 1, that are 0, and all."""
    found = {
        "ones": np.sum(np.abs(values - 1) < 1e-9),
        "zeros": np.sum(np.abs(values) < 1e-9),
        "all": len(values),
    }
    return [
        {"quantity": f"skip_{key}", "map": name, "value": int(v), "error": 0.0}
        for key, v in found.items()
    ]
