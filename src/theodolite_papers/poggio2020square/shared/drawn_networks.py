"""Normalised ReLU networks with unit inputs and signs as labels, drawn in NumPy."""

from dataclasses import dataclass

import numpy as np

from theodolite.core import stream


@dataclass(frozen=True, eq=False)
class Drawn:
    """A network of unit layers, its inputs of norm one and their labels."""

    weights: tuple[np.ndarray, ...]  # layers of norm one, from the first to the last
    inputs: np.ndarray  # one row per sample
    labels: np.ndarray  # signs
    # Matrices of the layers' shapes, to compare velocities by.
    probes: tuple[np.ndarray, ...]


def draw(seed: int, trial: int, widths: tuple[int, ...], samples: int) -> Drawn:
    """Draw a network and data on which it is separable on average at the start."""
    rng = stream(seed, "norms", trial, *widths)
    inputs = rng.normal(size=(samples, widths[0]))
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    labels = np.where(np.arange(samples) % 2, 1.0, -1.0)
    shapes = list(zip(widths[1:], widths[:-1], strict=True))
    drawn = [rng.normal(size=shape) for shape in shapes]
    weights = [matrix / np.linalg.norm(matrix) for matrix in drawn]
    h = inputs.T
    for w in weights[:-1]:
        h = np.maximum(w @ h, 0)
    side = np.sign(labels @ (weights[-1] @ h)[0]) or 1.0
    weights[-1] = side * weights[-1]
    probes = tuple(rng.normal(size=shape) for shape in shapes)
    return Drawn(tuple(weights), inputs, labels, probes)
