"""Measurements that need no theory: functions, matrices and autodiff."""

import math
from itertools import pairwise
from typing import Any

import numpy as np

from theodolite.core import (
    AffineLayer,
    Cell,
    MeasurementError,
    Row,
    Rows,
    SystemBlueprint,
    named_rows,
    stream,
)

from .config import (
    DISTANCES,
    GATES,
    RATES,
    SCALES,
    VARIANCES,
    Config,
    Instance,
    instance,
    quadratic,
)

TINY, ROUGH_TINY = 1e-12, 1e-10


def quadratics(config: Config) -> list[Row]:
    """Return rows of descents, of matrix norms, and of a non-convex function."""
    rows = _wavy()
    for trial in config.seeds:
        rows += _descent(config, trial)
        rows += _norms(config, trial)
    return rows


def _descent(config: Config, trial: int) -> list[Row]:
    """Descend on a quadratic and return the worst factor on the loss in one step."""
    curvatures, step, theta = quadratic(config, trial)
    losses = []
    for _ in range(config.steps):
        losses.append(float(curvatures @ theta**2) / 2)
        theta = theta - step * curvatures * theta
    kept = [b / a for a, b in pairwise(losses) if a > 1e-250]
    return named_rows({"rate": max(kept)}, TINY, trial=trial)


def _norms(config: Config, trial: int) -> list[Row]:
    """Return the stretch of a quadratic's gradient over two norms of its Hessian."""
    rng, size = stream(config.seed, "norms", trial), 2 + trial % 4
    ones = np.ones((size, size))
    drawn = rng.normal(size=(size, size))
    rows: list[Row] = []
    for name, matrix in (("ones", ones), ("random", drawn + drawn.T)):
        ends = rng.normal(size=(2, size, 400))
        ends[0, :, 0], ends[1, :, 0] = 1.0, 0.0
        away = ends[0] - ends[1]
        moved = np.linalg.norm(matrix @ away, axis=0) / np.linalg.norm(away, axis=0)
        numbers = {
            "stretch_over_entry": moved.max() / np.abs(matrix).max(),
            "stretch_over_operator": moved.max() / np.linalg.norm(matrix, 2),
        }
        rows += named_rows(numbers, TINY, trial=trial, matrix=name)
    return rows


def _wavy() -> list[Row]:
    """Return readings of x² + 3 sin² x on a fine grid around its minimum, zero."""
    x = np.linspace(-20, 20, 400_000)  # without zero itself
    value = x**2 + 3 * np.sin(x) ** 2
    slope = 2 * x + 3 * np.sin(2 * x)
    curvature = 2 + 6 * np.cos(2 * x)
    numbers = {
        "wavy_ratio": (slope**2 / value).min(),
        "wavy_curvature": curvature.min(),
    }
    return named_rows(numbers, 1e-4)


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
    (slope,) = torch.autograd.grad(Nonlinearity(activation)(point).sum(), point)
    return slope.numpy()


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
        numbers = {"steepest": steep.max()}
        rows += named_rows(numbers, 1e-8, trial=trial, activation=gate)
    return rows


def _cycles() -> list[Row]:
    """Descend on |z|^(3/2) at fixed rates and return where descent ends."""
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
    """Return gradients of two costs on a sublevel set over their bounds."""
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
        numbers = {
            "cost_gradient_ratio": np.linalg.norm(slope[kept], axis=1).max() / bound,
            "cost_constant_ratio": moved[kept].max() / constant,
        }
        rows += named_rows(numbers, ROUGH_TINY, trial=trial, cost=name)
    return rows


def _batch_norms(config: Config, trial: int) -> list[Row]:
    """Return Jacobian norms of a batch norm along the data's least variance."""
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
        numbers = {
            "norm_jacobian": norm,
            "norm_jacobian_root": norm * np.sqrt(variance),
        }
        rows += named_rows(numbers, 1e-8, trial=trial, variance=variance)
    last, before = (row["value"] for row in rows[-2:-5:-2])
    exponent = np.log(last / before) / np.log(VARIANCES[-1] / VARIANCES[-2])
    return [*rows, *named_rows({"norm_exponent": exponent}, 1e-7, trial=trial)]


def _plain(config: Config, trial: int) -> list[Row]:
    """Return Hessian norms of two plain layers as their weights grow."""
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
        reading = hessian(network, batch, loss=HalfSquareLoss(), norm_mode="batch")
        norm = float(np.linalg.norm(reading.matrix, 2))
        rows += named_rows(
            {"plain_norm": norm}, ROUGH_TINY * norm, trial=trial, scale=scale
        )
    return rows


def products(config: Config) -> list[Row]:
    """Return rows of lemmas B.1, B.4 and B.5."""
    # Lemma B.5's slack for two equal samples and the matrix w₁ + 2w₂.
    samples, slope = np.array([[1.0, 1.0]]), np.array([[1.0, 2.0]])
    pair = (samples.T @ slope, samples, slope)
    values = [np.linalg.svd(a, compute_uv=False)[-1] for a in pair]
    rows = named_rows({"tall_slack": values[0] - values[1] * values[2]}, TINY)
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
    """Return a product of three moving matrices over the bounds of lemma B.1."""
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
        made = np.eye(2)
        for a, b, c in zip(fixed, moving, waves, strict=True):
            made = made @ (a + np.sin(c @ theta) * b)
        return made

    stretch = size = 0.0
    for _ in range(100):
        here = rng.normal(size=4) * 2
        there = here + rng.normal(size=4) * 10 ** rng.uniform(-3, 0)
        gap = np.linalg.norm(product(here) - product(there), 2)
        stretch = max(stretch, gap / np.linalg.norm(here - there))
        size = max(size, np.linalg.norm(product(here), 2))
    numbers = {
        "product_constant_ratio": stretch / constant,
        "product_bound_ratio": size / np.prod(bounds),
    }
    return named_rows(numbers, TINY, trial=trial)


def _blocks(drawn: Instance, trial: int) -> list[Row]:
    """Return least singular values of residual blocks minus lemma B.4's bound."""
    import torch

    network = network_of(drawn, trial)
    z = torch.tensor(drawn.inputs[:1])
    rows: list[Row] = []
    for place, layer in enumerate(network.layers):
        if place:
            whole, branch = (_jacobian(part, z) for part in (layer, layer.branch))
            least = np.linalg.svd(whole, compute_uv=False)[-1]
            norm = np.linalg.norm(branch, 2)
            numbers = {"skip_slack": least - (1 - norm), "branch_norm": norm}
            rows += named_rows(numbers, TINY, trial=trial, layer=place)
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
        numbers = {"matrix_slack": least - (1 - norm)}
        rows += named_rows(numbers, TINY, trial=trial, branch=name)
    return rows


def _jacobian(module: Any, z: Any) -> np.ndarray:
    import torch

    jacobian: Any = torch.autograd.functional.jacobian(module, z)
    return jacobian.detach().numpy().reshape(-1, z.numel())


def _first_layer(drawn: Instance, trial: int) -> list[Row]:
    """Return Df against DP of the first layer, by autodiff, on few samples."""
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
    numbers = {
        "affine_slack": parts[0] - parts[1] * parts[2],
        "matrix_rows_printed": own.shape[0] - into * len(x),
        "matrix_rows": own.shape[0] - out * into,
    }
    return named_rows(numbers, TINY, trial=trial)


_PARTS = {"quadratics": quadratics, "roughness": roughness, "products": products}


def measure(config: Config, cell: Cell) -> Rows:
    """Measure one part; parts that need theory have their rows in ``combine``."""
    part = _PARTS.get(cell["part"])
    return Rows([] if part is None else part(config))
