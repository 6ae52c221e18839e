"""One layer at multiples of its certified step, beside its infimum, flow and bound."""

import numpy as np

from theodolite.core import Row
from theodolite.studies.macdonald2023skip.global_convergence.config import (
    Config,
    inputs,
    one_layer_start,
)
from theodolite.studies.macdonald2023skip.global_convergence.predict import (
    ONE_LAYER_STARTS,
    layer_of,
)
from theodolite.studies.macdonald2023skip.shared.normalised_stack import (
    NormalisedStack,
    cross_entropy,
)
from theodolite.studies.macdonald2023skip.shared.plain_descent import (
    Descended,
    descend,
)
from theodolite.studies.macdonald2023skip.shared.signed_rows import named
from theodolite.theory import worst_growth

EPS = 1e-14


def one_layer(config: Config) -> list[Row]:
    """Descend from every start at every multiple, all at once."""
    import torch

    runs = [
        (trial, start, multiple)
        for trial in config.seeds
        for start in ONE_LAYER_STARTS
        for multiple in config.multiples
    ]
    layers = {trial: layer_of(config, trial) for trial in config.seeds}
    least = {trial: layer.infimum() for trial, layer in layers.items()}
    weights = np.stack(
        [one_layer_start(config, t, s, least[t].weights) for t, s, _ in runs]
    )
    rates = np.array([m / layers[t].smoothness for t, _, m in runs])
    data = torch.tensor(np.stack([inputs(config, t).T for t, _, _ in runs]))
    stack = NormalisedStack(inputs=data, epsilon=config.epsilon)
    classes = torch.arange(config.samples)
    done = descend(
        lambda w: cross_entropy(stack.outputs(w), classes),
        [torch.tensor(weights)],
        torch.tensor(rates),
        config.marks,
        lambda w: w[0].abs().amax(dim=(1, 2)),
    )
    rows: list[Row] = []
    for place, (trial, start, multiple) in enumerate(runs):
        labels = {"trial": trial, "start": start, "multiple": multiple, "layers": 1}
        found = least[trial]
        error = found.error + EPS
        rows += named({"rise": done.rise[place]}, 0.0, **labels)
        for mark, losses in zip(config.marks, done.losses, strict=True):
            excess = {"excess": float(losses[place]) - found.value}
            rows += named(excess, error, step=mark, **labels)
        if multiple == 1 and start in ("tiny", "unit"):
            rows += _growth(config, done, place, weights[place], labels)
        if multiple == 1:
            law = layers[trial].rate_constant(float(rates[place])) / config.long**0.5
            last = float(done.losses[-1][place]) - found.value
            rows += named({"over_law": last / law}, 1e-6, **labels)
    return rows


def _growth(
    config: Config, done: Descended, place: int, start: np.ndarray, labels: dict
) -> list[Row]:
    r"""Return the largest weight over the worst growth from its start.

    Entries of $\nabla G$ are at most the mean size of a feature. A weight that starts
    beyond 1 is where one from 1 comes to later.
    """
    x = inputs(config, labels["trial"])
    rate = 1 / layer_of(config, labels["trial"]).smoothness
    push = rate * float(np.abs(x).sum(axis=0).max()) / len(x)
    away = float(np.abs(start).max())
    later = int(max(away, 1.0) ** 4 / (4 * push * config.epsilon)) + 1
    worst = worst_growth(config.long + later, rate, push / rate, config.epsilon)
    rows: list[Row] = []
    for mark, size in zip(config.marks, done.noted, strict=True):
        bound = worst[mark + int(np.searchsorted(worst, away))]
        found = {"weight_over_growth": float(size[place]) / bound}
        rows += named(found, EPS, step=mark, **labels)
    return rows
