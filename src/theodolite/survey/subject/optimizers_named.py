"""An optimiser from the text of a command line."""

from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from theodolite.core import ConfigError, unknown_name

from .specs import literal_arguments

_EXAMPLE = "such as sgd:lr=0.1,momentum=0.9"


def optimizer_of(text: str, model: nn.Module) -> Optimizer:
    """Return the torch optimiser that a text names, over all trainable parameters.

    Example:
        >>> optimizer = optimizer_of("sgd:lr=0.1,momentum=0.9", nn.Linear(1, 1))
        >>> optimizer.defaults["momentum"]
        0.9
    """
    name, _, written = text.partition(":")
    kinds = {
        one.lower(): kind
        for one, kind in vars(torch.optim).items()
        if isinstance(kind, type) and issubclass(kind, Optimizer) and one != "Optimizer"
    }
    if name.lower() not in kinds:
        raise unknown_name("optimizer", name, kinds)
    settings = _settings(written)
    try:
        leaves = [p for p in model.parameters() if p.requires_grad]
        return kinds[name.lower()](leaves, **settings)
    except Exception as error:  # torch refuses settings in many ways
        raise ConfigError(
            f"torch does not take the optimiser {text!r} ({error}): write it {_EXAMPLE}"
        ) from error


def _settings(written: str) -> dict[str, Any]:
    if not written.strip():
        return {}
    try:
        unnamed, settings = literal_arguments(written)
        if unnamed:
            raise ValueError("a value without a name")
        return settings
    except ValueError as error:
        raise ConfigError(
            f"the settings {written!r} are not NAME=VALUE: write them {_EXAMPLE}"
        ) from error
