"""Derivatives at zero along whole matrices, by repeated differentiation.

Each is taken along random directions of whole matrices, so that it is zero only if the
derivative tensor of those matrices is.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from theodolite import instruments
from theodolite.core import Cell, Row, Rows, ShortcutBlueprint, stream

from ..shared.hessians import at_zero
from ..shared.problems import EPS, SETTINGS, named, random_data
from .config import Config, complete, patterns

# Derivatives are of order one where they are not zero.
VANISHED = 1e-10


def measure(config: Config, cell: Cell) -> Rows:
    """Run one task."""
    task = {"partials": _partials, "translation": _translation}
    return Rows(task[cell["task"]](config, cell["n"], cell["trial"]))


def _partials(config: Config, n: int, trial: int) -> list[Row]:
    """Return derivatives up to an order, grouped by the cases of lemma 3."""
    rows: list[Row] = []
    for setting, names in SETTINGS.items():
        plan = ShortcutBlueprint(
            width=config.width, depth=config.units * n, shortcut=n, **names
        )
        loss, survive = _Loss(config, plan, trial), []
        for order in range(1, config.order + 1):
            kinds = _sorted(loss, n, order)
            every = [
                value for kind in ("no_unit", "part", "whole") for value in kinds[kind]
            ]
            numbers = {k: max(values) for k, values in kinds.items() if values}
            if kinds["chain"]:
                numbers["chain"] = min(kinds["chain"])
            numbers["share"] = float(np.mean([value > VANISHED for value in every]))
            survive += [order] if numbers["share"] else []
            error = EPS * config.samples * max(1.0, *every)
            rows += named(numbers, error, n=n, setting=setting, order=order)
        lowest = {"first_order": min(survive, default=config.order + 1)}
        rows += named(lowest, 0.0, n=n, setting=setting)
    return rows


def _sorted(loss: "_Loss", n: int, order: int) -> dict[str, list[float]]:
    """Return magnitudes grouped by complete units; "chain" is one unit, once."""
    kinds: dict[str, list[float]] = {
        "no_unit": [],
        "part": [],
        "whole": [],
        "chain": [],
    }
    for chosen in patterns(loss.layers, order):
        value = abs(loss.partial(chosen))
        touched, whole = len({layer // n for layer in chosen}), complete(chosen, n)
        kinds[
            "no_unit" if not whole else "part" if whole < touched else "whole"
        ].append(value)
        if order == n and whole:
            kinds["chain"].append(value)
    return kinds


def _translation(config: Config, n: int, trial: int) -> list[Row]:
    """Return changes of loss and curvature when two directions move to other units."""
    rows: list[Row] = []
    for setting, names in SETTINGS.items():
        plan = ShortcutBlueprint(
            width=config.width, depth=config.moved * n, shortcut=n, **names
        )
        loss = _Loss(config, plan, trial)
        gaps: dict[str, float] = {"shift_loss": 0.0, "shift_partial": 0.0}
        swapped = np.inf
        pairs = list(product(range(config.moved), repeat=2))
        for (first, last), (r, s) in product(product(range(n), repeat=2), pairs):
            here, home = (r * n + first, s * n + last), (first, (r != s) * n + last)
            moved = abs(loss.value(here) - loss.value(home)) / loss.value(())
            if r > s:
                swapped = min(swapped, moved)
                continue
            curved = abs(loss.partial(here) - loss.partial(home))
            gaps["shift_loss"] = max(gaps["shift_loss"], moved)
            gaps["shift_partial"] = max(gaps["shift_partial"], curved)
        rows += named({**gaps, "swapped": swapped}, 100 * EPS, n=n, setting=setting)
    return rows


class _Loss:
    """The loss near zero as a function of steps along one direction per matrix.

    A direction depends on its position in the list of matrices and on the layer inside
    the unit, but not on the unit. So moving it between units changes nothing else.
    """

    def __init__(self, config: Config, plan: ShortcutBlueprint, trial: int) -> None:
        import torch

        self._torch, self._config, self._plan = torch, config, plan
        self._network = at_zero(plan, config.device)
        self._weights = dict(self._network.named_parameters())
        self._names = list(self._weights)
        x, y = random_data(trial, samples=config.samples, width=config.width)
        self._batch = [torch.tensor(part, device=config.device) for part in (x, y)]
        rng = stream(trial, "directions")
        shape = (config.order, plan.shortcut, plan.width, plan.width)
        ways = rng.normal(size=shape) / np.sqrt(plan.width)
        self._ways = torch.tensor(ways, device=config.device)
        self._values: dict[tuple[int, ...], float] = {}
        self._partials: dict[tuple[int, ...], float] = {}

    @property
    def layers(self) -> int:
        """The number of matrices."""
        return self._plan.depth

    def _at(self, chosen: Sequence[int], steps: Any) -> Any:
        weights = dict(self._weights)
        for place, layer in enumerate(chosen):
            way = self._ways[place, layer % self._plan.shortcut]
            name = self._names[layer]
            weights[name] = weights[name] + steps[place] * way
        call = self._torch.func.functional_call
        made = call(self._network, weights, (self._batch[0],))
        return instruments.HalfSquareLoss()(made, self._batch[1])

    def value(self, chosen: tuple[int, ...]) -> float:
        """Return the loss with the chosen matrices moved."""
        if chosen not in self._values:
            with self._torch.no_grad():
                loss = self._at(chosen, [self._config.size] * len(chosen))
            self._values[chosen] = float(loss)
        return self._values[chosen]

    def partial(self, chosen: tuple[int, ...]) -> float:
        """Return the mixed derivative at zero along the chosen matrices."""
        if chosen not in self._partials:
            self._partials[chosen] = self._derivative(chosen)
        return self._partials[chosen]

    def _derivative(self, chosen: tuple[int, ...]) -> float:
        torch = self._torch
        steps = [
            torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in chosen
        ]
        value = self._at(chosen, steps)
        for step in steps:
            if not value.requires_grad:
                return 0.0  # a constant by now
            (value,) = torch.autograd.grad(
                value, step, create_graph=True, materialize_grads=True
            )
        return float(value.detach())
