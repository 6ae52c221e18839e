"""Gradient descent on random ReLU networks, from a small norm to the end."""

from functools import lru_cache
from typing import Any

import numpy as np

from theodolite.core import Row
from theodolite.studies.poggio2020square.norm_flow.config import START, Config
from theodolite.studies.poggio2020square.shared.drawn_networks import Drawn, draw
from theodolite.studies.poggio2020square.shared.projected_descent import descend
from theodolite.studies.poggio2020square.shared.rows import named

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
            rows += named({"flow_norm": rho[k]}, 1e-13, **labels)
            for i, (w, p) in enumerate(zip(layers, drawn[k].probes, strict=True)):
                found = {"flow_weights": np.sum(w[k] * p)}
                rows += named(found, 1e-13, layer=i, **labels)
    rho, _, wrong, peak = ended(config)
    for k, trial in enumerate(config.seeds):
        labels = {"trial": trial, "case": "network"}
        rows += named({"wrong_way": wrong[k]}, 0.0, **labels)
        rows += named({"network_drop": peak[k] - rho[k]}, 1e-9, **labels)
    return rows


def drawn_networks(config: Config) -> list[Drawn]:
    """Return every network with its data."""
    size = config.widths, config.samples
    return [draw(config.seed, trial, *size) for trial in config.seeds]


@lru_cache(maxsize=2)
def ended(config: Config) -> Ended:
    """Return norms and layers at the end, steps that went wrong, and peaks.

    Descent chatters about a kink by as much as it steps: it ends with smaller steps.
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
