r"""A residual network with small weights that maps given points to given points.

Each unit $x + W_2\,\mathrm{ReLU}(W_1 x + b)$ moves one sample a short step and leaves
the others alone; a chain of them walks every sample along a path on the sphere.

Notation: $m$ samples, $R$ units, $\rho$ least distance between any two of all samples
and labels, $\ell$ length of a path, $s = \ell m/R$ length of a step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from theodolite.core import ConfigError, Numbers, as_integer, as_numbers

from .sphere_paths import (
    SpherePath,
    as_between,
    check_unit_points,
    minimum_distance,
    separated_labels,
    sphere_path,
)

Unit = tuple[np.ndarray, np.ndarray, np.ndarray]
Propagate = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False, kw_only=True)
class InterpolatingNetwork:
    r"""Weights of the network, and the path of each sample through it.

    Attributes:
        first: $W_1$ of each unit, shape (units, d, d).
        second: $W_2$ of each unit, shape (units, d, d).
        bias: $b$ of each unit, shape (units, d).
        targets: Labels that it reaches, after ``perturb``, shape (m, d).
        rho: $\rho$ of samples and targets.
        paths: Path of each sample.
        steps: Units per sample, shape (m,).
        bound: Largest norm that the proof allows, :func:`weight_norm_bound`.
    """

    first: np.ndarray
    second: np.ndarray
    bias: np.ndarray
    targets: np.ndarray
    rho: float
    paths: tuple[SpherePath, ...]
    steps: np.ndarray
    bound: float

    @property
    def units(self) -> int:
        """Number of residual units, the paper's R."""
        return len(self.first)

    @property
    def lengths(self) -> np.ndarray:
        """Length of each sample's path, shape (m,)."""
        return np.array([path.length for path in self.paths])

    @property
    def norms(self) -> np.ndarray:
        """Frobenius norms of both matrices of each unit, shape (units, 2)."""
        both = np.stack([self.first, self.second], axis=1)
        return np.linalg.norm(both, axis=(2, 3))

    @property
    def max_norm(self) -> float:
        """Largest Frobenius norm of a matrix."""
        return float(self.norms.max())

    @property
    def max_bias(self) -> float:
        """Largest norm of a bias."""
        return float(np.linalg.norm(self.bias, axis=1).max())

    def apply(self, x: Numbers) -> np.ndarray:
        """Map samples, rows of an array of shape (k, d)."""
        return self.trajectory(x)[-1]

    def trajectory(self, x: Numbers) -> np.ndarray:
        """Return samples before and after every unit, shape (units + 1, k, d)."""
        x = as_numbers("x", x, "samples", self.first.shape[2])
        states = [x]
        for unit in zip(self.first, self.second, self.bias, strict=True):
            states.append(residual_unit(states[-1], *unit))
        return np.stack(states)


def residual_unit(
    x: np.ndarray, first: np.ndarray, second: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    r"""Return $x + W_2\,\mathrm{ReLU}(W_1 x + b)$ (Eq 3) for every row of $x$.

    Sums are taken row by row, so that a sample's result does not depend on the others.
    """
    hidden = np.maximum((x[:, None, :] * first).sum(axis=2) + bias, 0.0)
    return x + (hidden[:, None, :] * second).sum(axis=2)


def weight_norm_bound(*, rho: float, samples: int, units: int) -> float:
    r"""Return the norm that the proof allows, $\sqrt{8\pi m(1 + \rho(m-1)/2)/R}/\rho$.

    Paths are no longer than $\pi(1 + \rho(m-1)/2)$ and a sample has at least
    $\lfloor R/m \rfloor$ units, in place of $R/m$ where $m$ does not divide $R$.

    Assumes: unit vectors at least $\rho$ apart in at least 3 dimensions.

    References:
        Li et al. (2016), Demystifying ResNet, lemmas 1 and 2; corrects Eqs 6 and 20,
        where $m + 1/\rho$ stands outside the root and $n$ in place of $R$.

    Example:
        >>> round(weight_norm_bound(rho=0.6192085644, samples=3, units=480), 6)
        0.814469
    """
    rho = as_between("rho", rho, np.inf)
    samples, units = _counts(samples, units)
    length = np.pi * (1 + rho * (samples - 1) / 2)
    return float(np.sqrt(8 * length / (units // samples)) / rho)


def step_unit(here: Numbers, there: Numbers, rho: float) -> Unit:
    r"""Return the unit that moves one point a step, and no point $\rho/2$ away.

    $W_1$ has the one row $\frac{\sqrt{8s}}\rho a^\top$, $W_2$ the one column
    $\frac{\sqrt{8/s}}\rho(a' - a)$ and $b$ the one entry
    $\frac{\sqrt{8s}}\rho(\rho^2/8 - |a|^2)$, with $s = |a' - a|$: both norms are
    $\sqrt{8s}/\rho$.

    Assumes: $|a| = 1$ up to rounding, which the bias corrects.

    References:
        Li et al. (2016), Demystifying ResNet, lemma 1, Eqs 15–17.
    """
    here = as_numbers("here", here, "width")
    there = as_numbers("there", there, here.size)
    rho = as_between("rho", rho, np.inf)
    d = here.size
    first, second, bias = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    step = float(np.linalg.norm(there - here))
    if step > 0:
        first[0] = np.sqrt(8 * step) / rho * here
        second[:, 0] = np.sqrt(8 / step) / rho * (there - here)
        bias[0] = np.sqrt(8 * step) / rho * (rho**2 / 8 - here @ here)
    return first, second, bias


def interpolating_network(
    x: Numbers,
    y: Numbers,
    units: int,
    *,
    perturb: float | None = None,
    seed: int = 0,
    closed_loop: bool = True,
    propagate: Propagate = residual_unit,
) -> InterpolatingNetwork:
    r"""Return the network of Eq 3 that maps every $x$ to its $y$.

    Samples move one after the other, each along the shortest arc to its label, round
    the caps of chordal radius $\rho/2$ around the current places of all others. Each
    sample gets the same number of units; the longest paths share the remainder.

    In exact arithmetic the weights follow from the paths alone. In floating point a
    deviation grows by a factor $\exp(\sqrt{8/\rho^2 - 1}\,\ell)$ along a path, so the
    loop is closed: each unit starts from where the units before it really left the
    sample. The weights are then right for the arithmetic of ``propagate`` only.

    Assumes: unit-norm rows in at least 3 dimensions, no two of them equal.

    Args:
        x: Inputs, shape (m, d).
        y: Labels, shape (m, d).
        units: Residual units, at least one per sample.
        perturb: Distance by which labels that coincide with another point are moved
            on the sphere; without it they raise an error.
        seed: Seed of the directions of these moves.
        closed_loop: Whether units start from propagated samples, not from the path.
        propagate: How a unit acts on all samples: rows, $W_1$, $W_2$, $b$ to rows.

    References:
        Li et al. (2016), Demystifying ResNet, theorem 1, lemmas 1 and 2, Eq 3.

    Example:
        >>> x = np.array([[0.6, 0.0, 0.8], [-0.6, 0.8, 0.0]])
        >>> net = interpolating_network(x, np.eye(3)[:2], units=20)
        >>> bool(np.abs(net.apply(x) - np.eye(3)[:2]).max() < 1e-12)
        True
    """
    x, y = check_unit_points(x, y)
    _, units = _counts(len(x), units)
    if perturb is not None:
        y = separated_labels(x, y, perturb, seed=seed)
    rho = minimum_distance(np.concatenate([x, y]))
    if rho < 1e-9:
        raise ConfigError(
            f"two of the samples and labels are {rho:.1g} apart, and the construction "
            "wants all of them distinct: perturb repeated labels, for instance with "
            "perturb=0.1, and drop repeated samples"
        )
    paths = _paths(x, y, rho)
    steps = _shares(np.array([path.length for path in paths]), units)
    first, second, bias = _walk(x, paths, steps, rho, closed_loop, propagate)
    bound = weight_norm_bound(rho=rho, samples=len(x), units=units)
    return InterpolatingNetwork(
        first=first,
        second=second,
        bias=bias,
        targets=y,
        rho=rho,
        paths=paths,
        steps=steps,
        bound=bound,
    )


def _paths(x: np.ndarray, y: np.ndarray, rho: float) -> tuple[SpherePath, ...]:
    stand = x.copy()
    paths = []
    for place, label in enumerate(y):
        others = np.delete(stand, place, axis=0)
        paths.append(sphere_path(x[place], label, others, rho / 2))
        stand[place] = label
    return tuple(paths)


def _shares(lengths: np.ndarray, units: int) -> np.ndarray:
    """Return the units per sample: equal, and one more for the longest paths."""
    share, rest = divmod(units, len(lengths))
    steps = np.full(len(lengths), share)
    steps[np.argsort(-lengths, kind="stable")[:rest]] += 1
    return steps


def _walk(
    x: np.ndarray,
    paths: tuple[SpherePath, ...],
    steps: np.ndarray,
    rho: float,
    closed_loop: bool,
    propagate: Propagate,
) -> Unit:
    units: list[Unit] = []
    stand = x.copy()
    for place, (path, count) in enumerate(zip(paths, steps, strict=True)):
        for before, after in pairwise(path.steps(int(count))):
            here = stand[place] if closed_loop else before
            units.append(step_unit(here, after, rho))
            if closed_loop:
                stand = propagate(stand, *units[-1])
    first, second, bias = (np.stack(part) for part in zip(*units, strict=True))
    return first, second, bias


def _counts(samples: int, units: int) -> tuple[int, int]:
    samples = as_integer("samples", samples, 1)
    what = f"the number of units for {samples} samples"
    return samples, as_integer(what, units, samples)
