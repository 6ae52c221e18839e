"""Fully connected networks whose output is a sum over paths of several lengths."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from ..errors import ConfigError
from .description import Blueprint, check_integers

Sharing = Literal["cyclic", "by_input"]


@final
@dataclass(frozen=True, kw_only=True)
class PathBlueprint(Blueprint):
    r"""A fully connected ReLU network with a skip around every layer except the first.

    $N_1 = \mathrm{ReLU}(W_1^\top x)$,
    $N_l = \mathrm{ReLU}(W_l^\top N_{l-1}) + N_{l-1}$ for $l > 1$, and the output is the
    sum of $N_p$; without ``skip`` the second term is left out. With ``unique`` the
    matrices hold only that many different numbers: under ``cyclic`` sharing
    $W_l[a,b] = w_{(a+b+l) \bmod \Lambda}$. ``by_input`` differs in the first layer
    only, where $W_1[a,b] = w_{a \bmod \Lambda}$.

    Attributes:
        width: Units per layer, the paper's n.
        depth: Layers, the paper's p.
        inputs: Dimension of the input, the paper's d.
        skip: Whether layers from the second on have the identity beside them.
        unique: Number of different weights, the paper's $\Lambda$; all by default.
        sharing: Which edges have the same weight.
        scale: Root mean square C of the different weights, exactly;
            $1/\sqrt n$ by default.

    References:
        Littwin & Wolf (2016), The Loss Surface of Residual Networks, Eqs 4, 7 and 8.

    Example:
        >>> plan = PathBlueprint(inputs=3, width=4, depth=5, unique=2)
        >>> plan.units, plan.parameters, plan.with_(unique=None).parameters
        (4, 2, 76)
    """

    kind: ClassVar[str] = "fully connected residual network"

    inputs: int
    skip: bool = True
    unique: int | None = None
    sharing: Sharing = "cyclic"
    scale: float | None = None

    def __post_init__(self) -> None:
        check_integers(self, "inputs", "width", "depth")
        if self.unique is not None:
            check_integers(self, "unique")
        scale = self.scale
        if scale is not None and not 0 < scale < math.inf:
            raise ConfigError(f"scale is {scale!r}: pass a positive number, or None")

    @property
    def units(self) -> int:
        """Number of layers with a skip."""
        return self.depth - 1 if self.skip else 0

    @property
    def edges(self) -> int:
        """Number of entries of all matrices, the paper's N."""
        return self.width * (self.inputs + (self.depth - 1) * self.width)

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return self.edges if self.unique is None else self.unique

    @property
    def rms(self) -> float:
        """Root mean square of the different weights, the paper's C."""
        return self.width**-0.5 if self.scale is None else float(self.scale)

    @property
    def indices(self) -> tuple[np.ndarray, ...]:
        """Index of the weight on each edge, one matrix per layer."""
        into = [self.inputs] + [self.width] * (self.depth - 1)
        if self.unique is None:
            starts = np.cumsum([0, *(a * self.width for a in into)])
            return tuple(
                start + np.arange(a * self.width).reshape(a, self.width)
                for start, a in zip(starts, into, strict=False)
            )
        matrices = []
        for layer, a in enumerate(into, start=1):
            row, column = np.arange(a)[:, None], np.arange(self.width)[None]
            own = layer == 1 and self.sharing == "by_input"
            place = row + 0 * column if own else row + column + layer
            matrices.append(place % self.unique)
        return tuple(matrices)
