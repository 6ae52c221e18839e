"""Certified constants of random systems beside values by autodiff.

Bounds are tested where they bind: from the worst of some random points a ratio of
curvature to its bound is climbed on, over weights and directions at once.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite import theory
from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    NonlinearLayer,
    Row,
    SystemBlueprint,
    named_rows,
    stream,
)

from .config import Config, Instance, instance
from .measure import network_of

if TYPE_CHECKING:
    from torch import Tensor

Loss = Callable[["Tensor"], "Tensor"]
TINY = 1e-10
POINTS = 3
CLIMBS = 30  # steps of an ascent
LENGTH = 0.3  # of steps whose rise is climbed on
# Errors of ratios.
_RATIOS = {
    "assembled_gap": 1e-13,
    "derivative_ratio": TINY,
    "derivative_constant_ratio": TINY,
}


def systems(config: Config) -> list[Row]:
    """Return ratios of sampled values to certified bounds."""
    rows: list[Row] = []
    for trial in config.seeds:
        rows += _system(config, trial)
    return rows


def ascents(config: Config) -> list[Row]:
    """Return the largest ratios of curvature to its bound that ascent comes to."""
    rows: list[Row] = []
    for trial in config.climbed:
        for blocks in (0, None):
            drawn = instance(config, trial, blocks=blocks)
            count = "some" if blocks is None else "none"
            rows += highest_bends(drawn, trial, "hessian_ratio", blocks=count)
        rows += highest_bends(
            instance(config, trial, blocks=0), trial, "descent_ratio", LENGTH
        )
        behind = behind_norm(config, trial)
        rows += highest_bends(behind, trial, "behind_norm_ratio")
        rng = stream(config.seed, "known", trial)
        for name, (loss, beta) in known_losses(rng).items():
            starts = [rng.normal(size=6) for _ in range(POINTS)]
            sizes = climb(loss, starts, rng, LENGTH)
            rows += _climbed("descent_ratio", sizes, beta, trial=trial, loss=name)
    return rows


def behind_norm(config: Config, trial: int) -> Instance:
    """Return plain weights before a batch norm, on fewer samples than inputs."""
    rng = stream(config.seed, "behind", trial)
    eps = float(10 ** rng.uniform(-0.5, 0.5))
    plan = SystemBlueprint(
        inputs=5,
        layers=(
            AffineLayer(into=5, out=3),
            BatchNormLayer(features=3, eps=eps),
            NonlinearLayer(activation="tanh"),
            AffineLayer(into=3, out=3, parameterisation="weight_norm", eps=eps),
        ),
    )
    scale = float(10 ** rng.uniform(-1, 2))
    classes = rng.integers(0, 3, size=4)
    return Instance(plan, rng.normal(size=(4, 5)), classes, scale, eps)


def known_losses(rng: np.random.Generator) -> dict[str, tuple[Loss, float]]:
    """Return losses of six numbers whose least smoothness constant is known."""
    import torch

    drawn = torch.tensor(rng.normal(size=(6, 6)))
    beta = float(torch.linalg.norm(drawn, 2)) ** 2
    return {
        "quadratic": (lambda t: (drawn @ t).square().sum() / 2, beta),
        "waves": (lambda t: -torch.cos(drawn @ t).sum(), beta),
    }


def highest_bends(
    drawn: Instance, trial: int, quantity: str, length: float = 0.0, **labels: Any
) -> list[Row]:
    """Return rows of a network's largest curvature over its certified bound."""
    beta = theory.smoothness_bound(drawn.plan, drawn.inputs, "cross_entropy")
    rng = stream(trial, "climb", quantity)
    made = [
        network_of(drawn, trial + place, float(10 ** rng.uniform(-1, 0.5)))
        for place in range(POINTS)
    ]
    starts = [flat_weights(network) for network in made]
    sizes = climb(flat_loss(drawn, made[0]), starts, rng, length)
    return _climbed(quantity, sizes, beta, loss="network", trial=trial, **labels)


def _climbed(
    quantity: str, sizes: tuple[float, float], beta: float, **labels: Any
) -> list[Row]:
    ends = zip(("points", "ascent"), sizes, strict=True)
    return [
        row
        for found, size in ends
        for row in named_rows({quantity: size / beta}, 1e-9, found=found, **labels)
    ]


def climb(
    loss: Loss, starts: list[np.ndarray], rng: np.random.Generator, length: float = 0.0
) -> tuple[float, float]:
    """Return the largest curvature of a loss at some points, and where ascent ends.

    It is the second derivative along a unit vector; with a ``length`` how far a step of
    it rises above the tangent, over half its square, and upwards only. Ascent starts
    from the best point, along the Hessian's own or a random direction, and moves both.
    """
    import torch
    from scipy.optimize import minimize

    def slope(value: "Tensor", at: "Tensor") -> "Tensor":
        return torch.autograd.grad(value, at, create_graph=True)[0]

    def bend(both: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Return the curvature at a point along a vector, and its gradient by both."""
        at, along = both.chunk(2)
        along = along / along.norm()
        value = loss(at)
        tilt = slope(value, at) @ along
        if length:
            rise = loss(at + length * along) - value - length * tilt
            curvature = 2 * rise / length**2
        else:
            curvature = slope(tilt, at) @ along
        return curvature, torch.autograd.grad(curvature, both)[0]

    best, start, sign = -math.inf, np.empty(0), 1.0
    for point in starts:
        at, way = torch.tensor(point), 1.0
        along = torch.tensor(rng.normal(size=len(point)))
        if not length:
            matrix: Any = torch.autograd.functional.hessian(loss, at)
            values, vectors = torch.linalg.eigh(matrix)
            top = int(values.abs().argmax())
            along, way = vectors[:, top], float(values[top].sign())
        here = torch.cat([at, along]).requires_grad_()
        size = way * float(bend(here)[0].detach())
        if size > best:
            best, sign, start = size, way, here.detach().numpy()

    def fall(both: np.ndarray) -> tuple[float, np.ndarray]:
        value, push = bend(torch.tensor(both, requires_grad=True))
        return -sign * float(value.detach()), -sign * push.numpy()

    ended = minimize(
        fall, start, jac=True, method="L-BFGS-B", options={"maxiter": CLIMBS}
    )
    return best, max(best, -float(ended.fun))


def flat_weights(network: Any) -> np.ndarray:
    """Return all parameters of a network in one vector."""
    return np.concatenate([p.detach().numpy().ravel() for p in network.parameters()])


def flat_loss(drawn: Instance, network: Any) -> Loss:
    """Return cross-entropy as a function of all parameters in one vector."""
    import torch

    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.track_running_stats = False  # derivatives cannot pass an update
    x, y = torch.tensor(drawn.inputs), torch.tensor(drawn.classes)
    shapes = {name: p.shape for name, p in network.named_parameters()}
    sizes = [shape.numel() for shape in shapes.values()]

    def loss(theta: "Tensor") -> "Tensor":
        parts = zip(shapes.items(), theta.split(sizes), strict=True)
        held = {name: part.reshape(shape) for (name, shape), part in parts}
        outputs = torch.func.functional_call(network, held, (x,))
        return torch.nn.functional.cross_entropy(outputs, y)

    return loss


def looseness(config: Config) -> list[Row]:
    """Return certified smoothness over the largest Hessian found, by blocks."""
    rows: list[Row] = []
    for blocks in config.blocks:
        for trial in config.seeds[: max(4, config.n_seeds // 4)]:
            drawn = instance(config, trial, blocks=blocks)
            beta = theory.smoothness_bound(drawn.plan, drawn.inputs, "cross_entropy")
            norm = max(
                _hessian_norm(drawn, network_of(drawn, seed, factor))
                for seed, factor in ((trial, 0.1), (trial, 1.0), (trial + 1, 1.0))
            )
            numbers = {"looseness": beta / norm}
            rows += named_rows(
                numbers, TINY * beta / norm, trial=trial, layers=blocks + 1
            )
    return rows


def _system(config: Config, trial: int) -> list[Row]:
    import torch
    from torch.nn.utils import vector_to_parameters

    drawn = instance(config, trial)
    rng = stream(config.seed, "points", trial)
    bounds = theory.system_bounds(drawn.plan, theory.extent_of(drawn.inputs))
    numbers = dict.fromkeys(_RATIOS, 0.0)
    for place in range(POINTS):
        network = network_of(drawn, trial + place, float(10 ** rng.uniform(-1, 0.5)))
        here, theta = _jacobian(drawn, network), flat_weights(network)
        formula = theory.system_jacobian(drawn.plan, weights_of(network), drawn.inputs)
        size = max(np.abs(here).max(), 1e-300)
        step = rng.normal(size=len(theta)) * 10 ** rng.uniform(-3, 1)
        vector_to_parameters(torch.tensor(theta + step), list(network.parameters()))
        moved = np.linalg.norm(here - _jacobian(drawn, network), 2)
        constant = bounds.derivative_lipschitz * float(np.linalg.norm(step))
        ratio = {
            "assembled_gap": float(np.abs(formula - here).max() / size),
            "derivative_ratio": np.linalg.norm(here, 2) / bounds.derivative,
            "derivative_constant_ratio": moved / constant,
        }
        numbers = {name: max(numbers[name], ratio[name]) for name in numbers}
    return [
        row
        for name, value in numbers.items()
        for row in named_rows({name: value}, _RATIOS[name], trial=trial)
    ]


def weights_of(network: Any) -> list[Any]:
    """Return the weights of a normalised residual network, as theory takes them."""

    def of(module: Any) -> Any:
        if hasattr(module, "branch"):
            return tuple(of(part) for part in module.branch)
        return {k: v.detach().numpy() for k, v in module.named_parameters()}

    return [of(layer) for layer in network.layers]


def _jacobian(drawn: Instance, network: Any) -> np.ndarray:
    """Return DF by autodiff, rows by output and then sample."""
    import torch

    x, parameters = torch.tensor(drawn.inputs), list(network.parameters())
    outputs = network(x).T.reshape(-1)
    rows = []
    for one in outputs:
        parts = torch.autograd.grad(one, parameters, retain_graph=True)
        rows.append(torch.cat([part.reshape(-1) for part in parts]))
    return torch.stack(rows).numpy()


def _hessian_norm(drawn: Instance, network: Any) -> float:
    import torch

    from theodolite.instruments import hessian

    batch = torch.tensor(drawn.inputs), torch.tensor(drawn.classes)
    reading = hessian(
        network, batch, loss=torch.nn.CrossEntropyLoss(), norm_mode="batch"
    )
    norm = float(np.linalg.norm(reading.matrix, 2))
    return norm if math.isfinite(norm) else math.inf
