"""Multilayer parameterised systems: chains of layers with known derivatives."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, final

from theodolite.core.blueprints.description import Blueprint
from theodolite.core.blueprints.system_blocks import ResidualLayer, as_layers
from theodolite.core.blueprints.system_layers import (
    AffineLayer,
    NonlinearLayer,
    Parameterisation,
    Shape,
    SystemLayer,
)
from theodolite.core.errors import ConfigError


@final
@dataclass(frozen=True, kw_only=True)
class SystemBlueprint(Blueprint):
    r"""A multilayer parameterised system, $F = f_L \circ \dots \circ f_1$.

    Attributes:
        inputs: Shape of a sample; a whole number stands for so many features.
        layers: $f_1, \dots, f_L$.
        width: Numbers in a sample, $d_0$; found by itself.
        depth: Matrices and kernels; found by itself.

    References:
        MacDonald et al. (2023), On skip connections and normalisation layers in deep
        optimisation, definition 4.1.

    Example:
        >>> plan = normalised_residual(inputs=4, widths=(3, 3), eps=1.0)
        >>> plan.shapes, plan.units, plan.parameters
        (((4,), (3,), (3,)), 1, 30)
    """

    kind: ClassVar[str] = "multilayer parameterised system"

    inputs: Shape | int
    layers: tuple[SystemLayer, ...]
    width: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        came = self.inputs
        given = tuple(came) if isinstance(came, tuple | list) else (came,)
        whole = all(isinstance(n, int) and not isinstance(n, bool) for n in given)
        if not given or not whole or min(given) < 1:
            raise ConfigError(
                f"inputs is {self.inputs!r}: pass the features of a sample, or its "
                "channels, height and width"
            )
        layers = as_layers("layers", self.layers)
        found = {
            "inputs": given,
            "layers": layers,
            "width": math.prod(given),
            "depth": sum(layer.weighted for layer in layers),
        }
        for name in ("width", "depth"):
            if getattr(self, name) not in (0, found[name]):
                raise ConfigError(
                    f"{name} is {getattr(self, name)!r}, and the layers make it "
                    f"{found[name]}: leave it out"
                )
        for name, value in found.items():
            object.__setattr__(self, name, value)
        _ = self.shapes  # refuses layers that do not fit

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Shapes of a sample before the first layer and behind each."""
        found: list[Shape] = [self.inputs]  # pyright: ignore
        for layer in self.layers:
            found.append(layer.shape_after(found[-1]))
        return tuple(found)

    @property
    def units(self) -> int:
        """Number of residual blocks."""
        return sum(isinstance(layer, ResidualLayer) for layer in self.layers)

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return sum(layer.parameters for layer in self.layers)

    def with_(self, **changes: Any) -> "SystemBlueprint":
        """Return a changed copy; width and depth are found anew."""
        return super().with_(**{"width": 0, "depth": 0, **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        own = super().to_dict()
        return {**own, "layers": [layer.to_dict() for layer in self.layers]}


def normalised_residual(
    *,
    inputs: int,
    widths: Sequence[int],
    eps: float = 1.0,
    branch_norm: float = 0.9,
    activation: str = "tanh",
    parameterisation: Parameterisation = "weight_norm",
) -> SystemBlueprint:
    r"""Describe a normalised residual network.

    The first layer is entry-normalised; each further one is
    $IZ + a\,P(W_2)\,\phi(b\,P(W_1) Z)$ with $a \sup\|P(W_2)\| = b \sup\|P(W_1)\|$ equal
    to ``branch_norm``.

    Args:
        inputs: $d_0$.
        widths: $d_1, \dots, d_L$, of which each may not exceed the one before.
        eps: $\epsilon$ of all layers.
        branch_norm: Norm that each matrix of a branch may not pass.
        activation: $\phi$.
        parameterisation: P of the branches.

    References:
        MacDonald et al. (2023), section 5, equation 13.
    """
    sizes = tuple(widths)
    grows = [(a, b) for a, b in pairwise(sizes) if b > a]
    if not sizes or grows:
        raise ConfigError(
            f"widths is {sizes!r}: pass one or more that never grow, so that the "
            "skips' singular values are all 1"
        )
    if parameterisation not in ("weight_norm", "entry_norm"):
        raise ConfigError(
            f"parameterisation is {parameterisation!r}: branches are bounded for "
            "'weight_norm' and 'entry_norm' alone"
        )

    def affine(into: int, out: int) -> AffineLayer:
        plain = AffineLayer(
            into=into, out=out, parameterisation=parameterisation, eps=eps
        )
        return AffineLayer(
            into=into,
            out=out,
            parameterisation=parameterisation,
            eps=eps,
            scale=branch_norm / plain.weight_bound,
        )

    first = AffineLayer(
        into=inputs, out=sizes[0], parameterisation="entry_norm", eps=eps
    )
    blocks = tuple(
        ResidualLayer(
            branch=(affine(a, a), NonlinearLayer(activation=activation), affine(a, b))
        )
        for a, b in pairwise(sizes)
    )
    return SystemBlueprint(inputs=inputs, layers=(first, *blocks))
