"""Train networks and read their path ensembles along the way."""

from collections.abc import Mapping
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
    import torch

    x, y = samples(config, cell["task"], "train")
    plan = config.layerwise_plan(cell, x.shape[1], int(y.max()) + 1)
    network = ensembles.remember_sizes(networks.build(plan, seed=cell["trial"]))
    chosen = stream(config.seed, "probe", cell["trial"]).permutation(len(y))
    chosen = chosen[: config.batch_size]
    probe = torch.as_tensor(x[chosen]), torch.as_tensor(y[chosen])
    rows = _with_factors(config, network, probe)
    rows += train_and_read(
        network,
        (x, y),
        steps=config.reading_steps,
        rate=config.rate,
        batch_size=config.batch_size,
        seed=cell["trial"],
        read=lambda model: read(config, model, probe),
    )
    back = ensembles.depth_alone(ensembles.reset(network), *probe, config.probes)
    last = {"step": config.steps, "stage": len(config.reading_steps) - 1}
    rows += [
        {**row, "quantity": f"reset_{row['quantity']}", **last}
        for row in named_rows(back)
    ]
    held_out = samples(config, cell["task"], "test")
    return Rows([*rows, test_error(network, *held_out)])


def read(config: Config, network: Any, probe: Probe) -> list[Row]:
    """Return all quantities that are tracked during training."""
    numbers = ensembles.ensemble(network, *probe, config.probes)
    numbers["scale"] = ensembles.scale_of(network), 1e-12
    numbers["scale_beta"] = beta_of_scales(ensembles.held(network, probe[0]), probe[0])
    return named_rows(numbers)


def _with_factors(config: Config, network: Any, probe: Probe) -> list[Row]:
    """Return readings of the initial network with its scales multiplied by factors."""
    rows: list[Row] = []
    for factor in FACTORS:
        changed = ensembles.scaled(network, factor)
        depths = ensembles.depth_alone(changed, *probe, config.probes)
        rows += [
            {**row, "quantity": f"scaled_{row['quantity']}", "factor": factor}
            for row in named_rows(depths)
        ]
    return rows


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
            betas.append(float((branch != 0).double().mean()) * size * _factor(layer))
            x = layer(x)
    spread = float(np.std(betas, ddof=1)) if len(betas) > 1 else 0.0
    return float(np.mean(betas)), spread / len(betas) ** 0.5


def _factor(layer: Any) -> float:
    norm = layer.norm
    if isinstance(norm, networks.ScalarNorm):
        return float(abs(norm.scale) / norm.running_deviation)
    if not list(norm.parameters()):
        return 1.0
    return float((norm.weight.abs() / (norm.running_var + norm.eps).sqrt()).mean())


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
