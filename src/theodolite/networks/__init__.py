"""Blueprints to modules: the papers' architectures."""

from typing import TYPE_CHECKING

from theodolite.core import attach

if TYPE_CHECKING:
    from theodolite.networks.activations import torch_activation
    from theodolite.networks.conv_blueprint import PreactivationBlueprint
    from theodolite.networks.initialisation import draw_weights
    from theodolite.networks.preactivation import (
        PreactivationNetwork,
        PreactivationUnit,
        build_preactivation,
        unit_convolutions,
    )
    from theodolite.networks.shortcut import (
        ShortcutNetwork,
        ShortcutUnit,
        build,
        get_weights,
        set_weights,
    )

__all__ = [
    "PreactivationBlueprint",
    "PreactivationNetwork",
    "PreactivationUnit",
    "ShortcutNetwork",
    "ShortcutUnit",
    "build",
    "build_preactivation",
    "draw_weights",
    "get_weights",
    "set_weights",
    "torch_activation",
    "unit_convolutions",
]

__getattr__, __dir__, _ = attach(
    __name__,
    {
        "activations": ["torch_activation"],
        "conv_blueprint": ["PreactivationBlueprint"],
        "initialisation": ["draw_weights"],
        "preactivation": [
            "PreactivationNetwork",
            "PreactivationUnit",
            "build_preactivation",
            "unit_convolutions",
        ],
        "shortcut": [
            "ShortcutNetwork",
            "ShortcutUnit",
            "build",
            "get_weights",
            "set_weights",
        ],
    },
)
