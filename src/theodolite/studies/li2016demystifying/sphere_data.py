"""Points on the sphere that theorem 1 is tried on, and the torch side of its units."""

from collections.abc import Callable
from typing import Any

import numpy as np

from theodolite import networks
from theodolite.core import Blueprint, stream
from theodolite.theory import minimum_distance

Propagate = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]

# Degrees of longitude and latitude: the first sample has two others on its way.
_DETOUR_X = ((-65, 0), (-25, 4), (20, -7), (5, 42))
_DETOUR_Y = ((65, 0), (-160, 35), (160, -40), (120, 30))


def points(case: str, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Return samples and labels of a case: ``basis``, ``detour`` or ``m,d``."""
    if case == "basis":
        x = np.array([[1.0, 1.0, 1.0], [0.6, 0.0, 0.8], [-0.6, 0.8, 0.0]])
        return unit_rows(x), np.eye(3)
    if case == "detour":
        return on_globe(_DETOUR_X), on_globe(_DETOUR_Y)
    m, d = (int(part) for part in case.split(","))
    rng = stream(trial, "sphere", m, d)
    while True:
        x, y = (unit_rows(rng.normal(size=(m, d))) for _ in range(2))
        if minimum_distance(np.concatenate([x, y])) > 0.05:
            return x, y


def close_pair(rho: float, length: float, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two samples, a distance apart, and labels on arcs of a given length."""
    turn, _ = np.linalg.qr(stream(trial, "close_pair").normal(size=(3, 3)))
    a, b, c = turn.T
    angle = 2 * np.arcsin(rho / 2)
    near = np.cos(angle) * a + np.sin(angle) * c
    x = np.stack([a, near])
    y = np.stack([np.cos(length) * a + np.sin(length) * b, -c])
    return unit_rows(x), unit_rows(y)


def on_globe(places: tuple[tuple[float, float], ...]) -> np.ndarray:
    """Return unit vectors at degrees of longitude and latitude."""
    lon, lat = np.radians(np.array(places, dtype=float)).T
    found = [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
    return unit_rows(np.stack(found, axis=1))


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Divide each row by its norm."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def torch_network(
    first: np.ndarray, second: np.ndarray, bias: np.ndarray, device: str
) -> Any:
    """Build the network of Eq 3 with given weights."""
    plan = Blueprint(
        width=first.shape[1], depth=2 * len(first), mid="relu", bias=True, init="zero"
    )
    network = networks.build(plan, seed=0, device=device)
    for unit, *parts in zip(network.units, first, second, bias, strict=True):
        _load(unit, *parts)
    return network


def _load(unit: Any, first: np.ndarray, second: np.ndarray, bias: np.ndarray) -> None:
    import torch

    layers = unit.layers
    with torch.no_grad():
        layers[0].weight.copy_(torch.from_numpy(first))
        layers[1].weight.copy_(torch.from_numpy(second))
        layers[0].bias.copy_(torch.from_numpy(bias))


def outputs(network: Any, x: np.ndarray) -> np.ndarray:
    """Run a network on samples."""
    import torch

    device = next(network.parameters()).device
    with torch.no_grad():
        return network(torch.tensor(x, device=device)).cpu().numpy()


def run_chain(
    first: np.ndarray, second: np.ndarray, bias: np.ndarray, x: np.ndarray, device: str
) -> np.ndarray:
    """Run many units through one torch unit: the same sums, without a module each."""
    step = torch_propagate(x.shape[1], device, [])
    for unit in zip(first, second, bias, strict=True):
        x = step(x, *unit)
    return x


def torch_propagate(width: int, device: str, seen: list[np.ndarray]) -> Propagate:
    """Return torch's own step through a unit, which notes the samples it leaves."""
    shape = (1, width, width)
    single = torch_network(
        np.zeros(shape), np.zeros(shape), np.zeros((1, width)), device
    )

    def propagate(
        x: np.ndarray, first: np.ndarray, second: np.ndarray, bias: np.ndarray
    ) -> np.ndarray:
        _load(single.units[0], first, second, bias)
        seen.append(outputs(single, x))
        return seen[-1]

    return propagate
