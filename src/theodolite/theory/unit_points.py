"""Points on the unit sphere: how far apart they are, and how to set them apart."""

import numpy as np

from theodolite.core import ConfigError, Numbers, as_numbers, stream
from theodolite.theory.moments import paired_samples

# Unit norms are asked for, and points are told apart, to this accuracy.
_UNIT = 1e-9
# Candidates tried for a label that has to move.
_CANDIDATES = 64


def minimum_distance(points: Numbers) -> float:
    r"""Least distance between two rows; infinite for one row.

    Assumes: nothing.

    References:
        Li et al. (2016), Demystifying ResNet, definition 3.

    Example:
        >>> minimum_distance(np.eye(3)).__round__(6)
        1.414214
    """
    points = as_numbers("points", points, "points", "width")
    least = np.inf
    for place in range(1, len(points)):
        gaps = np.linalg.norm(points[:place] - points[place], axis=1)
        least = min(least, float(gaps.min()))
    return float(least)


def separated_labels(
    x: Numbers, y: Numbers, distance: float, *, seed: int = 0
) -> np.ndarray:
    r"""Labels of unit norm, moved where they coincide with another point.

    A label that equals a sample or an earlier label goes ``distance`` away on the
    sphere, in that one of 64 random directions which ends furthest from all others.

    Assumes: unit-norm rows.

    Args:
        x: Inputs, shape (m, d).
        y: Labels, shape (m, d).
        distance: Chord between a label and where it is moved to, in (0, 1).
        seed: Of the directions.

    References:
        Li et al. (2016), Demystifying ResNet, after assumption 2.

    Example:
        >>> x, y = np.eye(3)[:2], np.eye(3)[[2, 2]]
        >>> minimum_distance(separated_labels(x, y, 0.2)).__round__(10)
        0.2
    """
    x, y = _on_sphere(x, y)
    distance = as_between("perturb", distance, 1.0)
    rng, moved = stream(seed, "perturb"), y.copy()
    for place in range(len(y)):
        known = np.concatenate([x, moved[:place]])
        if np.linalg.norm(known - y[place], axis=1).min() > _UNIT:
            continue
        everyone = np.concatenate([known, y[place:]])
        side = rng.normal(size=(_CANDIDATES, y.shape[1]))
        side -= (side @ y[place])[:, None] * y[place]
        side /= np.linalg.norm(side, axis=1, keepdims=True)
        angle = 2 * np.arcsin(distance / 2)
        tried = np.cos(angle) * y[place] + np.sin(angle) * side
        tried /= np.linalg.norm(tried, axis=1, keepdims=True)
        gaps = np.linalg.norm(tried[:, None] - everyone, axis=2).min(axis=1)
        moved[place] = tried[np.argmax(gaps)]
    return moved


def check_unit_points(x: Numbers, y: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Return samples and labels as arrays; refuse what no sphere can walk."""
    x, y = _on_sphere(x, y)
    check_width(x.shape[1])
    return x, y


def check_width(width: int) -> None:
    """Refuse a circle."""
    if width < 3:
        raise ConfigError(
            f"data of width {width}: on a circle no sample can pass another; "
            "append zeros to reach at least 3 dimensions"
        )


def check_norms(name: str, points: np.ndarray) -> None:
    """Refuse rows that are not of unit norm."""
    norms = np.linalg.norm(points, axis=1)
    if norms.size and np.abs(norms - 1).max() > _UNIT:
        raise ConfigError(
            f"{name} have norms from {norms.min():.4g} to {norms.max():.4g}, and "
            "the construction wants 1: divide each row by its norm"
        )


def as_between(name: str, value: object, high: float) -> float:
    """Return a number between 0 and a limit, both left out, in double precision."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if isinstance(value, bool) or not number or not 0 < value < high:
        raise ConfigError(f"{name} is {value!r}: pass a number in (0, {high:g})")
    return float(value)


def _on_sphere(x: Numbers, y: Numbers) -> tuple[np.ndarray, np.ndarray]:
    x, y = paired_samples(x, y)
    check_norms("inputs", x)
    check_norms("labels", y)
    return x, y
