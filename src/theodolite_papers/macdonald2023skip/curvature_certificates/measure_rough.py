"""Slopes, costs and normalised layers at the edge of being Lipschitz."""

import math
from typing import Any

import numpy as np

from theodolite.core import AffineLayer, Row, SystemBlueprint, named_rows, stream

from .config import DISTANCES, GATES, RATES, SCALES, VARIANCES, Config

TINY = 1e-10


def roughness(config: Config) -> list[Row]:
    """Return rows of nonlinearities, costs, batch norms and plain weights."""
    rows = [*_slopes(), *_cycles()]
    for trial in config.seeds:
        rows += _steepest(config, trial)
        rows += _costs(config, trial)
        rows += _batch_norms(config, trial)
        rows += _plain(config, trial)
    return rows


def _slope(activation: str, z: np.ndarray) -> np.ndarray:
    import torch

    from theodolite.networks import Nonlinearity

    point = torch.tensor(z, requires_grad=True)
    (found,) = torch.autograd.grad(Nonlinearity(activation)(point).sum(), point)
    return found.numpy()


def _slopes() -> list[Row]:
    """Compare slopes near zero with the one at zero."""
    rows: list[Row] = []
    for name in ("three_halves", "tanh"):
        h = np.array(DISTANCES)
        away = np.abs(_slope(name, h) - _slope(name, 0 * h)) / h
        for distance, quotient in zip(DISTANCES, away, strict=True):
            labels = {"activation": name, "distance": distance}
            rows += named_rows({"quotient": quotient}, 1e-7 * (1 + quotient), **labels)
        if name == "three_halves":
            exponent = np.log(away[-1] / away[-2]) / np.log(h[-1] / h[-2])
            rows += named_rows({"quotient_exponent": exponent}, 1e-6)
    return rows


def _steepest(config: Config, trial: int) -> list[Row]:
    """Sample the steepest change of slope of each smooth nonlinearity."""
    rng = stream(config.seed, "slopes", trial)
    rows: list[Row] = []
    for gate in GATES:
        z = rng.normal(scale=2.0, size=2000)
        w = z + rng.normal(size=2000) * 10 ** rng.uniform(-4, 0, size=2000)
        steep = np.abs(_slope(gate, z) - _slope(gate, w)) / np.abs(z - w)
        found = {"steepest": steep.max()}
        rows += named_rows(found, 1e-8, trial=trial, activation=gate)
    return rows


def _cycles() -> list[Row]:
    """Descend on |z|^(3/2) at fixed rates, and see where it ends."""
    rows: list[Row] = []
    for rate in RATES:
        z = 1.0
        for _ in range(20_000):
            z -= rate * 1.5 * math.copysign(math.sqrt(abs(z)), z)
        after = z - rate * 1.5 * math.copysign(math.sqrt(abs(z)), z)
        error = abs(abs(z) - abs(after)) + 1e-15
        rows += named_rows({"amplitude": abs(z)}, error, rate=rate)
    return rows


def _costs(config: Config, trial: int) -> list[Row]:
    """Gradients of two costs on a sublevel set, over what bounds them there."""
    rng, level = stream(config.seed, "costs", trial), 3.0
    z, w = (rng.normal(scale=2.0, size=(2000, 4)) for _ in range(2))

    def classes(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        top = a.max(1, keepdims=True)
        mass = np.exp(a - top)
        share = mass / mass.sum(1, keepdims=True)
        return -np.log(share[:, 0]), share - np.eye(4)[0]

    def square(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (a**2).sum(1) / 2, a

    rows: list[Row] = []
    for name, cost, bound, constant in (
        ("cross_entropy", classes, np.sqrt(2.0), 0.5),
        ("square", square, np.sqrt(2 * level), 1.0),
    ):
        (value, slope), (other, there) = cost(z), cost(w)
        kept = (value <= level) & (other <= level)
        moved = np.linalg.norm(slope - there, axis=1) / np.linalg.norm(z - w, axis=1)
        found = {
            "cost_gradient_ratio": np.linalg.norm(slope[kept], axis=1).max() / bound,
            "cost_constant_ratio": moved[kept].max() / constant,
        }
        rows += named_rows(found, TINY, trial=trial, cost=name)
    return rows


def _batch_norms(config: Config, trial: int) -> list[Row]:
    """Jacobian of a batch norm behind weights along the data's least variance."""
    import torch

    rng, features, count = stream(config.seed, "norms of norms", trial), 2, 8
    drawn = rng.normal(size=(features, count))
    drawn -= drawn.mean(1, keepdims=True)
    whole, _, right = np.linalg.svd(drawn, full_matrices=False)
    rows: list[Row] = []
    for variance in VARIANCES:
        x = np.sqrt(count) * whole @ np.diag([1.0, np.sqrt(variance)]) @ right
        weight = torch.tensor(1e6 * whole[:, 1])

        def run(batch: Any, row: Any = weight) -> Any:
            y = row @ batch
            return torch.nn.functional.batch_norm(
                y[:, None], None, None, training=True, eps=1.0
            )[:, 0]

        jacobian: Any = torch.autograd.functional.jacobian(run, torch.tensor(x))
        norm = float(np.linalg.norm(jacobian.numpy().reshape(count, -1), 2))
        found = {"norm_jacobian": norm, "norm_jacobian_root": norm * np.sqrt(variance)}
        rows += named_rows(found, 1e-8, trial=trial, variance=variance)
    last, before = (row["value"] for row in rows[-2:-5:-2])
    exponent = np.log(last / before) / np.log(VARIANCES[-1] / VARIANCES[-2])
    return [*rows, *named_rows({"norm_exponent": exponent}, 1e-7, trial=trial)]


def _plain(config: Config, trial: int) -> list[Row]:
    """Hessian norms of two plain layers, as their weights grow."""
    import torch

    from theodolite.instruments import HalfSquareLoss, hessian
    from theodolite.networks import build

    rng = stream(config.seed, "plain", trial)
    plan = SystemBlueprint(
        inputs=3, layers=(AffineLayer(into=3, out=3), AffineLayer(into=3, out=2))
    )
    batch = tuple(torch.tensor(rng.normal(size=(3, n))) for n in (3, 2))
    rows: list[Row] = []
    for scale in SCALES:
        network = build(plan, seed=trial)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(scale)
        found = hessian(network, batch, loss=HalfSquareLoss(), norm_mode="batch")
        norm = float(np.linalg.norm(found.matrix, 2))
        rows += named_rows({"plain_norm": norm}, TINY * norm, trial=trial, scale=scale)
    return rows
