"""What needs no theory of systems: functions, matrices and autodiff."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import MeasurementError, Row, Rows, named_rows, stream

from .config import Config, Instance, instance
from .measure_convex import quadratics
from .measure_rough import roughness

TINY = 1e-12


def products(config: Config) -> list[Row]:
    """Return rows of lemmas B.1, B.4 and B.5."""
    rows = _tall()
    for trial in config.seeds:
        drawn = instance(config, trial)
        rows += _lipschitz(config, trial)
        rows += _blocks(drawn, trial)
        rows += _matrices(config, trial)
        rows += _first_layer(drawn, trial)
    return rows


def network_of(drawn: Instance, seed: int, factor: float = 1.0) -> Any:
    """Build an instance's network with its weights scaled."""
    import torch

    from theodolite.networks import build

    network = build(drawn.plan, seed=seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(factor * drawn.scale)
    return network


def _lipschitz(config: Config, trial: int) -> list[Row]:
    """Three matrices that move with a vector: their product against lemma B.1."""
    rng = stream(config.seed, "products", trial)
    shapes = [(2, 3), (3, 3), (3, 2)]
    fixed, moving = ([rng.normal(size=s) for s in shapes] for _ in range(2))
    waves = rng.normal(size=(3, 4))
    bounds = [
        np.linalg.norm(a, 2) + np.linalg.norm(b, 2)
        for a, b in zip(fixed, moving, strict=True)
    ]
    constants = [
        np.linalg.norm(b, 2) * np.linalg.norm(c)
        for b, c in zip(moving, waves, strict=True)
    ]
    constant = sum(
        c * np.prod(bounds) / b for c, b in zip(constants, bounds, strict=True)
    )

    def product(theta: np.ndarray) -> np.ndarray:
        found = np.eye(2)
        for a, b, c in zip(fixed, moving, waves, strict=True):
            found = found @ (a + np.sin(c @ theta) * b)
        return found

    stretch = size = 0.0
    for _ in range(100):
        here = rng.normal(size=4) * 2
        there = here + rng.normal(size=4) * 10 ** rng.uniform(-3, 0)
        gap = np.linalg.norm(product(here) - product(there), 2)
        stretch = max(stretch, gap / np.linalg.norm(here - there))
        size = max(size, np.linalg.norm(product(here), 2))
    found = {
        "product_constant_ratio": stretch / constant,
        "product_bound_ratio": size / np.prod(bounds),
    }
    return named_rows(found, TINY, trial=trial)


def _blocks(drawn: Instance, trial: int) -> list[Row]:
    """Least singular values of residual blocks, over one less the branch's norm."""
    import torch

    network = network_of(drawn, trial)
    z = torch.tensor(drawn.inputs[:1])
    rows: list[Row] = []
    for place, layer in enumerate(network.layers):
        if place:
            whole, branch = (_jacobian(part, z) for part in (layer, layer.branch))
            least = np.linalg.svd(whole, compute_uv=False)[-1]
            norm = np.linalg.norm(branch, 2)
            found = {"skip_slack": least - (1 - norm), "branch_norm": norm}
            rows += named_rows(found, TINY, trial=trial, layer=place)
        z = layer(z).detach()
    return rows


def _matrices(config: Config, trial: int) -> list[Row]:
    """Add a matrix of norm below one to a map whose singular values are 1."""
    rng = stream(config.seed, "skips", trial)
    turned = np.linalg.qr(rng.normal(size=(5, 5)))[0][:4]
    branch = rng.normal(size=(4, 5))
    branch *= rng.uniform() / np.linalg.norm(branch, 2)
    worst = -np.linalg.norm(branch, 2) * turned  # reaches the bound
    rows: list[Row] = []
    for name, one in (("random", branch), ("opposed", worst)):
        least = np.linalg.svd(turned + one, compute_uv=False)[-1]
        norm = np.linalg.norm(one, 2)
        found = {"matrix_slack": least - (1 - norm)}
        rows += named_rows(found, TINY, trial=trial, branch=name)
    return rows


def _jacobian(module: Any, z: Any) -> np.ndarray:
    import torch

    found: Any = torch.autograd.functional.jacobian(module, z)
    return found.detach().numpy().reshape(-1, z.numel())


def _first_layer(drawn: Instance, trial: int) -> list[Row]:
    """Df and DP of the first layer, by autodiff, with no more samples than inputs."""
    import torch

    layer = network_of(drawn, trial).layers[0]
    x = torch.tensor(drawn.inputs)
    shape = tuple(layer.weight.shape)

    def run(weight: Any) -> tuple[Any, Any]:
        held = {"weight": weight}
        out = torch.func.functional_call(layer, held, (x,))
        matrix = weight * torch.rsqrt(layer.layer.eps + weight.square())
        return out, matrix

    given = layer.weight.detach()
    both: Any = torch.autograd.functional.jacobian(run, given)
    whole, own = (part.numpy().reshape(-1, given.numel()) for part in both)
    parts = [np.linalg.svd(a, compute_uv=False)[-1] for a in (whole, own, x.numpy())]
    if len(x) > shape[1]:
        raise MeasurementError(
            f"{len(x)} samples of {shape[1]} inputs came to a lemma for no more "
            "samples than inputs: draw fewer"
        )
    out, into = shape
    found = {
        "affine_slack": parts[0] - parts[1] * parts[2],
        "matrix_rows_printed": own.shape[0] - into * len(x),
        "matrix_rows": own.shape[0] - out * into,
    }
    return named_rows(found, TINY, trial=trial)


def _tall() -> list[Row]:
    """One input, two equal samples, and a matrix of one entry w₁ + 2w₂."""
    samples, slope = np.array([[1.0, 1.0]]), np.array([[1.0, 2.0]])
    whole = samples.T @ slope
    values = [np.linalg.svd(a, compute_uv=False)[-1] for a in (whole, samples, slope)]
    return named_rows({"tall_slack": values[0] - values[1] * values[2]}, TINY)


_PARTS = {"quadratics": quadratics, "roughness": roughness, "products": products}


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one part; parts that need theory have their rows in ``meet``."""
    part = _PARTS.get(cell["part"])
    return Rows([] if part is None else part(config))
