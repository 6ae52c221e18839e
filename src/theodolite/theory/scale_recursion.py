r"""Sizes of the layers of a wide residual network, each divided by its deviation."""

from dataclasses import dataclass

import numpy as np

from theodolite.core import as_whole

_NODES = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerSizes:
    r"""Layers 1 to p of a wide network at its start.

    Attributes:
        square: $E[N_l(x)^2]$ of a unit.
        mean: $E[N_l(x)]$.
        overlap: $E[N_l(x) N_l(x')]$ of two independent inputs.
        deviation: $\sigma_l$, what the layer's ReLU outputs were divided by.
    """

    square: np.ndarray
    mean: np.ndarray
    overlap: np.ndarray
    deviation: np.ndarray


def scalar_norm_sizes(depth: int) -> LayerSizes:
    r"""Return the sizes of $N_{l+1} = N_l + R(W N_l)/\sigma_{l+1}$, with $N_0 = 0$.

    Inputs are standard normal, weights have variance 1/fan-in and the width goes to
    infinity. Outputs of ReLU have a mean, and $N_l \geq 0$, so that their product
    counts: with $q = E N^2$, $M = E N$,

    $$q' = q + \frac{q}{2\sigma^2} + \frac{2 M}{\sigma} \sqrt{\frac{q}{2\pi}},$$

    where a layer's input enters only by $q$, $M$ and the overlap $c$ of two inputs;
    $\sigma$ is the mean over units of $\mathrm{std}\,R(\sqrt{c}\,u + \sqrt{q-c}\,v)$
    over $v$.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, section 4.1,
        where $q' = 1 + q$ is printed.

    Example:
        >>> sizes = scalar_norm_sizes(2)
        >>> sizes.square.round(3), sizes.deviation.round(3)
        (array([1.467, 4.834]), array([0.584, 0.575]))
    """
    depth = as_whole("depth", depth, 1)
    # What the first layer reads: unit variance, no overlap; it adds to nothing.
    square, overlap = 1.0, 0.0
    sums = np.zeros(3)
    rows = []
    for _ in range(depth):
        deviation = _deviation(square, overlap)
        mean = np.sqrt(square / (2 * np.pi)) / deviation
        cross = 2 * sums[1] * mean
        sums += (
            square / 2 / deviation**2 + cross,
            mean,
            _product(square, overlap) / deviation**2 + cross,
        )
        square, overlap = float(sums[0]), float(sums[2])
        rows.append((*sums, deviation))
    found = np.array(rows)
    return LayerSizes(
        square=found[:, 0],
        mean=found[:, 1],
        overlap=found[:, 2],
        deviation=found[:, 3],
    )


def _product(square: float, overlap: float) -> float:
    r"""Return $E[R(h) R(h')]$ of normal numbers with these moments."""
    angle = np.arccos(np.clip(overlap / square, -1.0, 1.0))
    shape = np.sin(angle) + (np.pi - angle) * np.cos(angle)
    return square * float(shape) / (2 * np.pi)


def _deviation(square: float, overlap: float) -> float:
    """Return the mean over units of the deviation over inputs."""
    from scipy.special import ndtr

    u, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    centre, spread = np.sqrt(overlap) * u, np.sqrt(square - overlap)
    t = centre / spread
    density = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    first = centre * ndtr(t) + spread * density
    second = (centre**2 + spread**2) * ndtr(t) + centre * spread * density
    return float(weights @ np.sqrt(np.maximum(second - first**2, 0.0)))
