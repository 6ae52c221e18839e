"""Degrees, sizes and learning rate of the losses of two degrees."""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from theodolite.core import ConfigError, stream
from theodolite.studies import StudyConfig


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random losses of two degrees, and small batch-normalised networks."""

    # Pairs of degrees, the lower one first.
    degrees: tuple[tuple[int, int], ...] = ((2, 3), (2, 5), (3, 4))
    weights: int = 4  # number of weights, the paper's Λ
    step: float = 1e-4  # learning rate of the one step that is made
    width: int = 16  # units of the networks with live deviations

    def __post_init__(self) -> None:
        super().__post_init__()
        wrong = [pair for pair in self.degrees if not 2 <= pair[0] < pair[1]]
        if wrong:
            raise ConfigError(
                f"degrees {wrong[0]} are no rising pair from 2 up: pass for instance "
                "(2, 3)"
            )


PRESETS = {
    "smoke": Config(n_seeds=6, degrees=((2, 3), (2, 5))),
    "quick": Config(n_seeds=20),
    "paper": Config(n_seeds=200, degrees=((2, 3), (2, 5), (3, 4), (3, 6))),
}


def cells(config: Config) -> list[dict[str, Any]]:
    """Return one cell per pair of degrees, and one of networks."""
    pairs = [{"shallow": m, "deep": p} for m, p in config.degrees]
    return [*pairs, {"shallow": 0, "deep": 0}]


# The derivative that vanishes at the point: none (free); by a scale of a layer without
# skip (unskipped), or with one, the deep gradient being longer (dominant) or shorter
# (weak); by the norm (norm); all (flat). OPPOSITE: opposite gradients of three ratios.
OPPOSITE: tuple[str, ...] = ("deep_opposite", "middle_opposite", "shallow_opposite")
KINDS = ("free", "unskipped", "dominant", "weak", "norm", "flat", *OPPOSITE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Instance:
    """A loss of two degrees and a point."""

    shallow: np.ndarray  # tensor of the lower degree
    deep: np.ndarray  # tensor of the higher degree
    scales: np.ndarray  # scale over deviation of every layer, of either sign
    weights: np.ndarray  # the point


def instance(config: Config, kind: str, m: int, p: int, trial: int) -> Instance:
    """Return a random loss of a trial, moved to the point that its kind requires."""
    rng = stream(config.seed, "two degrees", kind, m, p, trial)
    size = config.weights
    w = rng.normal(size=size)
    shallow, deep = (rng.normal(size=(size,) * r) / size ** (r / 2) for r in (m, p))
    scales = rng.uniform(0.5, 1.5, p) * rng.choice([-1.0, 1.0], p)
    top = float(np.prod(scales[m:]))  # factor of the deep part over the shallow
    if kind in ("unskipped", "norm"):
        share = 1.0 if kind == "unskipped" else m / p
        wanted = -share * _value(shallow, w) / top
        deep = deep + (wanted - _value(deep, w)) * _power(w / (w @ w), p)
    elif kind in ("dominant", "weak"):
        deep = deep - _value(deep, w) * _power(w / (w @ w), p)
        ratio = rng.uniform(1.05, 3.0) if kind == "dominant" else rng.uniform(0.1, 0.95)
        deep = deep * (ratio * _length(shallow, w) / (abs(top) * _length(deep, w)))
    elif kind == "flat" or kind in OPPOSITE:
        shallow, deep = _tangents(rng, w, m, p, kind, top)
    return Instance(shallow=shallow, deep=deep, scales=scales, weights=w)


def _tangents(
    rng: np.random.Generator, w: np.ndarray, m: int, p: int, kind: str, top: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return tensors of vanishing value with opposite gradients, or with none."""
    unit = w / np.linalg.norm(w)
    side = rng.normal(size=w.shape)
    side -= (side @ unit) * unit
    if kind == "flat":
        return tuple(_power(side, 2, unit, r - 2) for r in (m, p))  # type: ignore[return-value]
    ratio = dict(zip(OPPOSITE, (1.5, (1 + m / p) / 2, m / p / 2), strict=True))[kind]
    shallow, deep = (_power(side, 1, unit, r - 1) for r in (m, p))
    return shallow, deep * (-ratio * _length(shallow, w) / (top * _length(deep, w)))


def _power(
    first: np.ndarray, times: int, second: np.ndarray | None = None, rest: int = 0
) -> np.ndarray:
    """Return the outer product of vectors, each repeated."""
    vectors = [first] * times + ([] if second is None else [second] * rest)
    return reduce(np.multiply.outer, vectors)


def _value(tensor: np.ndarray, w: np.ndarray) -> float:
    return float(reduce(lambda rest, _: rest @ w, range(tensor.ndim), tensor))


def _length(tensor: np.ndarray, w: np.ndarray) -> float:
    """Return the length of a form's gradient."""
    sides = (
        reduce(lambda rest, _: rest @ w, range(tensor.ndim - 1), moved)
        for moved in (np.moveaxis(tensor, axis, 0) for axis in range(tensor.ndim))
    )
    return float(np.linalg.norm(np.sum(list(sides), axis=0)))
