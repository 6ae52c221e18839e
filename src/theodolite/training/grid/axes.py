"""The points of a grid: a product of axes, checked before anything is trained."""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from theodolite.core import ConfigError, ShortcutBlueprint, to_json_values, unknown_name

from ..optimizers.descent import Descent

_DESCENT = ("lr", "momentum", "weight_decay")
_BLUEPRINT = tuple(field.name for field in fields(ShortcutBlueprint))
AXES = ("seed", *_DESCENT, *_BLUEPRINT)


@dataclass(frozen=True)
class Point:
    """One run of a grid."""

    labels: dict[str, Any]  # its place along each axis
    blueprint: ShortcutBlueprint  # its architecture
    descent: Descent  # its rate, momentum, weight decay and schedule
    seed: int  # seed of its weights


def expand(
    blueprint: ShortcutBlueprint | Mapping[str, ShortcutBlueprint],
    axes: Mapping[str, Iterable[Any]],
    *,
    drops: Mapping[int, float],
) -> tuple[dict[str, tuple[Any, ...]], list[Point]]:
    """Return the axes as tuples and every point of their product.

    See :func:`train_grid` for the arguments.
    """
    checked = {name: _values(name, values) for name, values in axes.items()}
    if isinstance(blueprint, Mapping):
        checked = {"network": tuple(blueprint), **checked}
    _check_networks(blueprint)
    if "lr" not in checked:
        raise ConfigError(
            f"axes {sorted(axes)} have no learning rate: add 'lr': [0.1] or more"
        )
    maker = _PointMaker(blueprint, drops, tuple(checked))
    points = [
        maker.point(dict(zip(checked, chosen, strict=True)))
        for chosen in itertools.product(*checked.values())
    ]
    return checked, points


class _PointMaker:
    """Makes points; those with equal settings share blueprint and descent."""

    def __init__(
        self,
        blueprint: ShortcutBlueprint | Mapping[str, ShortcutBlueprint],
        drops: Mapping[int, float],
        axes: tuple[str, ...],
    ) -> None:
        self._blueprint, self._drops = blueprint, drops
        self._shape = [name for name in ("network", *_BLUEPRINT) if name in axes]
        self._descent = [name for name in _DESCENT if name in axes]
        self._blueprints: dict[tuple[Any, ...], ShortcutBlueprint] = {}
        self._descents: dict[tuple[Any, ...], Descent] = {}

    def point(self, labels: dict[str, Any]) -> Point:
        key = tuple([labels[name] for name in self._shape])
        if key not in self._blueprints:
            blueprint = self._blueprint
            if isinstance(blueprint, Mapping):
                blueprint = blueprint[labels["network"]]
            changes = {name: labels[name] for name in _BLUEPRINT if name in labels}
            self._blueprints[key] = blueprint.with_(**changes) if changes else blueprint
        rates = tuple([labels[name] for name in self._descent])
        if rates not in self._descents:
            settings = dict(zip(self._descent, rates, strict=True))
            self._descents[rates] = Descent(**settings, drops=self._drops)
        seed = int(labels.get("seed", 0))
        return Point(labels, self._blueprints[key], self._descents[rates], seed)


def _check_networks(blueprint: Any) -> None:
    named = blueprint if isinstance(blueprint, Mapping) else {"": blueprint}
    if not named:
        raise ConfigError("no network came: pass a ShortcutBlueprint, or some by name")


def _values(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
    if name not in AXES:
        raise unknown_name("axis", name, AXES)
    places = tuple(to_json_values(list(values)))
    if not places:
        raise ConfigError(f"axis {name!r} is empty: pass at least one value")
    if any(isinstance(value, list | dict) for value in places):
        raise ConfigError(
            f"axis {name!r} holds {list(places)}: pass single numbers or words"
        )
    # 1 and 1.0 are one place along an axis.
    if len(set(places)) < len(places):
        raise ConfigError(f"axis {name!r} names a value twice: {list(places)}")
    if any(isinstance(value, float) and not math.isfinite(value) for value in places):
        raise ConfigError(f"axis {name!r} holds {list(places)}: pass finite values")
    if name == "seed" and not all(
        type(value) is int and value >= 0 for value in places
    ):
        raise ConfigError(f"seeds {list(places)}: pass whole numbers from 0 up")
    return places
