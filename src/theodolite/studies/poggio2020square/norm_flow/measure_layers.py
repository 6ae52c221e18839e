"""Gradient descent on the norms of many layers, outputs held."""

import numpy as np

from theodolite.core import Row
from theodolite.studies.poggio2020square.norm_flow.config import (
    LABELS,
    LAYERED,
    OUTPUTS,
    START,
    Config,
)
from theodolite.studies.poggio2020square.shared.rows import limit, named


def layered(config: Config) -> list[Row]:
    """Descend on the norms of every number of layers from every start at once."""
    cases = [(layers, start) for layers in config.layers for start in config.starts]
    rates = config.rates
    found = [_descend(cases, rate) for rate in rates]
    rows: list[Row] = []
    for k, (layers, start) in enumerate(cases):
        value, error = limit([times[k] for times, _ in found])
        rows += named({"transient": value}, error, layers=layers, start=start)
    for layers, time in LAYERED:
        place = cases.index((layers, START))
        at = [
            norms[round(time / r), place]
            for r, (_, norms) in zip(rates, found, strict=True)
        ]
        value, error = limit([float(v) for v in at])
        rows += named({"layered_norm": value}, error, layers=layers, time=time)
    return rows


def _descend(
    cases: list[tuple[int, float]], rate: float
) -> tuple[list[float], np.ndarray]:
    """Return when each case reaches half of its rest, and its path."""
    import torch

    deepest = max(layers for layers, _ in cases)
    used = torch.tensor([[k < layers for k in range(deepest)] for layers, _ in cases])
    first = torch.tensor([start ** (1 / layers) for layers, start in cases])
    norms = torch.where(used, first[:, None].double(), 1.0).requires_grad_()
    f, y = (torch.tensor(v, dtype=torch.float64) for v in (OUTPUTS, LABELS))
    half = float(y @ f / (f @ f)) / 2
    path = []
    for _ in range(round(100 / rate)):
        product = norms.prod(1)
        path.append(product.detach().numpy().copy())
        if (path[-1] > half).all() and len(path) > 2.0 / rate:
            break
        loss = ((product[:, None] * f - y) ** 2).sum()
        (gradient,) = torch.autograd.grad(loss, norms)
        with torch.no_grad():
            norms -= rate * gradient * used
    found = np.array(path)
    return [_crossing(found[:, k], half, rate) for k in range(len(cases))], found


def _crossing(path: np.ndarray, level: float, rate: float) -> float:
    after = int(np.argmax(path > level))
    low, high = path[after - 1], path[after]
    return rate * (after - 1 + float((level - low) / (high - low)))
