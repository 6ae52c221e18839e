"""One builder for every kind of blueprint."""

from collections.abc import Callable
from typing import TypedDict, Unpack, overload

import torch
from torch import nn

from theodolite.core import (
    Blueprint,
    ClassifierBlueprint,
    ConfigError,
    LayerwiseBlueprint,
    PathBlueprint,
    PreactivationBlueprint,
    ResnetBlueprint,
    ShortcutBlueprint,
    SpinGlassBlueprint,
    SystemBlueprint,
    TwoBlockBlueprint,
)

from .classifier import ClassifierNetwork, build_classifier
from .fully_connected import (
    LayerwiseNetwork,
    PathNetwork,
    build_layerwise,
    build_path_network,
)
from .preactivation import PreactivationNetwork, build_preactivation
from .resnet import ResnetNetwork, build_resnet
from .shortcut import ShortcutNetwork, build_shortcut
from .spin_glass import SpinGlass, build_spin_glass
from .system import SystemNetwork, build_system
from .two_block import TwoBlockNetwork, build_two_block

# Kinds are final, so the type of a blueprint is its kind. With the default dtype.
_BUILDERS: dict[type[Blueprint], tuple[Callable[..., nn.Module], torch.dtype]] = {
    ShortcutBlueprint: (build_shortcut, torch.float64),
    PreactivationBlueprint: (build_preactivation, torch.float32),
    PathBlueprint: (build_path_network, torch.float64),
    LayerwiseBlueprint: (build_layerwise, torch.float64),
    SpinGlassBlueprint: (build_spin_glass, torch.float64),
    ClassifierBlueprint: (build_classifier, torch.float32),
    ResnetBlueprint: (build_resnet, torch.float32),
    SystemBlueprint: (build_system, torch.float64),
    TwoBlockBlueprint: (build_two_block, torch.float32),
}


class _Placement(TypedDict, total=False):
    dtype: torch.dtype | None
    device: torch.device | str


@overload
def build(
    blueprint: ShortcutBlueprint, *, seed: int, **placement: Unpack[_Placement]
) -> ShortcutNetwork: ...
@overload
def build(
    blueprint: PreactivationBlueprint, *, seed: int, **placement: Unpack[_Placement]
) -> PreactivationNetwork: ...
@overload
def build(
    blueprint: PathBlueprint, *, seed: int, **placement: Unpack[_Placement]
) -> PathNetwork: ...
@overload
def build(
    blueprint: LayerwiseBlueprint, *, seed: int, **placement: Unpack[_Placement]
) -> LayerwiseNetwork: ...
@overload
def build(
    blueprint: SpinGlassBlueprint, *, seed: int, **placement: Unpack[_Placement]
) -> SpinGlass: ...
@overload
def build(
    blueprint: ClassifierBlueprint, *, seed: int, **placement: Unpack[_Placement]
) -> ClassifierNetwork: ...
@overload
def build(
    blueprint: ResnetBlueprint, *, seed: int, **placement: Unpack[_Placement]
) -> ResnetNetwork: ...
@overload
def build(
    blueprint: SystemBlueprint, *, seed: int, **placement: Unpack[_Placement]
) -> SystemNetwork: ...
@overload
def build(
    blueprint: TwoBlockBlueprint, *, seed: int, **placement: Unpack[_Placement]
) -> TwoBlockNetwork: ...
@overload
def build(
    blueprint: Blueprint, *, seed: int, **placement: Unpack[_Placement]
) -> nn.Module: ...
def build(
    blueprint: Blueprint,
    *,
    seed: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> nn.Module:
    """Return the network that a blueprint of any kind describes.

    Args:
        blueprint: Architecture; the network keeps it as ``blueprint``.
        seed: Seed of the weights, which NumPy draws, the same on every device.
        dtype: Dtype of the parameters; by default float32 for networks of images and
            classifiers, and float64 for those compared with closed forms.
        device: Device of the parameters.

    Example:
        >>> network = build(ShortcutBlueprint(width=4, depth=6, shortcut=3), seed=0)
        >>> network(torch.ones(2, 4, dtype=torch.float64)).shape
        torch.Size([2, 4])
        >>> network = build(PreactivationBlueprint(depth=8, width=4), seed=0)
        >>> network(torch.ones(2, 3, 8, 8)).shape
        torch.Size([2, 10])
    """
    if type(blueprint) not in _BUILDERS:
        known = ", ".join(kind.__name__ for kind in _BUILDERS)
        raise ConfigError(
            f"a value of type {type(blueprint).__name__} is no blueprint that networks "
            f"can build: pass one of {known}"
        )
    builder, usual = _BUILDERS[type(blueprint)]
    return builder(blueprint, seed=seed, dtype=dtype or usual).to(device)
