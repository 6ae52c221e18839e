r"""Second moments of data: all that a linear network's loss sees.

Notation: $\Sigma^{XX} = \frac1m\sum x x^\top$, $\Sigma^{YX} = \frac1m\sum y x^\top$,
$\Sigma^{YY} = \frac1m\sum y y^\top$; samples are rows of the arrays.
"""

from dataclasses import dataclass

import numpy as np

from theodolite.core import (
    ConfigError,
    Numbers,
    Samples,
    Square,
    as_numbers,
    hold_numbers,
)


@dataclass(frozen=True, eq=False)
class Moments:
    r"""Second moments of inputs and targets.

    Attributes:
        xx: $\Sigma^{XX}$.
        yx: $\Sigma^{YX}$.
        yy: $\Sigma^{YY}$.
    """

    xx: Square
    yx: Square
    yy: Square

    def __post_init__(self) -> None:
        hold_numbers(self, xx=("width", "width"))
        width = self.xx.shape[0]
        hold_numbers(self, **dict.fromkeys(("xx", "yx", "yy"), (width, width)))

    @property
    def gap(self) -> Square:
        r"""$M = \Sigma^{XX} - \Sigma^{YX}$, minus the gradient's data at identity."""
        return self.xx - self.yx

    @property
    def width(self) -> int:
        """Dimension of inputs and targets."""
        return self.xx.shape[0]

    def optimal_loss(self) -> float:
        r"""Least half mean square over all linear maps.

        $\frac12(\mathrm{tr}\,\Sigma^{YY} -
        \mathrm{tr}\,\Sigma^{YX}(\Sigma^{XX})^{+}\Sigma^{XY})$.
        """
        explained = self.yx @ np.linalg.pinv(self.xx, hermitian=True) @ self.yx.T
        return 0.5 * float(np.trace(self.yy) - np.trace(explained))


def moments(x: Numbers, y: Numbers) -> Moments:
    r"""Return the second moments of a dataset.

    Assumes: samples as rows; nothing is centred.

    Args:
        x: Inputs, shape (m, d).
        y: Targets, shape (m, d).

    References:
        Li et al. (2016), Demystifying ResNet, theorem 2.

    Example:
        >>> x = np.array([[1.0, 0.0], [0.5, -1.0], [-1.0, 2.0]])
        >>> y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        >>> np.linalg.svd(moments(x, y).gap)[1].round(10)
        array([1.50748094, 0.11055972])
    """
    x, y = paired_samples(x, y)
    m = len(x)
    return Moments(x.T @ x / m, y.T @ x / m, y.T @ y / m)


def paired_samples(x: Numbers, y: Numbers) -> tuple[Samples, Samples]:
    """Return inputs and targets as float64; refuse what no residual network can see."""
    x = as_numbers("x", x, "samples", "width")
    y = as_numbers("y", y, "samples", "width")
    if x.shape != y.shape or len(x) == 0:
        raise ConfigError(
            f"inputs of shape {x.shape} and targets of shape {y.shape}: a network of "
            "constant width wants two arrays of equal shape (samples, width)"
        )
    return x, y
