"""One builder for every kind of blueprint."""

from collections.abc import Callable
from typing import Any, overload

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
from theodolite.networks.classifier import ClassifierNetwork, build_classifier
from theodolite.networks.layerwise import LayerwiseNetwork, build_layerwise
from theodolite.networks.path_network import PathNetwork, build_path_network
from theodolite.networks.preactivation import PreactivationNetwork, build_preactivation
from theodolite.networks.resnet import ResnetNetwork, build_resnet
from theodolite.networks.shortcut import ShortcutNetwork, build_shortcut
from theodolite.networks.spin_glass import SpinGlass, build_spin_glass
from theodolite.networks.system import SystemNetwork, build_system
from theodolite.networks.two_block import TwoBlockNetwork, build_two_block

# Kinds are final, so that the type of a blueprint is its kind.
_BUILDERS: dict[type[Blueprint], Callable[..., nn.Module]] = {
    ShortcutBlueprint: build_shortcut,
    PreactivationBlueprint: build_preactivation,
    PathBlueprint: build_path_network,
    LayerwiseBlueprint: build_layerwise,
    SpinGlassBlueprint: build_spin_glass,
    ClassifierBlueprint: build_classifier,
    ResnetBlueprint: build_resnet,
    SystemBlueprint: build_system,
    TwoBlockBlueprint: build_two_block,
}


@overload
def build(
    blueprint: ShortcutBlueprint,
    *,
    seed: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> ShortcutNetwork: ...
@overload
def build(
    blueprint: PreactivationBlueprint,
    *,
    seed: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> PreactivationNetwork: ...
@overload
def build(
    blueprint: LayerwiseBlueprint,
    *,
    seed: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> LayerwiseNetwork: ...
@overload
def build(
    blueprint: PathBlueprint,
    *,
    seed: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> PathNetwork: ...
@overload
def build(
    blueprint: SpinGlassBlueprint,
    *,
    seed: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> SpinGlass: ...
@overload
def build(
    blueprint: ClassifierBlueprint,
    *,
    seed: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> ClassifierNetwork: ...
@overload
def build(
    blueprint: ResnetBlueprint,
    *,
    seed: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> ResnetNetwork: ...
@overload
def build(
    blueprint: SystemBlueprint,
    *,
    seed: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> SystemNetwork: ...
@overload
def build(
    blueprint: TwoBlockBlueprint,
    *,
    seed: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> TwoBlockNetwork: ...
@overload
def build(
    blueprint: Blueprint,
    *,
    seed: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> nn.Module: ...
def build(
    blueprint: Blueprint,
    *,
    seed: int,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> nn.Module:
    """Make the network that a blueprint of any kind describes.

    Args:
        blueprint: Architecture; the network remembers it as ``blueprint``.
        seed: Of the weights, drawn by NumPy, alike on every device.
        dtype: Of the parameters; by default float32 for networks of images and
            classifiers, and float64 for the others, which meet closed forms.
        device: Where the parameters lie.

    Example:
        >>> network = build(ShortcutBlueprint(width=4, depth=6, shortcut=3), seed=0)
        >>> network(torch.ones(2, 4, dtype=torch.float64)).shape
        torch.Size([2, 4])
        >>> network = build(PreactivationBlueprint(depth=8, width=4), seed=0)
        >>> network(torch.ones(2, 3, 8, 8)).shape
        torch.Size([2, 10])
    """
    builder = _BUILDERS.get(type(blueprint))
    if builder is None:
        known = ", ".join(kind.__name__ for kind in _BUILDERS)
        raise ConfigError(
            f"a value of type {type(blueprint).__name__} is no blueprint that networks "
            f"can build: pass one of {known}"
        )
    settings: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    return builder(blueprint, seed=seed, device=device, **settings)
