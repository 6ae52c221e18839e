"""Residual blocks of a system, and chains of layers read back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from theodolite.core.blueprints.system_layers import Shape, SystemLayer
from theodolite.core.errors import ConfigError, unknown_name


@final
@dataclass(frozen=True, kw_only=True)
class ResidualLayer(SystemLayer):
    r"""$Z \mapsto I Z + g(\theta, Z)$, where g is a chain of layers.

    I keeps the first features where the branch has fewer behind than before, and pads
    with zeros where it has more: its singular values are 1, all of them as long as the
    features do not grow.

    Attributes:
        branch: Layers of g, in the order applied.

    References:
        MacDonald et al. (2023), example A.4 and equation 13.
    """

    kind: ClassVar[str] = "residual block"

    branch: tuple[SystemLayer, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "branch", as_layers("branch", self.branch))

    def shape_after(self, shape: Shape) -> Shape:
        """Return the shape of a sample behind the layer, or say why it cannot be."""
        found = shape
        for layer in self.branch:
            found = layer.shape_after(found)
        if len(found) != len(shape) or found[1:] != shape[1:]:
            raise ConfigError(
                f"a branch makes samples of shape {found} from {shape}, and the skip "
                "bridges different numbers of features alone: keep the image's sides, "
                "or put the layers that change them outside of the block"
            )
        return found

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


def as_layers(name: str, layers: object) -> tuple[SystemLayer, ...]:
    """Return layers, or what their ``to_dict`` gave, as a tuple of layers."""
    given = tuple(layers) if isinstance(layers, list | tuple) else ()
    found = tuple(_from_dict(one) if isinstance(one, Mapping) else one for one in given)
    if not found:
        raise ConfigError(f"{name} holds no layer: pass a tuple of one layer or more")
    for place, layer in enumerate(found):
        if not isinstance(layer, SystemLayer):
            raise ConfigError(
                f"{name}[{place}] is a {type(layer).__name__}: pass layers such as "
                "AffineLayer, NonlinearLayer or ResidualLayer"
            )
    return found


def _from_dict(fields: Mapping[str, Any]) -> SystemLayer:
    kinds = {one.kind: one for one in SystemLayer.__subclasses__()}
    name = fields.get("layer")
    if name not in kinds:
        raise unknown_name("layer", str(name), kinds)
    pairs = {"kernel", "stride", "padding"}
    found = {
        key: tuple(value) if key in pairs else value
        for key, value in fields.items()
        if key != "layer"
    }
    try:
        return kinds[name](**found)
    except TypeError:
        raise ConfigError(
            f"a layer of kind {name} does not have the fields {', '.join(found)}: "
            "pass what its to_dict gives"
        ) from None
