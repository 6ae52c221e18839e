"""Choice of the engine for a network, and estimates of its time."""

from typing import Any

import numpy as np

from theodolite.core import ConfigError, ShortcutBlueprint, unknown_name

from .kernels.compiled import numba_obstacle
from .protocol import Engine, linear_or_relu

STRATEGIES = ("auto", "moments", "fused", "stacked", "plain")

# Rough seconds per floating-point operation on a CPU, used only to cut a grid into
# pieces of about equal length. The plain loop also pays for every call of torch.
_CALL_S = 1e-4
_SECONDS = {"moments": 5e-11, "fused": 5e-11, "stacked": 5e-11, "plain": 3e-10}


def choose(blueprint: ShortcutBlueprint, *, strategy: str, device: str) -> str:
    """Return the strategy for a blueprint; refuse one that cannot train it.

    ``auto``: on a CPU with numba, moments for linear networks and fused tiles for ReLU
    between matrices; without numba or on a GPU, one stack; else the plain loop.
    """
    if strategy not in STRATEGIES:
        raise unknown_name("strategy", strategy, STRATEGIES)
    fits = {
        "moments": blueprint.linear,
        "fused": linear_or_relu(blueprint) and device == "cpu",
        "stacked": linear_or_relu(blueprint),
        "plain": True,
    }
    if strategy == "auto":
        compiled = device == "cpu" and numba_obstacle() is None
        order = ("moments", "fused") if compiled else ("stacked",)
        return next((name for name in order if fits[name]), "plain")
    if not fits[strategy]:
        raise ConfigError(
            f"strategy {strategy!r} cannot train a network with activations "
            f"({blueprint.pre}, {blueprint.mid}, {blueprint.post}), "
            f"bias={blueprint.bias} on {device}: try 'auto' or 'plain'"
        )
    return strategy


def engine_for(
    name: str,
    blueprint: ShortcutBlueprint,
    data: tuple[np.ndarray, np.ndarray],
    *,
    dtype: str,
    device: str,
) -> Engine:
    """Make the engine of a strategy other than ``plain``."""
    settings: dict[str, Any] = {"dtype": dtype}
    if name == "moments":
        from .cpu import MomentsEngine as Chosen
    elif name == "fused":
        from .cpu import FusedEngine as Chosen
    else:
        from .stacked.engine import StackedEngine as Chosen

        settings["device"] = device
    return Chosen(blueprint, *data, **settings)


def seconds(
    name: str, blueprint: ShortcutBlueprint, n_samples: int, steps: int
) -> float:
    """Return an estimate of the CPU time of one point, within a factor of a few."""
    reduced = name == "moments" or (name == "stacked" and blueprint.linear)
    columns = blueprint.width if reduced else n_samples
    work = 6.0 * blueprint.depth * blueprint.width**2 * columns * (steps + 1)
    calls = blueprint.depth * (steps + 1) if name == "plain" else 0
    return work * _SECONDS[name] + calls * _CALL_S
