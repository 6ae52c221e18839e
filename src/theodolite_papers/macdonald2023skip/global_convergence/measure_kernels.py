"""Least eigenvalues of tangent kernels, with a hypothesis dropped and without."""

import numpy as np

from theodolite.core import Row, named_rows

from ..shared.normalised_stack import NormalisedStack, least_kernel
from .config import (
    BRANCH_NORM,
    KERNEL_SCALES,
    LONG_BRANCH,
    RIVALS,
    Config,
    inputs,
    kernel_weights,
    shapes,
)

EPS = 1e-15


def kernels(config: Config) -> list[Row]:
    """Return eigenvalues at random weights, and where rivals lose theirs."""
    import torch

    data = np.stack([inputs(config, trial).T for trial in config.seeds])
    stack = NormalisedStack(
        inputs=torch.tensor(data), branch_norm=BRANCH_NORM, epsilon=config.epsilon
    )
    rows: list[Row] = []
    for scale in KERNEL_SCALES:
        drawn = [kernel_weights(config, trial, scale) for trial in config.seeds]
        weights = [torch.tensor(np.stack(parts)) for parts in zip(*drawn, strict=True)]
        rows += _rows(config, least_kernel(stack, weights), scale=scale)
    for rival in RIVALS:
        weights = [torch.tensor(w) for w in _where_lost(config, rival)]
        for kind, one in (("theorem", stack), ("rival", _rival(config, rival, data))):
            found = least_kernel(one, weights)
            rows += _rows(config, found, rival=rival, network=kind)
    return rows


def _rival(config: Config, rival: str, data: np.ndarray) -> NormalisedStack:
    import torch

    if rival == "dependent data":
        data = data.copy()
        data[:, :, 1] = 2 * data[:, :, 0]
    return NormalisedStack(
        inputs=torch.tensor(data),
        branch_norm=LONG_BRANCH if rival == "long branch" else BRANCH_NORM,
        epsilon=config.epsilon,
        skip=rival != "no skip",
    )


def _where_lost(config: Config, rival: str) -> list[np.ndarray]:
    """Return weights at which the rival's kernel is singular, a network a dataset.

    Without skips and with dependent data branches of zero do. A branch that may be
    longer than its skip undoes it in one direction, at outputs of zero.
    """
    first, inner, outer = (np.zeros((config.n_seeds, *s)) for s in shapes(config))
    if rival == "long branch":
        # All rows lie along one direction and have the length that makes both
        # matrices of norm 1, so that the branch is minus that direction's projection.
        length = 1 / LONG_BRANCH
        weight = length * np.sqrt(config.epsilon / (1 - length**2))
        inner += weight / np.sqrt(config.samples)
        outer -= weight / np.sqrt(config.samples)
    return [first, inner, outer]


def _rows(config: Config, found: object, **labels: object) -> list[Row]:
    rows: list[Row] = []
    for trial, value in zip(config.seeds, found, strict=True):  # pyright: ignore
        rows += named_rows({"kernel": value}, EPS, trial=trial, **labels)
    return rows
