"""The cells of a grid: a product of axes, checked before anything is trained."""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from theodolite.core import Blueprint, ConfigError, plain, unknown_name
from theodolite.training.loop.descent import Descent

_DESCENT = ("lr", "momentum", "weight_decay")
_BLUEPRINT = tuple(field.name for field in fields(Blueprint))
AXES = ("seed", *_DESCENT, *_BLUEPRINT)


@dataclass(frozen=True)
class GridCell:
    """One run of a grid.

    Attributes:
        labels: Its place along each axis.
        blueprint: Its architecture.
        descent: Its rate, momentum, weight decay and schedule.
        seed: Seed of its weights.
    """

    labels: dict[str, Any]
    blueprint: Blueprint
    descent: Descent
    seed: int


def expand(
    blueprint: Blueprint | Mapping[str, Blueprint],
    axes: Mapping[str, Iterable[Any]],
    *,
    drops: Mapping[int, float],
) -> tuple[dict[str, tuple[Any, ...]], list[GridCell]]:
    """Return the axes as tuples and every cell of their product.

    Args:
        blueprint: What all cells have in common, or several by name, which are then
            the axis ``network``.
        axes: Values of seed, lr, momentum, weight_decay or a blueprint's field.
        drops: Steps of the rate's schedule, common to all.
    """
    if not isinstance(axes, Mapping):
        raise ConfigError(f"axes are {axes!r}: pass a mapping such as {{'lr': [0.1]}}")
    checked = {name: _values(name, values) for name, values in axes.items()}
    if isinstance(blueprint, Mapping):
        checked = {"network": tuple(blueprint), **checked}
    _check_networks(blueprint)
    if "lr" not in checked:
        raise ConfigError(
            f"axes {sorted(axes)} have no learning rate: add 'lr': [0.1] or more"
        )
    made = _Made(blueprint, drops, tuple(checked))
    cells = [
        made.cell(dict(zip(checked, chosen, strict=True)))
        for chosen in itertools.product(*checked.values())
    ]
    return checked, cells


class _Made:
    """Blueprints and descents, each made once, however many cells share it."""

    def __init__(
        self,
        blueprint: Blueprint | Mapping[str, Blueprint],
        drops: Mapping[int, float],
        axes: tuple[str, ...],
    ) -> None:
        self._blueprint, self._drops = blueprint, drops
        self._shape = [name for name in ("network", *_BLUEPRINT) if name in axes]
        self._descent = [name for name in _DESCENT if name in axes]
        self._plans: dict[tuple[Any, ...], Blueprint] = {}
        self._descents: dict[tuple[Any, ...], Descent] = {}

    def cell(self, labels: dict[str, Any]) -> GridCell:
        key = tuple([labels[name] for name in self._shape])
        if key not in self._plans:
            self._plans[key] = self._plan(labels)
        rates = tuple([labels[name] for name in self._descent])
        if rates not in self._descents:
            settings = dict(zip(self._descent, rates, strict=True))
            self._descents[rates] = Descent(**settings, drops=self._drops)
        seed = int(labels.get("seed", 0))
        return GridCell(labels, self._plans[key], self._descents[rates], seed)

    def _plan(self, labels: Mapping[str, Any]) -> Blueprint:
        plan = self._blueprint
        if isinstance(plan, Mapping):
            plan = plan[labels["network"]]
        changes = {name: labels[name] for name in _BLUEPRINT if name in labels}
        return plan.with_(**changes) if changes else plan


def _check_networks(blueprint: Any) -> None:
    named = blueprint if isinstance(blueprint, Mapping) else {"": blueprint}
    for name, plan in named.items():
        if not isinstance(name, str) or not isinstance(plan, Blueprint):
            raise ConfigError(
                f"the network {name!r} is {plan!r}: pass a Blueprint, or some by name"
            )
    if not named:
        raise ConfigError("no network came: pass a Blueprint, or some by name")


def _values(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    if name not in AXES:
        raise unknown_name("axis", name, AXES)
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ConfigError(
            f"axis {name!r} is {values!r}: pass a list of its values, as [{values!r}]"
        )
    found = tuple(plain(list(values)))
    if not found:
        raise ConfigError(f"axis {name!r} is empty: pass at least one value")
    if any(isinstance(value, list | dict) for value in found):
        raise ConfigError(
            f"axis {name!r} holds {list(found)}: pass single numbers or words"
        )
    # 1 and 1.0 are one place along an axis.
    if len(set(found)) < len(found):
        raise ConfigError(f"axis {name!r} names a value twice: {list(found)}")
    if any(isinstance(value, float) and not math.isfinite(value) for value in found):
        raise ConfigError(f"axis {name!r} holds {list(found)}: pass finite values")
    if name == "seed" and not all(type(value) is int and value >= 0 for value in found):
        raise ConfigError(f"seeds {list(found)}: pass whole numbers from 0 up")
    return found
