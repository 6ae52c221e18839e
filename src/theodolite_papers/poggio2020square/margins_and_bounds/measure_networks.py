"""Trained classifiers: norms, margins, and errors on samples they have not seen."""

from functools import lru_cache

import numpy as np

from theodolite.core import Row, Rows

from ..shared.stacked_networks import descend, draw, forward
from ..shared.two_digits import two_digits
from .config import Config
from .measure import RATES

EPS = 1e-12
# Counts, and differences of numbers that are cut off at 0 and 1: no rounding.
COUNTED = ("held_error", "ramp_least_excess")


@lru_cache(maxsize=1)  # the bound is made of the very same networks
def networks(config: Config) -> Rows:
    """Train classifiers at every decay and read outputs on both sets."""
    import torch

    seen, held = two_digits(config.samples), two_digits(10_000, split="test")
    sets = {
        name: (torch.tensor(part.inputs), part.labels)
        for name, part in (("seen", seen), ("held", held))
    }
    rows: list[Row] = []
    for decay in config.decays:
        nets = draw(config.seeds, config.sizes, relu=True)
        x = sets["seen"][0]
        descend(
            nets,
            x,
            torch.tensor(seen.labels),
            decay=decay,
            steps=config.steps,
            rates=RATES,
        )
        layers = nets.directions()
        outputs = {
            name: forward(layers, inputs, relu=True)[-1].detach().numpy() * labels
            for name, (inputs, labels) in sets.items()
        }
        scales = nets.scale.detach().numpy()
        for place, trial in enumerate(config.seeds):
            found = _network(
                float(scales[place]), {k: v[place] for k, v in outputs.items()}
            )
            rows += [
                {"quantity": k, "decay": decay, "trial": trial, "value": v,
                 "error": 0.0 if k in COUNTED else EPS}
                for k, v in found.items()
            ]  # fmt: skip
    return Rows(rows)


def _network(scale: float, margins: dict[str, np.ndarray]) -> dict[str, float]:
    """Return norm, errors and ramp losses of one network at margin 1 of ρf."""
    seen, held = abs(scale) * margins["seen"], abs(scale) * margins["held"]
    sign = np.sign(scale)
    ramp = np.clip(1 - sign * seen, 0, 1)
    wrong = (sign * seen <= 0).astype(float)
    errors = int((sign * held <= 0).sum())
    return {
        "scale": abs(scale),
        "mean_margin": float(np.mean(sign * margins["seen"])),
        "ramp": float(ramp.mean()),
        "ramp_least_excess": float((ramp - wrong).min()),
        "held_error": errors / len(held),
    }
