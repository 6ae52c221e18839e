r"""How many paths a fully connected network has, by their length, exactly.

A path of length $r$ takes the first layer and $r - 1$ of the other $p - 1$, and passes
the rest by their skips; each layer taken offers $n$ units.
"""

import math
from fractions import Fraction

from theodolite.core import ConfigError, as_whole


def check_length(length: object, depth: int) -> int:
    """Return a path length from 1 to the depth, or refuse it in a sentence."""
    if isinstance(length, bool) or not isinstance(length, int):
        length = as_whole("the path length", length, 1)
    if not 1 <= length <= depth:
        raise ConfigError(
            f"the path length is {length} in a network of depth {depth}: pass a whole "
            f"number from 1 to {depth}"
        )
    return length


def path_counts(depth: int, width: int) -> tuple[int, ...]:
    r"""Paths of each length from one input to the output.

    $\gamma_r = \binom{p-1}{r-1} n^r$ for $r = 1, \dots, p$; their sum is
    $n(1+n)^{p-1}$.

    Notation: $p$ depth, $n$ width, $\gamma_r$ paths of length $r$.
    Assumes: layers of equal width, a skip around each but the first, and an output
        that sums the last layer.

    Returns:
        Python's whole numbers, so that none is rounded or wraps around.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, below Eq 8.

    Example:
        >>> path_counts(3, 2)
        (2, 8, 8)
    """
    depth, width = as_whole("depth", depth, 1), as_whole("width", width, 1)
    return tuple(math.comb(depth - 1, r - 1) * width**r for r in range(1, depth + 1))


def path_masses(depth: int, width: int, inputs: int) -> tuple[int, ...]:
    r"""Paths of each length from all inputs, $\psi_r = d\,\gamma_r$.

    Notation: $d$ inputs, $\psi_r$ the mass of definition 2.
    Assumes: as :func:`path_counts`.

    Example:
        >>> path_masses(5, 4, 3)
        (12, 192, 1152, 3072, 3072)
    """
    inputs = as_whole("inputs", inputs, 1)
    return tuple(inputs * count for count in path_counts(depth, width))


def plain_path_count(depth: int, width: int) -> int:
    r"""Paths from one input of a network without skips, $\gamma = \prod_i n_i = n^p$.

    Assumes: as :func:`path_counts`, without the skips.

    Example:
        >>> plain_path_count(3, 4)
        64
    """
    return as_whole("width", width, 1) ** as_whole("depth", depth, 1)


def configuration_repeats(
    depth: int, width: int, inputs: int, unique: int
) -> tuple[Fraction, ...]:
    r"""How often each product of $r$ weights occurs, $\psi_r / \Lambda^r$.

    Notation: $\Lambda$ different weights.
    Assumes: as :func:`path_counts`; each node has each weight on equally many of the
        edges that leave it, or of those that reach it.

    Returns:
        A fraction a length; not whole where $\Lambda$ does not divide $n$, so that
        the assumption cannot be met.

    References:
        Littwin & Wolf (2016), lemma 1.

    Example:
        >>> [int(n) for n in configuration_repeats(3, 4, 3, 2)]
        [6, 24, 24]
    """
    unique = as_whole("unique", unique, 1)
    masses = path_masses(depth, width, inputs)
    return tuple(Fraction(mass, unique**r) for r, mass in enumerate(masses, start=1))
