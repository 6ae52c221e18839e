"""n-shortcut networks, and plain networks with the same layers."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final, get_args

from ..errors import ConfigError
from .description import Blueprint, check_integers, parse_activation

Initialisation = Literal["zero", "small", "xavier", "orthogonal"]
Position = Literal["pre", "mid", "post"]


@final
@dataclass(frozen=True, kw_only=True)
class ShortcutBlueprint(Blueprint):
    r"""An n-shortcut network, or the plain network with the same layers.

    A unit of ``shortcut`` weight matrices computes
    $x + \sigma_{post}(W_n\,\sigma_{mid}(\dots W_1\,\sigma_{pre}(x)))$; without
    ``skip`` the identity is left out. ``bias`` adds a vector after every matrix of a
    unit except the last, as in the two-layer unit $x + W_2\,\sigma(W_1 x + b)$.

    Attributes:
        width: Dimension of input, output and every layer.
        depth: Number of weight matrices, a multiple of ``shortcut``.
        shortcut: Weight matrices per unit, the paper's n.
        skip: Whether units have the identity path.
        pre: Activation before the first matrix of a unit.
        mid: Activation between two matrices of a unit.
        post: Activation after the last matrix of a unit.
        bias: Whether units have biases.
        init: How ``networks.build`` draws the weights.
        init_scale: Factor on Xavier weights under ``small``.

    References:
        Li et al. (2016), Demystifying ResNet, definitions 1 and 2.

    Example:
        >>> ShortcutBlueprint(width=10, depth=16, shortcut=2).units
        8
    """

    kind: ClassVar[str] = "shortcut network"

    shortcut: int = 2
    skip: bool = True
    pre: str = "identity"
    mid: str = "identity"
    post: str = "identity"
    bias: bool = False
    init: Initialisation = "small"
    init_scale: float = 0.01

    def __post_init__(self) -> None:
        check_integers(self, "width", "depth", "shortcut")
        if self.depth % self.shortcut:
            near = self.depth - self.depth % self.shortcut or self.shortcut
            raise ConfigError(
                f"depth {self.depth} is not a multiple of shortcut {self.shortcut}: "
                f"units would be cut; try depth {near}"
            )
        for position in get_args(Position):
            parse_activation(getattr(self, position))
        scale = self.init_scale
        if not 0 < scale < math.inf:
            raise ConfigError(
                f"init_scale is {scale!r}: pass a positive number, or init='zero'"
            )

    @property
    def units(self) -> int:
        """Number of residual units, the paper's R."""
        return self.depth // self.shortcut

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        d, n = self.width, self.shortcut
        return self.units * (n * d * d + (n - 1) * d * self.bias)

    @property
    def linear(self) -> bool:
        """Whether the network is a linear map for every choice of weights."""
        return (self.pre, self.mid, self.post) == ("identity",) * 3 and not self.bias
