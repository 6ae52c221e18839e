"""Closed forms from moments against automatic differentiation and dense matrices."""

from collections.abc import Iterator

import numpy as np
import torch

from bench.timing import Result, beside
from theodolite.core import ShortcutBlueprint, column_major, condition_of
from theodolite.data import load, whiten
from theodolite.instruments import HalfSquareLoss, hessian
from theodolite.networks import build, get_weights
from theodolite.theory import (
    conditioning_at_zero,
    hessian_at_zero,
    linear_hessian,
    moments,
)


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


def run() -> Iterator[Result]:
    """Compare at a few depths on whitened digits."""
    digits = load("mnist5k")
    x = whiten(digits.flat(), k=10).apply(digits.flat())
    y = digits.one_hot()
    data = moments(x, y)
    batch = (torch.as_tensor(x), torch.as_tensor(y))
    for depth in (4, 8):
        plan = ShortcutBlueprint(width=10, depth=depth, init="xavier")
        network = build(plan, seed=0)
        weights = get_weights(network)

        def measured(network=network):
            reading = hessian(network, batch, loss=HalfSquareLoss(), norm_mode="eval")
            order = column_major([shape for _, shape in reading.layout])
            return reading.matrix[np.ix_(order, order)]

        yield beside(
            f"Hessian of a linear network, {plan.depth * 100} parameters",
            lambda plan=plan, weights=weights: linear_hessian(plan, weights, data),
            "double backward, batched rows",
            measured,
            relative,
            tolerance=1e-10,
            repeats=5,
            note="from moments: cost independent of the 5,000 samples",
        )
    for depth in (24, 48):
        plan = ShortcutBlueprint(width=10, depth=depth, shortcut=1)
        yield beside(
            f"condition of the 1-shortcut Hessian at zero, depth {depth}",
            lambda plan=plan: conditioning_at_zero(plan, x, y).ratio,
            "dense matrix and eigvalsh",
            lambda plan=plan: (
                condition_of(np.linalg.eigvalsh(hessian_at_zero(plan, x, y))).ratio
            ),
            lambda a, b: abs(a / b - 1),
            tolerance=1e-9,
            repeats=1,
            note="inertia of blocks; memory linear in depth",
        )
