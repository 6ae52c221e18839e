"""Multilayer parameterised systems: chains of layers with known derivatives."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, final

from ..errors import ConfigError, unknown_name
from .description import Blueprint
from .system_layers import (
    AffineLayer,
    BatchNormLayer,
    ConvolutionLayer,
    FlattenLayer,
    NonlinearLayer,
    Parameterisation,
    Shape,
    SystemLayer,
)


@final
@dataclass(frozen=True, kw_only=True)
class ResidualLayer(SystemLayer):
    r"""$Z \mapsto I Z + g(\theta, Z)$, where g is a chain of layers.

    I drops the last features where the branch has fewer outputs than inputs, and pads
    with zeros where it has more. Unless the number of features grows, all its singular
    values are 1.

    Attributes:
        branch: Layers of g, in the order applied.

    References:
        MacDonald et al. (2023), example A.4 and equation 13.
    """

    kind: ClassVar[str] = "residual block"

    branch: tuple[SystemLayer | Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "branch", as_layers("branch", self.branch))

    def shape_after(self, shape: Shape) -> Shape:
        """Return the shape of a sample after the layer, or refuse its shape."""
        after = shape
        for layer in self.branch:
            after = layer.shape_after(after)
        if len(after) != len(shape) or after[1:] != shape[1:]:
            raise ConfigError(
                f"a branch makes samples of shape {after} from {shape}, and the skip "
                "bridges different numbers of features alone: keep the image's sides, "
                "or put the layers that change them outside of the block"
            )
        return after

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return sum(layer.parameters for layer in self.branch)

    @property
    def weighted(self) -> int:
        """Number of matrices and kernels."""
        return sum(layer.weighted for layer in self.branch)

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and the layers of the branch as plain JSON values."""
        return {"layer": self.kind, "branch": [one.to_dict() for one in self.branch]}


_LAYERS: tuple[type[SystemLayer], ...] = (
    AffineLayer,
    ConvolutionLayer,
    BatchNormLayer,
    NonlinearLayer,
    FlattenLayer,
    ResidualLayer,
)


def as_layers(name: str, layers: object) -> tuple[SystemLayer, ...]:
    """Return layers, or dicts from their ``to_dict``, as a tuple of layers."""
    given = tuple(layers) if isinstance(layers, list | tuple) else ()
    layers = tuple(_from_dict(x) if isinstance(x, Mapping) else x for x in given)
    if not layers:
        raise ConfigError(f"{name} holds no layer: pass a tuple of one layer or more")
    for place, layer in enumerate(layers):
        if not isinstance(layer, SystemLayer):
            raise ConfigError(
                f"{name}[{place}] is a {type(layer).__name__}: pass layers such as "
                "AffineLayer, NonlinearLayer or ResidualLayer"
            )
    return layers


def _from_dict(fields: Mapping[str, Any]) -> SystemLayer:
    kinds = {one.kind: one for one in _LAYERS}
    name = fields.get("layer")
    if name not in kinds:
        raise unknown_name("layer", str(name), kinds)
    pairs = {"kernel", "stride", "padding"}
    settings = {
        key: tuple(value) if key in pairs else value
        for key, value in fields.items()
        if key != "layer"
    }
    try:
        return kinds[name](**settings)
    except TypeError:
        raise ConfigError(
            f"a layer of kind {name} does not have the fields {', '.join(settings)}: "
            "pass what its to_dict gives"
        ) from None


@final
@dataclass(frozen=True, kw_only=True)
class SystemBlueprint(Blueprint):
    r"""A multilayer parameterised system, $F = f_L \circ \dots \circ f_1$.

    Attributes:
        inputs: Shape of a sample, or the number of features.
        layers: $f_1, \dots, f_L$.
        width: Numbers in a sample, $d_0$; computed.
        depth: Matrices and kernels; computed.

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
    layers: tuple[SystemLayer | Any, ...]
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
        sizes = {
            "inputs": given,
            "layers": layers,
            "width": math.prod(given),
            "depth": sum(layer.weighted for layer in layers),
        }
        for name in ("width", "depth"):
            if getattr(self, name) not in (0, sizes[name]):
                raise ConfigError(
                    f"{name} is {getattr(self, name)!r}, and the layers make it "
                    f"{sizes[name]}: leave it out"
                )
        for name, value in sizes.items():
            object.__setattr__(self, name, value)
        _ = self.shapes  # refuses layers that do not fit

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Shapes of a sample before the first layer and after each layer."""
        shapes: list[Shape] = [self.inputs]  # pyright: ignore
        for layer in self.layers:
            shapes.append(layer.shape_after(shapes[-1]))
        return tuple(shapes)

    @property
    def units(self) -> int:
        """Number of residual blocks."""
        return sum(isinstance(layer, ResidualLayer) for layer in self.layers)

    @property
    def parameters(self) -> int:
        """Number of trainable numbers."""
        return sum(layer.parameters for layer in self.layers)

    def with_(self, **changes: Any) -> "SystemBlueprint":
        """Return a changed copy; width and depth are computed again."""
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
    r"""Return the blueprint of a normalised residual network.

    The first layer is entry-normalised; each further one is
    $IZ + a\,P(W_2)\,\phi(b\,P(W_1) Z)$ with $a \sup\|P(W_2)\| = b \sup\|P(W_1)\|$ equal
    to ``branch_norm``.

    Args:
        inputs: $d_0$.
        widths: $d_1, \dots, d_L$; they must not increase.
        eps: $\epsilon$ of all layers.
        branch_norm: Upper bound on the norm of each matrix of a branch.
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
