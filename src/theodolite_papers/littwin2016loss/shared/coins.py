"""A network with a coin for every gate, and all states that the coins can have."""

from collections.abc import Sequence
from itertools import product

import numpy as np


def coin_outputs(
    matrices: Sequence[np.ndarray], x: np.ndarray, *, chance: float, skip: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the output in every state of the gates, and how probable each is.

    Args:
        matrices: Weights of the layers, units in columns, all of one width.
        x: Inputs, shape (samples, inputs).
        chance: That a gate is open.
        skip: Whether layers from the second on have a skip.

    Returns:
        Outputs, shape (states, samples), and probabilities, shape (states,).
    """
    depth, width = len(matrices), matrices[0].shape[1]
    states = np.array(list(product((0.0, 1.0), repeat=depth * width)))
    number = states.sum(axis=1)
    chances = chance**number * (1 - chance) ** (states.shape[1] - number)
    gates = states.reshape(-1, depth, 1, width)
    signal = (x @ matrices[0]) * gates[:, 0]
    for layer, matrix in enumerate(matrices[1:], start=1):
        branch = (signal @ matrix) * gates[:, layer]
        signal = branch + signal if skip else branch
    return signal.sum(axis=2), chances
