"""Real networks, differentiated and trained by gradient descent; no theory."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import Row, Rows, named_rows

from ..shared.descent import descend, forward
from ..shared.drawn_networks import Drawn, draw
from ..shared.rows import limit
from .config import (
    LABELS,
    LAYERED,
    OUTPUTS,
    SCALES,
    SIDES,
    START,
    Config,
    ray_network,
    shares,
)
from .measure_norms import at_rest, held, units

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-13


def identities(config: Config) -> list[Row]:
    """Differentiate every network in its norm, its unit layers and its layers."""
    rows: list[Row] = []
    for trial in config.seeds:
        drawn = draw(config.seed, trial, config.deep_widths, config.samples)
        scale = 1.5 + trial % 3
        rows += _normalised(drawn, scale, config.decay, trial)
        rows += _unnormalised(drawn, scale, trial)
        rows += _unequal(drawn, trial) + _degenerate(drawn, trial)
        rows += named_rows({"ascended": _ascended(drawn)}, EPS, trial=trial)
        for rho in SCALES:
            for side in SIDES:
                rows += _off_the_sphere(drawn, rho, side, trial)
    return rows


def _tensors(drawn: Drawn) -> tuple[list["Tensor"], "Tensor", "Tensor"]:
    import torch

    weights = [torch.tensor(w).requires_grad_() for w in drawn.weights]
    return weights, torch.tensor(drawn.inputs), torch.tensor(drawn.labels)


def _normalised(drawn: Drawn, scale: float, decay: float, trial: int) -> list[Row]:
    import torch

    weights, x, y = _tensors(drawn)
    rho = torch.tensor(scale, dtype=torch.float64, requires_grad=True)
    f = forward(weights, x)
    loss = ((rho * f - y) ** 2).sum()
    by_rho, *by_weights = torch.autograd.grad(loss + decay * rho**2, [rho, *weights])
    numbers = {"norm_speed": -by_rho, "output": f.abs().max()}
    rows = named_rows({k: v.detach() for k, v in numbers.items()}, EPS, trial=trial)
    for k, (w, g, p) in enumerate(zip(weights, by_weights, drawn.probes, strict=True)):
        v = w.detach()
        along = float((v * g).sum())
        nu = -along / 2
        moved = -(g - along * v)
        # Eq 23 has the sums of both terms apart, the second one twice.
        numbers = {
            "velocity": (moved * torch.tensor(p)).sum(),
            "multiplier": nu,
            "radial": (v * moved).sum(),
            "radial_eq_21": (v * (-g - 2 * decay * v)).sum(),
            "radial_eq_21_corrected": (v * (-g - 2 * nu * v)).sum(),
            "radial_eq_23": (v * (-g + 2 * along * v)).sum(),
        }
        rows += named_rows(numbers, EPS, trial=trial, layer=k)
    return rows


def _unnormalised(drawn: Drawn, scale: float, trial: int) -> list[Row]:
    """Differentiate by layers of equal norm, whose product is the scale."""
    import torch

    units, x, y = _tensors(drawn)
    each = scale ** (1 / len(units))
    weights = [(each * v.detach()).requires_grad_() for v in units]
    g = forward(weights, x)
    mean = torch.autograd.grad(((g - y) ** 2).mean(), weights, retain_graph=True)
    rows: list[Row] = []
    for k, (w, gradient) in enumerate(zip(weights, mean, strict=True)):
        v, probe = w.detach(), torch.tensor(drawn.probes[k])
        each = [torch.autograd.grad(one, w, retain_graph=True)[0] for one in g]
        jacobian = [float((v * one).sum()) for one in each]
        gaps = [abs(a - float(b)) for a, b in zip(jacobian, g.detach(), strict=True)]
        probed = torch.stack([(probe * one).sum() for one in each])
        numbers = {
            # Eq 19 has the outputs and the labels apart.
            "plain_velocity": -(probe * gradient).sum(),
            "plain_by_outputs": -2 * (g.detach() * probed).mean(),
            "plain_by_labels": 2 * (y * probed).mean(),
            "lemma_gap": max(gaps) / float(g.detach().abs().max()),
            "square_rate": -2 * (v * gradient).sum(),
            "layer_norm_speed": -len(y) * (v * gradient).sum() / v.norm(),
            "mean_layer_norm_speed": -(v * gradient).sum() / v.norm(),
        }
        rows += named_rows(numbers, EPS, trial=trial, layer=k)
    return rows


def _ascended(drawn: Drawn) -> float:
    """Return the output at its largest over unit layers and a unit input, by ascent.

    The output is linear in each of them while gates stay, so each is set to its
    gradient in turn, from the sample with the largest output.
    """
    import torch

    weights, x, _ = _tensors(drawn)
    first = int(forward(weights, x).detach().abs().argmax())
    x = x[first : first + 1].clone().requires_grad_()
    for _ in range(60):
        for place in range(len(weights) + 1):
            out = forward(weights, x)[0]
            sign = 1.0 if out.detach() >= 0 else -1.0
            (slope,) = torch.autograd.grad(sign * out, [[*weights, x][place]])
            if not slope.norm() > 0:
                return float(out.detach().abs())
            [*weights, x][place].data.copy_(slope / slope.norm())
    return float(forward(weights, x)[0].detach().abs())


def _unequal(drawn: Drawn, trial: int) -> list[Row]:
    """Compare gradients by weights and by unit layers, of layers of any norms.

    In the model of batch normalisation all norms but the last are one.
    """
    import torch

    units, x, _ = _tensors(drawn)
    by_units = torch.autograd.grad(forward(units, x).sum(), units)
    rows: list[Row] = []
    count = len(units)
    for case, norms in (
        ("plain", [0.5 + k for k in range(count)]),
        ("batch", [1.0] * (count - 1) + [2.5]),
    ):
        weights = [
            (r * v.detach()).requires_grad_() for r, v in zip(norms, units, strict=True)
        ]
        by_weights = torch.autograd.grad(forward(weights, x).sum(), weights)
        rho = math.prod(norms)
        for k, (g, h) in enumerate(zip(by_weights, by_units, strict=True)):
            numbers = {
                "gradient_gap": (g - rho / norms[k] * h).norm() / g.norm(),
                "gradient_as_is_gap": (g - h).norm() / g.norm(),
            }
            rows += named_rows(numbers, EPS, trial=trial, layer=k, case=case)
    return rows


def _degenerate(drawn: Drawn, trial: int) -> list[Row]:
    """Return dimensions of the set on which all outputs stay as they are.

    Outputs count as the labels, so that every network interpolates. A network that is
    dead for some sample is left out: it cannot be moved there.
    """
    import torch

    weights, x, y = _tensors(drawn)
    if not forward(weights, x).detach().all():
        return []
    rows = [
        torch.cat(
            [g.flatten() for g in torch.autograd.grad(o, weights, retain_graph=True)]
        )
        for o in forward(weights, x)
    ]
    total, layers = len(rows[0]), len(weights)
    lengths = torch.zeros(layers, total, dtype=torch.float64)
    at = 0
    for k, w in enumerate(weights):
        lengths[k, at : at + w.numel()] = w.detach().flatten()
        at += w.numel()
    free = total - int(torch.linalg.matrix_rank(torch.stack(rows)))
    held = total - int(
        torch.linalg.matrix_rank(torch.cat([torch.stack(rows), lengths]))
    )
    numbers = {
        "free_of_weights": abs(free - (total - len(y))),
        "free_of_units_printed": abs(held - (total - len(y))),
        "free_of_units": abs(held - (total - len(y) - layers)),
    }
    return named_rows(numbers, 0.0, trial=trial)


def _off_the_sphere(drawn: Drawn, rho: float, side: float, trial: int) -> list[Row]:
    """Follow Eq 6 from a first layer that is off the sphere, as it is written."""
    import torch

    weights, x, y = _tensors(drawn)
    with torch.no_grad():
        weights[0] *= math.sqrt(side)
    f = forward(weights, x)
    loss = ((rho * f - y) ** 2).sum()
    gradient = torch.autograd.grad(loss, weights[0])[0]
    v, f = weights[0].detach(), f.detach()
    moved = -gradient + 2 * rho * float(((rho * f - y) * f).sum()) * v
    rate = 2 * float((v * moved).sum()) / (side - 1)
    size = EPS * (1 + rho**2) / abs(side - 1)
    return named_rows({"sphere_rate": rate}, size, trial=trial, rho=rho, side=side)


def layered(config: Config) -> list[Row]:
    """Descend on the norms of every number of layers from every start at once."""
    cases = [(layers, start) for layers in config.layers for start in config.starts]
    rates = config.rates
    runs = [_descend(cases, rate) for rate in rates]
    rows: list[Row] = []
    for k, (layers, start) in enumerate(cases):
        value, error = limit([times[k] for times, _ in runs])
        rows += named_rows({"transient": value}, error, layers=layers, start=start)
    for layers, time in LAYERED:
        place = cases.index((layers, START))
        at = [
            norms[round(time / r), place]
            for r, (_, norms) in zip(rates, runs, strict=True)
        ]
        value, error = limit([float(v) for v in at])
        rows += named_rows({"layered_norm": value}, error, layers=layers, time=time)
    return rows


def _descend(
    cases: list[tuple[int, float]], rate: float
) -> tuple[list[float], np.ndarray]:
    """Return when each case reaches half of its equilibrium, and its path."""
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
    paths = np.array(path)
    return [_crossing(paths[:, k], half, rate) for k in range(len(cases))], paths


def _crossing(path: np.ndarray, level: float, rate: float) -> float:
    after = int(np.argmax(path > level))
    low, high = path[after - 1], path[after]
    return rate * (after - 1 + float((level - low) / (high - low)))


Ended = tuple[np.ndarray, list[np.ndarray], np.ndarray, np.ndarray]


def networks(config: Config) -> list[Row]:
    """Follow all networks for a while at every step, and to the end at the first."""
    rows: list[Row] = []
    drawn = drawn_networks(config)
    for rate in config.rates:
        steps = round(config.network_horizon / rate)
        rho, layers, *_ = _train(config, (rate, steps))
        for k, trial in enumerate(config.seeds):
            labels = {"trial": trial, "rate": rate}
            rows += named_rows({"flow_norm": rho[k]}, 1e-13, **labels)
            for i, (w, p) in enumerate(zip(layers, drawn[k].probes, strict=True)):
                probed = {"flow_weights": np.sum(w[k] * p)}
                rows += named_rows(probed, 1e-13, layer=i, **labels)
    rho, _, wrong, peak = ended(config)
    for k, trial in enumerate(config.seeds):
        labels = {"trial": trial, "case": "network"}
        rows += named_rows({"wrong_way": wrong[k]}, 0.0, **labels)
        rows += named_rows({"network_drop": peak[k] - rho[k]}, 1e-9, **labels)
    return rows


def drawn_networks(config: Config) -> list[Drawn]:
    """Return every network with its data."""
    size = config.widths, config.samples
    return [draw(config.seed, trial, *size) for trial in config.seeds]


@lru_cache(maxsize=2)
def ended(config: Config) -> Ended:
    """Return norms and layers at the end, steps that went wrong, and peaks.

    Descent oscillates about a kink by its step size, so it ends with smaller steps.
    """
    first = config.rates[0]
    phases = [
        (first, config.end),
        (first / 10, config.end / 20),
        (last_rate(config), 0.1),
    ]
    return _train(config, *((rate, round(time / rate)) for rate, time in phases))


def last_rate(config: Config) -> float:
    """Return the step with which descent to the end stops."""
    return config.rates[0] / 100


def _train(config: Config, *phases: tuple[float, int]) -> Ended:
    import torch

    drawn = drawn_networks(config)
    inputs = torch.tensor(np.array([d.inputs for d in drawn]))
    labels = torch.tensor(np.array([d.labels for d in drawn]))
    weights = [
        torch.tensor(np.array([d.weights[k] for d in drawn]))
        for k in range(len(config.widths) - 1)
    ]
    decay = torch.full((len(drawn),), config.decay, dtype=torch.float64)
    start = torch.full_like(decay, START)
    wrong, peak = torch.zeros(len(drawn)), start.clone()
    last: list[Any] = []

    def watch(step: int, rho: Any, layers: Any, f: Any) -> None:
        del layers
        if last and step:
            away, moved = last[1] - last[0], rho - last[0]
            wrong.add_((away * moved < 0) & (away.abs() > 1e-9))
        torch.maximum(peak, rho, out=peak)
        last[:] = [rho.clone(), (labels * f).sum(1) / (decay + (f * f).sum(1))]

    data = (inputs, labels, decay)
    rho, layers = start, weights
    for rate, steps in phases:
        rho, layers = descend(rho, layers, data, rate, steps, watch)
    return rho.numpy(), [w.numpy() for w in layers], wrong.numpy(), peak.numpy()


def footnotes(config: Config) -> list[Row]:
    """Differentiate networks of one ray, and let norms rest under held outputs."""
    rows: list[Row] = []
    for trial in config.seeds:
        rows += [*_ray(config, trial), *_shares(config, trial)]
    return rows


def _ray(config: Config, trial: int) -> list[Row]:
    """Return speeds of the layers and of the norm, at rest of the norm and away."""
    import torch

    drawn = ray_network(config, trial)
    weights = [torch.tensor(w).requires_grad_() for w in drawn.weights]
    x, y = torch.tensor(drawn.inputs), torch.tensor(drawn.labels)
    f = forward(weights, x)
    gaps = []
    for one in f:
        own = torch.autograd.grad(one, weights, retain_graph=True)
        gaps += [
            float((w * one - g).detach().norm())
            for w, g in zip(weights, own, strict=True)
        ]
    rows = named_rows({"ray_gap": max(gaps)}, 1e-12, trial=trial)
    rest = float(at_rest(f.detach().numpy(), drawn.labels, config.decay))
    for place, scale in (("rest", rest), ("below", rest / 2), ("above", 2 * rest)):
        speeds = _speeds(weights, (x, y), scale, config.decay)
        rows += named_rows(speeds, 1e-12, trial=trial, place=place)
    return rows


def _speeds(
    weights: list["Tensor"], data: tuple["Tensor", "Tensor"], scale: float, decay: float
) -> dict[str, float]:
    import torch

    rho = torch.tensor(scale, dtype=torch.float64, requires_grad=True)
    errors = rho * forward(weights, data[0]) - data[1]
    loss = (errors**2).sum() + decay * rho**2
    by_rho, *by_weights = torch.autograd.grad(loss, [rho, *weights])
    fastest = max(
        float((g - (g * w).sum() * w).norm())
        for g, w in zip(by_weights, (w.detach() for w in weights), strict=True)
    )
    return {"ray_layer_speed": fastest, "ray_norm_speed": abs(float(by_rho))}


def _shares(config: Config, trial: int) -> list[Row]:
    """Return where a norm rests, and its products with outputs."""
    rows: list[Row] = []
    for spread, f in shares(config, trial).items():
        rest = float(at_rest(f, np.ones(len(f)), 0.0))
        numbers = {
            "shares_norm": rest,
            "times_least": rest * f.min(),
            "times_most": rest * f.max(),
        }
        rows += named_rows(numbers, 1e-12, trial=trial, spread=spread)
    return rows


PARTS = {
    "identities": identities,
    "held": held,
    "footnotes": footnotes,
    "layered": layered,
    "units": units,
    "networks": networks,
}


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Measure one group of numbers."""
    return Rows(PARTS[cell["part"]](config))
