"""Critical points of sampled glasses, all of them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Rows, SpinGlassBlueprint, named_rows

from .config import LEVEL, MIXTURES, Config


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Find the critical points of a glass, and count them by index and energy."""
    width, mixture = cell["width"], MIXTURES[cell["mixture"]]
    plan = SpinGlassBlueprint(width=width, mixture=mixture)
    glass = networks.build(plan, seed=cell["trial"], device=config.device)
    reading = instruments.critical_points(
        glass,
        dimension=width,
        radius=math.sqrt(width),
        antipodal=len(mixture) == 1,
        seed=cell["trial"],
    )
    level = LEVEL * width
    rows = named_rows(
        {
            "total": reading.total,
            "euler": reading.euler,
            "flat_gap": abs(
                _flat_euler(glass, reading.points) - reading.characteristic
            ),
            "below": reading.below(level).sum(),
        },
        reading.missing,
        status=str(reading.status),
    )
    by_index = [
        {"quantity": "count", "index": k, "value": float(n), "error": reading.missing}
        for k, n in enumerate(reading.counts)
    ]
    return Rows(rows + by_index)


def _flat_euler(glass: Any, points: np.ndarray) -> int:
    """Return the alternating sum over indices of the Hessian in Euclidean space."""
    import torch

    rows = torch.from_numpy(points).requires_grad_()
    (slope,) = torch.autograd.grad(glass(rows).sum(), rows, create_graph=True)
    columns = [
        torch.autograd.grad(column.sum(), rows, retain_graph=True)[0]
        for column in slope.unbind(1)
    ]
    values = torch.linalg.eigvalsh(torch.stack(columns, dim=1))
    return int(((-1) ** (values < 0).sum(1)).sum())
