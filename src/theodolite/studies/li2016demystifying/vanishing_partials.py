"""Lemmas 3 and 4: which mixed derivatives vanish at zero, and which are the same.

Li et al. (2016), Demystifying ResNet, lemmas 3 and 4, definitions 4 and 5. The claim
in our words: at zero a derivative of any order can be non-zero only if it goes
through every matrix of some unit, and second derivatives do not care which units
their two matrices are in, only about their order.

Each derivative is taken along random directions of whole matrices, so that it is zero
only if the derivative tensor of those matrices is.

Departures: random data. Cost: seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from theodolite import instruments
from theodolite.core import Blueprint, Row, Rows, stream
from theodolite.studies.li2016demystifying import (
    vanishing_partials_claims,
    vanishing_partials_figure,
)
from theodolite.studies.li2016demystifying.measuring import (
    EPS,
    SETTINGS,
    at_zero,
    named,
    random_data,
)
from theodolite.studies.study import Drawing, Study, StudyConfig

LENGTHS = (1, 2, 3)


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Random problems of one width.

    Attributes:
        units: Units for lemma 3; all sets of their matrices are tried.
        order: Highest order of a derivative.
        moved: Units for lemma 4.
        size: Size of the two matrices that lemma 4 moves between units.
    """

    width: int = 3
    samples: int = 12
    units: int = 2
    order: int = 4
    moved: int = 4
    size: float = 0.3


SMOKE = Config(n_seeds=1, order=3, moved=3)
QUICK = Config(n_seeds=2)
PAPER = Config(n_seeds=10, order=5)


def cells(config: Config) -> list[dict[str, Any]]:
    """One cell a lemma, shortcut length and dataset."""
    return [
        {"task": task, "n": n, "trial": seed}
        for task in ("partials", "translation")
        for n in LENGTHS
        for seed in config.seeds
        if task == "partials" or n < 3
    ]


def predict(config: Config) -> Rows:
    """Which share of derivatives lemma 3 lets be non-zero, order by order."""
    rows: list[Row] = []
    for n in LENGTHS:
        for order in range(1, config.order + 1):
            allowed = [
                _complete(chosen, n) > 0
                for chosen in _patterns(config.units * n, order)
            ]
            rows += named({"allowed": np.mean(allowed)}, 0.0, n=n, order=order)
    return Rows(rows)


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Run one task."""
    task = {"partials": _partials, "translation": _translation}
    return Rows(task[cell["task"]](config, cell["n"], cell["trial"]))


def _patterns(layers: int, order: int) -> list[tuple[int, ...]]:
    return list(combinations_with_replacement(range(layers), order))


def _complete(chosen: Sequence[int], n: int) -> int:
    """Return how many units have all their matrices among the chosen."""
    units = {layer // n for layer in chosen}
    return sum(set(range(r * n, (r + 1) * n)) <= set(chosen) for r in units)


def _partials(config: Config, n: int, trial: int) -> list[Row]:
    """All derivatives up to an order, sorted by what lemma 3 says of them."""
    rows: list[Row] = []
    for setting, order in product(SETTINGS, range(1, config.order + 1)):
        plan = Blueprint(
            width=config.width, depth=config.units * n, shortcut=n, **SETTINGS[setting]
        )
        loss = _Loss(config, plan, trial)
        kinds: dict[str, list[float]] = {"no_unit": [], "part": [], "whole": []}
        chain: list[float] = []
        for chosen in _patterns(plan.depth, order):
            value = abs(loss.partial(chosen))
            touched = len({layer // n for layer in chosen})
            found = _complete(chosen, n)
            kind = "no_unit" if not found else "part" if found < touched else "whole"
            kinds[kind].append(value)
            if order == n and found:
                chain.append(value)
        every = [value for values in kinds.values() for value in values]
        labels = {"n": n, "setting": setting, "order": order}
        found = {name: max(values) for name, values in kinds.items() if values}
        found["share"] = float(np.mean([value > 1e-10 for value in every]))
        found |= {"chain": min(chain)} if chain else {}
        rows += named(found, EPS * config.samples * max(1.0, *every), **labels)
    return rows


def _translation(config: Config, n: int, trial: int) -> list[Row]:
    """Two matrices in any two units: the loss itself, and its second derivative."""
    rows: list[Row] = []
    for setting in SETTINGS:
        plan = Blueprint(
            width=config.width, depth=config.moved * n, shortcut=n, **SETTINGS[setting]
        )
        loss = _Loss(config, plan, trial)
        gaps: dict[str, float] = {"shift_loss": 0.0, "shift_partial": 0.0}
        swapped = np.inf
        pairs = list(product(range(config.moved), repeat=2))
        for (first, last), (r, s) in product(product(range(n), repeat=2), pairs):
            here = (r * n + first, s * n + last)
            home = (first, (r != s) * n + last)
            moved = abs(loss.value(here) - loss.value(home)) / loss.value(())
            curved = abs(loss.partial(here) - loss.partial(home))
            if r <= s:
                gaps["shift_loss"] = max(gaps["shift_loss"], moved)
                gaps["shift_partial"] = max(gaps["shift_partial"], curved)
            else:
                swapped = min(swapped, moved)
        labels = {"n": n, "setting": setting}
        rows += named({**gaps, "swapped": swapped}, 100 * EPS, **labels)
    return rows


class _Loss:
    """The loss near zero as a function of steps along a direction a matrix.

    A direction belongs to a place among the chosen and a layer of a unit, whatever the
    unit, so that moving it between units changes nothing else.
    """

    def __init__(self, config: Config, plan: Blueprint, trial: int) -> None:
        import torch

        self._torch, self._config, self._plan = torch, config, plan
        self._network = at_zero(plan, config.device)
        x, y = random_data(trial, samples=config.samples, width=config.width)
        self._batch = [torch.tensor(part, device=config.device) for part in (x, y)]
        rng = stream(trial, "directions")
        shape = (config.order, plan.shortcut, plan.width, plan.width)
        ways = rng.normal(size=shape) / np.sqrt(plan.width)
        self._ways = torch.tensor(ways, device=config.device)

    def _at(self, chosen: Sequence[int], steps: Any) -> Any:
        torch, plan = self._torch, self._plan
        names = [name for name, _ in self._network.named_parameters()]
        weights = dict(self._network.named_parameters())
        for place, layer in enumerate(chosen):
            way = self._ways[place, layer % plan.shortcut]
            weights[names[layer]] = weights[names[layer]] + steps[place] * way
        made = torch.func.functional_call(self._network, weights, (self._batch[0],))
        return instruments.HalfSquareLoss()(made, self._batch[1])

    def value(self, chosen: Sequence[int]) -> float:
        """The loss with the chosen matrices moved."""
        with self._torch.no_grad():
            return float(self._at(chosen, [self._config.size] * len(chosen)))

    def partial(self, chosen: Sequence[int]) -> float:
        """The mixed derivative at zero along the chosen matrices."""
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


def compare(predicted: Rows, measured: Rows) -> list[Row]:
    """Share of non-zero derivatives beside what lemma 3 allows."""
    rows: list[Row] = []
    for row in predicted.where(quantity="allowed"):
        labels = {"n": row["n"], "order": row["order"]}
        found = measured.where(quantity="share", setting="general", **labels)
        rows.append(
            {
                "label": f"non-zero derivatives of order {row['order']}, n = {row['n']}"
                " (at most)",
                "predicted": row["value"],
                "measured": float(found.values().max()),
                "error": 0.0,
            }
        )
    return rows


STUDY = Study(
    title="Lemmas 3 and 4: which derivatives vanish at zero, and which coincide",
    summary=(
        "A unit with one matrix at zero is the identity, whatever its others are. So a "
        "derivative at zero sees a unit only if it goes through all of its matrices "
        "(lemma 3), and units that are not touched may be left out or moved (lemma 4). "
        "All sets of matrices up to an order are tried, along random directions."
    ),
    presets={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    cells=cells,
    predict=predict,
    measure=measure,
    compare=compare,
    claims=vanishing_partials_claims.CLAIMS,
    drawings=(
        Drawing(
            "partials",
            "Share of mixed derivatives at zero that are not zero, over all sets of "
            "matrices of two units, against the order of the derivative. Hollow bars: "
            "what lemma 3 allows; full bars: measured.",
            vanishing_partials_figure.draw,
        ),
    ),
    departures=(
        "Random Gaussian inputs and targets, and directions in place of "
        "single entries.",
    ),
)
