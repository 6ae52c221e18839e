"""Sizes, decay and length of training of the networks brought to rest."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import ConfigError, stream
from theodolite.studies import StudyConfig

# Linear and ReLU networks under gradient descent, ReLU ones under descent by single
# samples, and networks that are written down rather than trained.
TRAINED = ("linear", "relu", "single_samples")
CONSTRUCTED = "constructed"
INPUTS = 16


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Normalised networks on two classes of digits."""

    samples: int = 40  # training samples, half of each class
    depth: int = 3  # layers L, of 16 inputs and units each
    decays: tuple[float, ...] = (0.1,)  # weight decays λ of the sum of squares
    steps: int = 1500  # steps of gradient descent
    polish: int = 300  # further steps of a quasi-Newton method, for linear networks
    widths: tuple[int, ...] = (2, 3, 8)  # widths p of the orthogonal matrices

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.depth < 3:
            raise ConfigError(
                f"depth is {self.depth}: pass 3 or more, so that hidden layers can be "
                "compared with one another"
            )
        if min(self.decays) <= 0:
            raise ConfigError(
                f"decays are {self.decays}: pass positive ones, without which nothing "
                "is said of the layers"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units from the inputs to the output."""
        return (INPUTS,) * self.depth + (1,)


PRESETS = {
    "smoke": Config(n_seeds=3, steps=700),
    "quick": Config(n_seeds=5, steps=1000),
    "paper": Config(n_seeds=10, decays=(0.1, 0.01), steps=20_000, polish=3000),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per kind of training and decay, and one of written networks."""
    trained = [{"kind": k, "decay": d} for d in config.decays for k in TRAINED]
    return [*trained, {"kind": CONSTRUCTED, "decay": 0.0}]


LAYERS = 4
WIDTH = 5
DRAWS = 60  # normal matrices per trial
DIAGONAL_INPUT = (0.9, 0.5, 0.3)


@dataclass(frozen=True, kw_only=True, eq=False)
class Instance:
    """Normalised layers and one input."""

    layers: tuple[np.ndarray, ...]  # one matrix per layer, each of Frobenius norm 1
    x: np.ndarray  # the input, of norm 1
    relu: bool  # whether hidden layers are rectified
    rank: int = 0  # rank of the hidden matrices

    @property
    def cosine(self) -> float:
        """What is left of the input in the image of the first matrix."""
        seen = self.layers[0] @ self.x * np.sqrt(self.rank)
        return float(np.linalg.norm(seen))


def instances(config: Config, trial: int) -> dict[str, Instance]:
    """Return the networks of a trial by name."""
    rng = stream(config.seed, "stationary layers", trial)
    named = {"random": _random(rng)}
    image = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
    inside, mixed = image[:, 0], unit(image[:, 0] + 0.5 * image[:, -1])
    named["projection, rank 1, along"] = _equal(image[:, :1], inside)
    named["projection, rank 1, aslant"] = _equal(image[:, :1], mixed)
    named["projection, rank 2, inside"] = _equal(image[:, :2], inside)
    for width in config.widths:
        named[f"orthogonal, width {width}"] = _orthogonal(rng, width)
    for name, signs in (("positive", 1.0), ("signed", np.array([1, -1, 1, -1, -1]))):
        layers, x = _chain(rng, signs)
        for relu in (True, False):
            gates = "" if relu else ", ungated"
            named[f"chain, {name}{gates}"] = Instance(layers=layers, x=x, relu=relu)
    diagonal = tuple(np.diag(unit(rng.uniform(0.5, 1, 3))) for _ in range(LAYERS - 1))
    last = unit(rng.uniform(0.5, 1, (1, 3)))
    x = unit(rng.uniform(0.5, 1, 3))
    named["diagonal"] = Instance(layers=(*diagonal, last), x=x, relu=True)
    return named


def unit(array: np.ndarray) -> np.ndarray:
    """Scale to Frobenius norm 1."""
    return array / np.linalg.norm(array)


def _random(rng: np.random.Generator) -> Instance:
    """Draw a ReLU network of which some unit is active in every layer."""
    while True:
        layers = [unit(rng.normal(size=(WIDTH, WIDTH))) for _ in range(LAYERS - 1)]
        layers.append(unit(rng.normal(size=(1, WIDTH))))
        x = unit(rng.normal(size=WIDTH))
        state = x
        for layer in layers[:-1]:
            state = np.maximum(layer @ state, 0)
        if np.linalg.norm(state) > 1e-3:
            return Instance(layers=tuple(layers), x=x, relu=True)


def _equal(basis: np.ndarray, x: np.ndarray) -> Instance:
    """Return equal projections, the last layer along the features."""
    rank = basis.shape[1]
    projection = basis @ basis.T / np.sqrt(rank)
    last = unit(projection @ x)[None, :]
    layers = (*(projection,) * (LAYERS - 1), last)
    return Instance(layers=layers, x=x, relu=False, rank=rank)


def _orthogonal(rng: np.random.Generator, width: int) -> Instance:
    """Return different orthogonal matrices, the last layer along the features."""
    layers = [
        np.linalg.qr(rng.normal(size=(width, width)))[0] / np.sqrt(width)
        for _ in range(LAYERS - 1)
    ]
    state = x = unit(rng.normal(size=width))
    for layer in layers:
        state = layer @ state
    return Instance(layers=(*layers, unit(state)[None, :]), x=x, relu=False, rank=width)


def _chain(
    rng: np.random.Generator, signs: np.ndarray | float
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Return rank-one layers that hand one direction on to the next."""
    x = unit(rng.normal(size=WIDTH))
    drawn = (np.abs(rng.normal(size=WIDTH)) * signs for _ in range(LAYERS - 1))
    ends = [x, *(unit(one) for one in drawn)]
    layers = [np.outer(ends[k + 1], ends[k]) for k in range(LAYERS - 1)]
    return (*layers, ends[-1][None, :]), x
