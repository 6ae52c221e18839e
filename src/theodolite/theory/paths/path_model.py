r"""The paths of a fully connected residual network, and its model as a spin glass.

A path of length $r$ takes the first layer and $r - 1$ of the other $p - 1$, and passes
the rest by their skips; each layer taken offers $n$ units.

The model of Littwin & Wolf (2016): the output is a sum over paths (Eq 8); equal
products of weights are gathered (Eq 9); gates are averaged as independent coins (Eq
10); the factor of each product is replaced by a normal variable of the least variance
(Eqs 11–13); weights are scaled to the sphere, which leaves $\beta$ and $\epsilon_r$
(Eqs 14 and 16).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from theodolite.core import (
    ConfigError,
    Numbers,
    PathBlueprint,
    as_integer,
    as_numbers,
)

from .length_weights import log_path_normaliser, path_weights

# Counts of deeper networks have too many digits to be written down.
_DEEPEST = 100_000


def path_counts(depth: int, width: int) -> tuple[int, ...]:
    r"""Return the number of paths of each length from one input to the output.

    $\gamma_r = \binom{p-1}{r-1} n^r$ for $r = 1, \dots, p$; their sum is
    $n(1+n)^{p-1}$.

    Notation: $p$ depth, $n$ width, $\gamma_r$ paths of length $r$.
    Assumes: layers of equal width, a skip around each except the first, and an output
        that sums the last layer.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, below Eq 8.

    Example:
        >>> path_counts(3, 2)
        (2, 8, 8)
    """
    depth = as_integer("depth", depth, 1, _DEEPEST)
    width = as_integer("width", width, 1)
    return tuple(math.comb(depth - 1, r - 1) * width**r for r in range(1, depth + 1))


def path_masses(depth: int, width: int, inputs: int) -> tuple[int, ...]:
    r"""Return the number of paths of each length from all inputs, $\psi_r = d\gamma_r$.

    Notation: $d$ inputs, $\psi_r$ the mass of definition 2.
    Assumes: as :func:`path_counts`.

    Example:
        >>> path_masses(5, 4, 3)
        (12, 192, 1152, 3072, 3072)
    """
    inputs = as_integer("inputs", inputs, 1)
    return tuple(inputs * count for count in path_counts(depth, width))


def plain_path_count(depth: int, width: int) -> int:
    r"""Return the paths from one input of a network without skips, $\gamma = n^p$.

    Example:
        >>> plain_path_count(3, 4)
        64
    """
    return as_integer("width", width, 1) ** as_integer("depth", depth, 1, _DEEPEST)


def configuration_repeats(
    depth: int, width: int, inputs: int, unique: int
) -> tuple[Fraction, ...]:
    r"""Return how often each product of $r$ weights occurs, $\psi_r / \Lambda^r$.

    Notation: $\Lambda$ different weights.
    Assumes: as :func:`path_counts`; each node has each weight on equally many of the
        edges that leave it, or of those that reach it.

    Returns:
        One fraction per length; not whole where $\Lambda$ does not divide $n$, so
        that the assumption cannot hold.

    References:
        Littwin & Wolf (2016), lemma 1.

    Example:
        >>> [int(n) for n in configuration_repeats(3, 4, 3, 2)]
        [6, 24, 24]
    """
    unique = as_integer("unique", unique, 1)
    masses = path_masses(depth, width, inputs)
    return tuple(Fraction(mass, unique**r) for r, mass in enumerate(masses, start=1))


@dataclass(frozen=True)
class Assumption:
    """Whether an assumption of the model holds for a network, with the numbers."""

    holds: bool
    why: str


@dataclass(frozen=True, kw_only=True, eq=False)
class PathModel:
    r"""The spin-glass model of a network with given weights.

    Notation: $p$ depth, $n$ width, $d$ inputs, $\Lambda$ different weights $w$ of root
    mean square $C$, $\rho$ the chance that a gate is open, $\tilde w = w/C$.
    Assumes: a ``PathBlueprint`` with skips; what else the model assumes is in
        ``independence``, ``redundancy``, ``uniformity`` and ``sphere``.

    Attributes:
        blueprint: The network.
        weights: Its different weights, shape ($\Lambda$,).
        gate: $\rho$.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, Eqs 4 to 16.

    Example:
        >>> plan = PathBlueprint(inputs=6, width=8, depth=5, unique=4)
        >>> model = PathModel(blueprint=plan, weights=[0.1, 0.4, -0.2, 0.3], gate=0.5)
        >>> round(model.beta, 6), model.redundancy.holds, model.independence.holds
        (0.547723, True, False)
    """

    blueprint: PathBlueprint
    weights: Numbers
    gate: float = 0.5

    def __post_init__(self) -> None:
        if not self.blueprint.skip:
            raise ConfigError(
                "the blueprint has no skips, and the model sums over paths of several "
                "lengths: pass one with skip=True"
            )
        if not 0 < self.gate <= 1:
            raise ConfigError(f"gate is {self.gate!r}: pass a chance above 0, up to 1")
        weights = as_numbers("weights", self.weights, self.blueprint.parameters)
        if not weights.any():
            raise ConfigError("all weights are 0: pass some that are not")
        object.__setattr__(self, "weights", weights)

    @property
    def unique(self) -> int:
        r"""Number of different weights $\Lambda$."""
        return self.blueprint.parameters

    @property
    def scale(self) -> float:
        """Root mean square C of the different weights (Eq 4)."""
        return float(np.sqrt(np.mean(np.square(np.asarray(self.weights)))))

    @property
    def beta(self) -> float:
        r"""$\beta = \rho n C / \sqrt\Lambda$ (Eq 16)."""
        return self.gate * self.blueprint.width * self.scale / math.sqrt(self.unique)

    @property
    def epsilons(self) -> np.ndarray:
        r"""$\epsilon_r$ of Eq 16, shape (depth,)."""
        return path_weights(self.blueprint.depth, self.beta)

    @property
    def independence(self) -> Assumption:
        """A1: no two paths share an input variable."""
        paths = sum(path_counts(self.blueprint.depth, self.blueprint.width))
        return Assumption(
            paths == 1, f"each input is the variable of {paths} paths; wanted is 1"
        )

    @property
    def redundancy(self) -> Assumption:
        """A2: fewer different weights than edges."""
        unique, edges = self.unique, self.blueprint.edges
        return Assumption(
            unique < edges, f"{unique} different weights on {edges} edges"
        )

    @property
    def uniformity(self) -> Assumption:
        """A3: each node has each weight on equally many of the edges that leave it."""
        width, unique = self.blueprint.width, self.unique
        counts = [_leaving(index, unique) for index in self.blueprint.indices]
        least = min(int(c.min()) for c in counts)
        most = max(int(c.max()) for c in counts)
        return Assumption(
            least == most,
            f"of the {width} edges that leave a node, {least} to {most} have the same "
            f"of {unique} weights",
        )

    @property
    def sphere(self) -> Assumption:
        """A4: the weights have the root mean square that the blueprint fixes."""
        wanted, scale = self.blueprint.rms, self.scale
        holds = math.isclose(scale, wanted, rel_tol=1e-12)
        return Assumption(
            holds, f"their root mean square is {scale:.12g}, wanted is {wanted:.12g}"
        )

    @property
    def assumptions(self) -> dict[str, Assumption]:
        """The four assumptions, by the paper's names."""
        return {
            "A1": self.independence,
            "A2": self.redundancy,
            "A3": self.uniformity,
            "A4": self.sphere,
        }

    @property
    def first_line(self) -> np.ndarray:
        r"""Coefficients $\psi_r d^{-1/2} (\rho C/\Lambda)^r$ of Eq 14, first line."""
        plan = self.blueprint
        masses = path_masses(plan.depth, plan.width, plan.inputs)
        step = math.log(self.gate * self.scale / self.unique)
        logs = [math.log(mass) + r * step for r, mass in enumerate(masses, start=1)]
        return np.exp(np.array(logs) - math.log(plan.inputs) / 2)

    @property
    def second_line(self) -> np.ndarray:
        r"""Coefficients $z\,\epsilon_r \Lambda^{-(r-1)/2}$ of Eq 14, second line.

        They are the first line's over $\sqrt{d/\Lambda}$, which the paper leaves out.
        """
        lengths = np.arange(1, self.blueprint.depth + 1)
        z = math.exp(log_path_normaliser(self.blueprint.depth, self.beta))
        return z * self.epsilons * float(self.unique) ** (-(lengths - 1) / 2)

    def terms(self, x: Numbers, gates: Sequence[Numbers] | None = None) -> np.ndarray:
        r"""Eq 8 by length: the output at recorded gates, or with all of them open.

        Args:
            x: Inputs, shape (samples, inputs).
            gates: Open units, one array of shape (samples, width) per layer.

        Returns:
            Shape (samples, depth); summed over lengths, the network's output.
        """
        plan = self.blueprint
        rows = as_numbers("x", x, "samples", plan.inputs)
        shape = (len(rows), plan.width)
        opened = [np.ones(shape)] * plan.depth
        if gates is not None:
            opened = [as_numbers("gates", gate, *shape) for gate in gates]
            if len(opened) != plan.depth:
                raise ConfigError(
                    f"gates of {len(opened)} layers for a network of {plan.depth}: "
                    "pass one array per layer"
                )
        first, *others = (np.asarray(self.weights)[i] for i in plan.indices)
        # By length: each layer is passed by its skip, or taken, which adds 1.
        terms = np.zeros((plan.depth, *shape))
        terms[0] = (rows @ first) * opened[0]
        for matrix, gate in zip(others, opened[1:], strict=True):
            terms[1:] += (terms[:-1] @ matrix) * gate
        return terms.sum(axis=2).T

    def mean_terms(self, x: Numbers) -> np.ndarray:
        r"""Eq 10 by length: the output averaged over independent gates.

        Takes inputs of shape (samples, inputs), returns shape (samples, depth).
        """
        return self.terms(x) * self.gate ** np.arange(1, self.blueprint.depth + 1)

    def approximate_terms(self, x: Numbers) -> np.ndarray:
        r"""Eq 13 by length, with all $\tilde x$ of a sample.

        Where A3 holds exactly, every $\tilde x_{i_1 \dots i_r}$ is
        $d^{-1/2}\sum_i x_i$, so that the sum over configurations is a power. Takes
        inputs of shape (samples, inputs), returns shape (samples, depth).
        """
        if not self.uniformity.holds:
            raise ConfigError(
                f"A3 does not hold ({self.uniformity.why}): pass a blueprint with "
                "cyclic sharing whose width is a multiple of unique"
            )
        rows = as_numbers("x", x, "samples", self.blueprint.inputs)
        variable = rows.sum(axis=1) / math.sqrt(self.blueprint.inputs)
        total = float(np.sum(np.asarray(self.weights))) / self.scale
        powers = total ** np.arange(1, self.blueprint.depth + 1)
        return variable[:, None] * (self.first_line * powers)


def _leaving(index: np.ndarray, unique: int) -> np.ndarray:
    """Count the edges of each weight that leave each node of a layer."""
    return np.stack([np.bincount(node, minlength=unique) for node in index])
