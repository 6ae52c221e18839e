"""Train networks and read their path ensembles along the way."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite import data, networks
from theodolite.core import Row, Rows, named_rows, stream

from ..shared.layerwise_training import test_error, train_and_read
from . import measure_ensemble as ensembles
from .config import FACTORS, IMAGES, Config
from .measure_images import measure_images

if TYPE_CHECKING:
    from torch import Tensor


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train the network of a cell."""
    if cell["family"] == IMAGES:
        (rows,) = measure_images(config, [cell])
        return rows
    return measure_layerwise(config, cell)


Probe = tuple["Tensor", "Tensor"]
GAUSSIANS: dict[str, Any] = {"n_classes": 50, "width": 50, "separation": 8.0}


def measure_layerwise(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train one fully connected network on the CPU and return its readings."""
    train_set = samples(config, cell["task"], "train")
    start = {label: cell[label] for label in ("norm", "depth", "trial")}
    rows = [*with_factors(config, cell["task"], **start)]
    network, probe = _network(config, train_set, **start)
    rows += train_and_read(
        config, cell, network, train_set, read=lambda model: read(config, model, probe)
    )
    last = {"step": config.reading_steps(cell["horizon"])[-1]}
    rows += [{**row, **last} for row in _depths(config, network, probe, "reset")]
    held_out = samples(config, cell["task"], "test")
    return Rows([*rows, test_error(network, *held_out)])


def _network(
    config: Config, data: tuple[np.ndarray, np.ndarray], **cell: Any
) -> tuple[Any, Probe]:
    """Return a network at its start, and the batch on which it is read."""
    import torch

    x, y = data
    plan = config.layerwise_plan(cell, x.shape[1], int(y.max()) + 1)
    network = ensembles.remember_sizes(networks.build(plan, seed=cell["trial"]))
    chosen = stream(config.seed, "probe", cell["trial"]).permutation(len(y))
    chosen = chosen[: config.batch_size]
    return network, (torch.as_tensor(x[chosen]), torch.as_tensor(y[chosen]))


def read(config: Config, network: Any, probe: Probe) -> list[Row]:
    """Return all quantities that are tracked during training."""
    held = ensembles.held(network, probe[0])
    numbers = ensembles.ensemble(network, *probe, config.probes)
    numbers["scale"] = ensembles.scale_of(network), 1e-12
    numbers["scale_beta"] = beta_of_scales(held, probe[0])
    return named_rows(numbers) + deep_gradients(held, *probe)


def _depths(config: Config, network: Any, probe: Probe, prefix: str) -> list[Row]:
    """Return depths and the paper's scale of a network with other scales."""
    if prefix == "reset":
        network = ensembles.reset(network)
    if prefix != "fixed":
        network = ensembles.held(network, probe[0])
    numbers = ensembles.depth_alone(network, *probe, config.probes, fixed=True)
    numbers["scale_beta"] = beta_of_scales(network, probe[0])
    rows = named_rows(numbers)
    return [{**row, "quantity": f"{prefix}_{row['quantity']}"} for row in rows]


@lru_cache(maxsize=4)
def with_factors(config: Config, task: str, **start: Any) -> tuple[Row, ...]:
    """Return readings of the initial network with its scales multiplied by factors.

    Of networks with norms also with the deviations as they were (``fixed``). All
    trainings of a network, whose cells follow one another, have the same.
    """
    network, probe = _network(config, samples(config, task, "train"), **start)
    kinds = {"scaled": network}
    if start["norm"] != "none":
        kinds["fixed"] = ensembles.held(network, probe[0])
    return tuple(
        {**row, "factor": factor}
        for prefix, base in kinds.items()
        for factor in FACTORS
        for row in _depths(config, ensembles.scaled(base, factor), probe, prefix)
    )


def deep_gradients(network: Any, x: "Tensor", y: "Tensor") -> list[Row]:
    r"""Return $\|g_p\|/\|g_m\|$ by the length at which paths are split.

    $g_m$ is the loss's gradient by all layers' weights along paths of at most
    ``split`` layers, $g_p$ along all longer ones, with gates, deviations and the
    derivative by the scores held.
    """
    import torch
    from torch import nn

    x = x.double()
    weights = [layer.weight.weight for layer in network.layers]
    state, at = x[None], x
    for layer in network.layers:
        taken = (layer(at) - (at if layer.skip else 0)) != 0
        passed = taken * _factors(layer) * layer.weight(state)
        at, none = layer(at), torch.zeros_like(passed[:1])
        state = (
            torch.cat([state, none]) + torch.cat([none, passed])
            if layer.skip
            else passed
        )
    scores = network.head(at).detach().requires_grad_()
    (slope,) = torch.autograd.grad(nn.CrossEntropyLoss()(scores, y), scores)
    parts = (network.head(state) * slope).sum((1, 2))
    rows: list[Row] = []
    for split in range(1, len(parts)):
        low, high = (
            float(torch.nn.utils.parameters_to_vector(_by(part.sum(), weights)).norm())
            for part in (parts[:split], parts[split:])
        )
        number = {"value": high / low if low else float("nan"), "error": 1e-9}
        rows.append({"quantity": "deep_over_shallow", "split": split, **number})
    return rows


def _by(value: "Tensor", weights: list["Tensor"]) -> list["Tensor"]:
    import torch

    options: dict[str, Any] = {"retain_graph": True, "materialize_grads": True}
    return list(torch.autograd.grad(value, weights, **options))


def beta_of_scales(network: Any, x: "Tensor") -> tuple[float, float]:
    r"""Return the paper's $\beta = \rho n C/\sqrt{\Lambda}$ from measured scales.

    With $\Lambda = n$, as at the end of section 3: $\rho_l \sqrt{n}\,C_l\,S_l$ averaged
    over the layers with a skip, where $\rho_l$ is the share of open gates, $C_l$ the
    root mean square of the weights and $S_l$ what the norm multiplies by. Its error is
    the standard error over these layers, since one number describes all of them.
    """
    import torch

    betas = []
    with torch.no_grad():
        x = network.first(x.double())
        for layer in network.units:
            branch = layer(x) - x
            weight = layer.weight.weight
            size = float(weight.square().mean().sqrt()) * weight.shape[1] ** 0.5
            size *= float(_factors(layer).abs().mean())
            betas.append(float((branch != 0).double().mean()) * size)
            x = layer(x)
    spread = float(np.std(betas, ddof=1)) if len(betas) > 1 else 0.0
    return float(np.mean(betas)), spread / len(betas) ** 0.5


def _factors(layer: Any) -> "Tensor":
    """Return what a layer's norm multiplies by: one number, or one per unit."""
    import torch

    norm = layer.norm
    if isinstance(norm, networks.ScalarNorm):
        return (norm.scale / norm.running_deviation).detach()
    if not list(norm.parameters()):
        return torch.ones(())
    return (norm.weight / (norm.running_var + norm.eps).sqrt()).detach()


def samples(config: Config, task: str, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised rows and classes of a split."""
    if task == "gaussians":
        count = config.samples or 5000
        loaded = data.load(task, split, n_samples=count, seed=config.seed, **GAUSSIANS)
        return np.array(loaded.inputs), np.array(loaded.labels)
    statistics = np.array(data.load(task).images, dtype=np.float64)
    loaded = data.load(task, split)
    pixels = np.array(loaded.images, dtype=np.float64)
    pixels = (pixels - statistics.mean()) / statistics.std()
    kept = config.samples if config.samples and split == "train" else len(pixels)
    return pixels.reshape(len(pixels), -1)[:kept], np.array(loaded.labels)[:kept]
