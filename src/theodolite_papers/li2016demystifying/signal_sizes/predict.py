"""Second moments of signals through units with He initialisation."""

import numpy as np

from theodolite.core import Row, Rows
from theodolite.data import load

from ..shared.problems import closed
from .config import KINDS, Config


def predict(config: Config) -> Rows:
    r"""Follow the mean square of each pixel from unit to unit.

    A layer of ReLU and a convolution of variance $2/(9c)$ takes the mean square $q$
    to $Aq$, the mean over the nine pixels around, those outside the image being 0.
    Hence $q \to q + A^2 q$ a residual unit, about twice as much; without the shortcut
    $q \to A^2 q$; with normalisation the branch adds $A\hat z$, $z = A\hat q$, a hat
    dividing by the mean over pixels.

    Assumes: inputs of a layer symmetric about 0 over weights; many channels.
    """
    pixels = np.array(load(config.dataset).images[: config.images], dtype=float)
    pixels = (pixels - pixels.mean()) / pixels.std()
    pixels = pixels if pixels.ndim == 4 else pixels[..., None]
    square = (pixels**2).mean(axis=0).sum(axis=-1)
    rows: list[Row] = []
    for kind in KINDS:
        q = 2 / config.start_width * _around(square)
        for unit in range(1, max(config.units) + 1):
            q = _unit(kind, q)
            if unit in config.units:
                rows += closed({"variance": q.mean()}, kind=kind, units=unit)
    return Rows(rows)


def _unit(kind: str, q: np.ndarray) -> np.ndarray:
    if kind == "normalised":
        inner = _around(q / q.mean())
        return q + _around(inner / inner.mean())
    branch = _around(_around(q))
    return branch if kind == "plain" else q + branch


def _around(q: np.ndarray) -> np.ndarray:
    """Return the mean over nine pixels; pixels outside the image are zero."""
    wide = np.pad(q, 1)
    height, width = q.shape
    moved = (wide[i : i + height, j : j + width] for i in range(3) for j in range(3))
    return sum(moved, np.zeros_like(q)) / 9
