"""Train networks, keep states at levels of the loss, measure the first's Hessians."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from theodolite import instruments, networks, training
from theodolite.core import Cell, Row, Rows, ShortcutBlueprint, Status, named_rows

from ..shared.hessians import measured_hessian
from ..shared.problems import EPS
from ..shared.whitened import few, whitened
from .config import KINDS, RATES, Config


def onto_levels(rows: Iterable[Row], levels: Mapping[float, float]) -> list[Row]:
    """Interpolate a run's states linearly in the loss onto common levels.

    Levels are losses by fraction of the excess. Returns a row for each quantity and
    level that the run passed, with the distance to its nearest state as error, and the
    ratio of the two extremes.
    """
    table: list[Row] = []
    by_name: dict[str, dict[float, Row]] = {}
    for row in rows:
        by_name.setdefault(row["quantity"], {})[row["loss"]] = row
    for fraction, loss in levels.items():
        here: dict[str, Row] = {}
        for name, states in by_name.items():
            losses = np.array(sorted(states))
            if losses[0] <= loss <= losses[-1]:
                labels = {"quantity": name, "fraction": fraction, "loss": loss}
                here[name] = {**labels, **_between(states, losses, loss)}
        table += [*here.values(), *_ratio(here)]
    return table


def _between(
    states: Mapping[float, Row], losses: np.ndarray, loss: float
) -> dict[str, Any]:
    values = np.array([states[each]["value"] for each in losses])
    nearest = states[losses[np.argmin(np.abs(losses - loss))]]
    value = float(np.interp(loss, losses, values))
    return {
        "value": value,
        "error": abs(value - nearest["value"]) + nearest["error"],
        "status": nearest.get("status", str(Status.EXACT)),
    }


def _ratio(here: Mapping[str, Row]) -> list[Row]:
    if "largest" not in here or "small" not in here:
        return []
    top, low = here["largest"], here["small"]
    value = top["value"] / low["value"] if low["value"] else float("inf")
    error = value * (top["error"] / top["value"] + low["error"] / low["value"])
    return [{**low, "quantity": "ratio", "value": value, "error": error}]


READ = ("largest", "small", "index")
# Depth 16 at width 10 takes 3 matrices of 1600².
_BYTES = 2**30


@dataclass(eq=False)
class State:
    """A network during training: step, loss, weights, and Hessian if measured."""

    step: int
    loss: float
    weights: np.ndarray
    rows: list[Row] = field(default_factory=list)
    matrix: np.ndarray | None = None
    reading: Any = None


@dataclass(eq=False)
class States:
    """A probe that keeps each state and, on request, measures its Hessian."""

    samples: tuple[np.ndarray, np.ndarray] | None = None
    keep_matrix: bool = False
    states: list[State] = field(default_factory=list)

    def __call__(self, snapshot: Any) -> list[Row]:
        """Keep one state."""
        weights = networks.get_weights(snapshot.model)
        state = State(snapshot.step, snapshot.loss, weights)
        if self.samples is not None:
            matrix, reading = measured_hessian(
                snapshot.model, *self.samples, matrix_bytes=_BYTES
            )
            state.rows = _read(reading)
            if self.keep_matrix:
                state.matrix, state.reading = matrix, reading
        self.states.append(state)
        return []


def _read(reading: Any) -> list[Row]:
    """Return extremes, index and slope with errors; leave out times, which vary."""
    spectrum = instruments.spectrum_of(reading)
    rows = [*spectrum.condition().rows(), *spectrum.index().rows()]
    kept = ("quantity", "value", "error", "status", "norm_mode", "method")
    table = [
        {key: row[key] for key in kept if key in row}
        for row in rows
        if row["quantity"] in READ
    ]
    return [*table, *slope_rows(reading.gradient, reading.matrix)]


def slope_rows(gradient: np.ndarray, matrix: np.ndarray) -> list[Row]:
    """Return the gradient's norm and the curvature along it."""
    size = float(np.linalg.norm(gradient))
    curvature = float(gradient @ matrix @ gradient) / size**2 if size else 0.0
    rounding, most = EPS * len(gradient), float(np.abs(matrix).max())
    return [
        *named_rows({"gradient": size}, rounding * size),
        *named_rows({"curvature": curvature}, rounding * most),
    ]


def measure(config: Config, cell: Cell) -> Rows:
    """Train one network; if it is the first, measure its Hessian during training."""
    if cell["task"] == "start" or not by_network(config, cell):
        return Rows()
    states = trained(config, tuple(cell.items()))
    return Rows(arranged(config, cell, [(s, s.rows) for s in states]))


def by_network(config: Config, cell: Cell) -> bool:
    """Return whether a cell's Hessians are measured by double backward."""
    return cell["trial"] == config.seed and cell["depth"] <= config.measured_depth


def blueprint(config: Config, cell: Cell) -> ShortcutBlueprint:
    """Return the network of a cell."""
    return ShortcutBlueprint(
        width=config.width, depth=cell["depth"], **KINDS[cell["kind"]]
    )


@lru_cache(maxsize=1)  # `combine` needs it right after, in the same cell
def trained(config: Config, key: tuple[tuple[str, Any], ...]) -> list[State]:
    """Train one network and return its states: on a grid of steps, or at levels."""
    cell = dict(key)
    levels = cell["task"] == "levels"
    samples = few(config.dataset, config.width) if by_network(config, cell) else None
    states = States(samples, keep_matrix=levels)
    if levels:
        wanted = training.AtLosses(loss_levels(config).values())
        probes = [
            training.Probe("start", states, training.AtSteps([0])),
            training.Probe("level", states, wanted),
        ]
    else:
        probes = [training.Probe("run", states, training.Every(config.every))]
    training.train_grid(
        blueprint(config, cell),
        whitened(config.dataset, config.width),
        {"seed": [cell["trial"]], "lr": [RATES[cell["kind"]]]},
        steps=config.steps if levels else config.run_steps,
        probes=probes,
        device=config.device,
        jobs=0,
    )
    return states.states


def loss_levels(config: Config) -> dict[float, float]:
    """Return the loss at each fraction of the way from the optimum to zero weights."""
    x, y = few(config.dataset, config.width)
    fitted = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    best, top = (float(np.sum((y - z) ** 2)) / (2 * len(x)) for z in (fitted, x))
    return {f: best + f * (top - best) for f in config.fractions}


def arranged(
    config: Config, cell: Cell, read: list[tuple[State, list[Row]]]
) -> list[Row]:
    """Label the rows of states by step and loss, and put them onto the levels."""
    rows: list[Row] = [
        {**row, "step": state.step, "loss": state.loss}
        for state, of_state in read
        for row in of_state
    ]
    if cell["task"] == "run":
        return rows
    first = [{**row, "fraction": None} for row in rows if row["step"] == 0]
    return [*first, *onto_levels(rows, loss_levels(config))]
