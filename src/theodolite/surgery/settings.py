"""Settings that several operations take, checked in one place."""

import math
from typing import Any

import torch
from torch import nn

from theodolite.core import ConfigError


def check_scale(scale: Any, name: str = "scale") -> None:
    """Refuse what is no finite number."""
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise ConfigError(f"{name} must be a number, got {scale!r}")
    if not math.isfinite(scale):
        raise ConfigError(f"{name} must be finite, got {scale!r}")


def learned(model: nn.Module, start: float) -> nn.Parameter:
    """Return a parameter of one number, of the type and place of the model's."""
    like = next((p for p in model.parameters() if p.is_floating_point()), None)
    where = {} if like is None else {"dtype": like.dtype, "device": like.device}
    return nn.Parameter(torch.tensor(float(start), **where))


def named(path: str) -> str:
    """Name a module in a sentence."""
    return f"module {path!r}" if path else "the model itself"


def listed(what: str, value: Any, wanted: str) -> list[Any]:
    """Return what a setting holds as a list; refuse what cannot be gone through."""
    try:
        return list(value)
    except TypeError as error:
        raise ConfigError(
            f"{what} is {value!r}, wanted {wanted}: pass one, or a list of them"
        ) from error
