"""Blueprints to modules: the papers' architectures."""

from typing import TYPE_CHECKING

from theodolite.core import attach

if TYPE_CHECKING:
    from theodolite.networks.activations import torch_activation
    from theodolite.networks.initialisation import draw_weights
    from theodolite.networks.shortcut import (
        ShortcutNetwork,
        ShortcutUnit,
        build,
        get_weights,
        set_weights,
    )

__all__ = [
    "ShortcutNetwork",
    "ShortcutUnit",
    "build",
    "draw_weights",
    "get_weights",
    "set_weights",
    "torch_activation",
]

__getattr__, __dir__, _ = attach(
    __name__,
    {
        "activations": ["torch_activation"],
        "initialisation": ["draw_weights"],
        "shortcut": [
            "ShortcutNetwork",
            "ShortcutUnit",
            "build",
            "get_weights",
            "set_weights",
        ],
    },
)
