"""List all paths of a fully connected residual network, one by one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from theodolite import networks
from theodolite.core import PathBlueprint


@dataclass(frozen=True, kw_only=True, eq=False)
class Paths:
    """All paths from the inputs to the output, one array entry per path."""

    start: np.ndarray  # the input it begins at
    end: np.ndarray  # the unit it ends in
    length: np.ndarray  # layers whose matrix it takes
    product: np.ndarray  # product of the weights on it
    open: np.ndarray  # whether all its gates are open
    word: np.ndarray  # the different weights on it in order, as digits of a number

    def __len__(self) -> int:
        return len(self.start)

    def terms(self, x: np.ndarray, *, gated: bool = True) -> np.ndarray:
        """Return what each path contributes to the output at an input."""
        terms = x[self.start] * self.product
        return terms * self.open if gated else terms

    def of_length(self, length: int) -> "Paths":
        """Return the paths of one length."""
        kept = self.length == length
        return Paths(**{name: values[kept] for name, values in vars(self).items()})

    def repeats(self, inputs: int, unique: int) -> np.ndarray:
        """Count the paths of each word and input; all have the same length.

        Returns:
            Shape (words, inputs), words that do not occur included.
        """
        words = unique ** int(self.length[0])
        counts = np.zeros((words, inputs), dtype=np.int64)
        np.add.at(counts, (self.word, self.start), 1)
        return counts


def enumerate_paths(
    matrices: Sequence[np.ndarray],
    *,
    gates: Sequence[np.ndarray] | None = None,
    indices: Sequence[np.ndarray] | None = None,
    unique: int = 1,
    skip: bool = True,
) -> Paths:
    """List every path, layer by layer.

    All gates are open by default. ``indices`` say which of the ``unique`` different
    weights is on each edge. Units are in columns of the matrices, and layers from the
    second on may have a skip.
    """
    widths = [matrix.shape[1] for matrix in matrices]
    gates = gates or [np.ones(width, dtype=bool) for width in widths]
    indices = indices or [np.zeros(m.shape, dtype=np.int64) for m in matrices]
    start, end = (a.ravel() for a in np.indices(matrices[0].shape))
    paths = Paths(
        start=start,
        end=end,
        length=np.ones(len(start), dtype=np.int64),
        product=matrices[0].ravel(),
        open=gates[0][end],
        word=indices[0].ravel(),
    )
    for matrix, gate, index in zip(matrices[1:], gates[1:], indices[1:], strict=True):
        taken = _extended(paths, matrix, gate, index, unique)
        pairs = {k: (v, vars(taken)[k]) for k, v in vars(paths).items()}
        joined = {name: np.concatenate(pair) for name, pair in pairs.items()}
        paths = Paths(**joined) if skip else taken
    return paths


def _extended(
    paths: Paths, matrix: np.ndarray, gate: np.ndarray, index: np.ndarray, unique: int
) -> Paths:
    """Return each path continued into each unit of a layer."""
    width = matrix.shape[1]
    old = np.repeat(np.arange(len(paths)), width)
    end = np.tile(np.arange(width), len(paths))
    came = paths.end[old]
    return replace(
        paths,
        start=paths.start[old],
        end=end,
        length=paths.length[old] + 1,
        product=paths.product[old] * matrix[came, end],
        open=paths.open[old] & gate[end],
        word=paths.word[old] * unique + index[came, end],
    )


def propagated(
    matrices: Sequence[np.ndarray], gates: Sequence[np.ndarray], x: np.ndarray
) -> np.ndarray:
    """Return the output by path length, without listing the paths.

    One vector per length goes through the layers. At each layer it takes the skip, or
    the branch, which makes its paths longer by one.
    """
    terms = np.zeros((len(matrices), matrices[0].shape[1]))
    terms[0] = (x @ matrices[0]) * gates[0]
    for matrix, gate in zip(matrices[1:], gates[1:], strict=True):
        terms[1:] += (terms[:-1] @ matrix) * gate
    return terms.sum(axis=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Recorded:
    """Weights, open gates and outputs, recorded in one pass through a network."""

    matrices: list[np.ndarray]  # weights of the layers, units in columns
    # Which units were open, one array per layer, shape (samples, width).
    gates: list[np.ndarray]
    output: np.ndarray  # the outputs, shape (samples,)


def recorded(network: "networks.PathNetwork", x: np.ndarray) -> Recorded:
    """Run a network on inputs, shape (samples, inputs), and keep its gates."""
    import torch

    gates: list[np.ndarray] = []

    def keep(module: Any, given: Any, out: Any) -> None:
        gates.append((out > 0).cpu().numpy())

    hooks = [gate.register_forward_hook(keep) for gate in network.gates]
    try:
        with torch.no_grad():
            device = network.weights.device
            output = network(torch.as_tensor(x, device=device)).cpu().numpy()
            layers = range(network.blueprint.depth)
            matrices = [network.matrix(layer).cpu().numpy() for layer in layers]
    finally:
        for hook in hooks:
            hook.remove()
    return Recorded(matrices=matrices, gates=gates, output=output)


def built(
    blueprint: PathBlueprint, *, seed: int, device: str = "cpu"
) -> "networks.PathNetwork":
    """Build a network in double precision."""
    return networks.build(blueprint, seed=seed, device=device)


def coin_outputs(
    matrices: Sequence[np.ndarray], x: np.ndarray, *, chance: float, skip: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the output in every state of the gates, and how probable each is.

    Shapes are (states, samples) and (states,). Layers have one width, units in columns;
    ``chance`` is that of an open gate; layers from the second on may have a skip.
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
