"""The construction of theorem 1, run in torch."""

import math
from itertools import pairwise
from typing import Any

import numpy as np

from theodolite.core import Cell, Row, Rows
from theodolite.theory import interpolating_network, minimum_distance, step_unit

from ..shared.problems import EPS, named
from ..shared.whitened import whitened
from .config import Config
from .measure import outputs, run_chain, torch_network, torch_propagate
from .predict import close_pair, points, unit_rows


def combine(config: Config, cell: Cell) -> Rows:
    """Run one task."""
    task = {"walk": _walk, "lemma": _one_unit, "trap": _rounding, "labels": _digits}
    return Rows(task[cell["task"]](config, cell))


def _walk(config: Config, cell: Cell) -> list[Row]:
    """Build networks of growing depth, and measure where torch moves the samples."""
    rows: list[Row] = []
    x, y = points(cell["case"], cell["trial"])
    for steps in config.steps:
        numbers, rho, _ = _built(config, x, y, steps * len(x))
        rows += named(numbers, 1e-13 / rho**2, units=steps * len(x), samples=len(x))
    rho = minimum_distance(np.concatenate([x, y]))
    for longest in config.longest:
        rows += _counted(config, x, y, rho, longest)
    return rows


def _built(
    config: Config, x: np.ndarray, y: np.ndarray, units: int
) -> tuple[dict[str, Any], float, list[np.ndarray]]:
    """Build a network unit by unit from the samples that torch outputs, and run it."""
    seen = [x]
    propagate = torch_propagate(x.shape[1], config.device, seen)
    built = interpolating_network(x, y, units, propagate=propagate)
    parts = built.first, built.second, built.bias
    if built.units <= config.whole:
        made = outputs(torch_network(*parts, config.device), x)
    else:
        made = run_chain(*parts, x, config.device)
    numbers = {
        "max_norm": built.max_norm,
        "bias_norm": np.linalg.norm(built.bias, axis=1).max(),
        "bound_share": built.max_norm / built.bound,
        "clearance": min(minimum_distance(state) for state in seen) / built.rho,
        "output_error": np.abs(made - y).max(),
    }
    return numbers, built.rho, seen


def _counted(
    config: Config, x: np.ndarray, y: np.ndarray, rho: float, longest: float
) -> list[Row]:
    """Build a network with as many units as Eq 19 says, and measure its steps."""
    m = len(x)
    units = m * math.ceil((rho * (m - 1) / 2 + 1) * math.pi / longest)
    made, _, seen = _built(config, x, y, units)
    step = max(
        float(np.linalg.norm(after - before, axis=1).max())
        for before, after in pairwise(seen)
    )
    numbers = {"step_share": step / longest, "counted_miss": made["output_error"]}
    return named(numbers, 1e-13 / rho**2, units=units, longest=longest)


def _one_unit(config: Config, cell: Cell) -> list[Row]:
    """Return which samples one unit of lemma 1 moves, and which it leaves alone."""
    rows: list[Row] = []
    x, y = points("6,4", cell["trial"])
    here, side = x[0], unit_rows((y[0] - (y[0] @ x[0]) * x[0])[None])[0]
    rho = 0.5
    for step in (0.01, 0.1, 0.5):
        there = _chord(here, side, step)
        outside, inside = (_chord(here, -side, share * rho) for share in (0.5, 0.4))
        unit = step_unit(here, there, rho)
        first, second, bias = (part[None] for part in unit)
        network = torch_network(first, second, bias, config.device)
        before = np.stack([here, outside, -here, inside])
        moved = outputs(network, before) - before
        norms = np.array([np.linalg.norm(part) for part in unit[:2]])
        numbers = {
            "gain": np.linalg.norm(moved[0] - (there - here)) / step,
            "others_moved": np.abs(moved[1:3]).max() / step,
            "inside_moved": np.abs(moved[3]).max() / step,
            "norm_gap": np.abs(norms * rho / np.sqrt(8 * step) - 1).max(),
        }
        rows += named(numbers, 100 * EPS / step, step=step)
    return rows


def _chord(here: np.ndarray, side: np.ndarray, chord: float) -> np.ndarray:
    """Return the unit vector a chord away towards an orthogonal side."""
    angle = 2 * np.arcsin(chord / 2)
    return np.cos(angle) * here + np.sin(angle) * side


def _rounding(config: Config, cell: Cell) -> list[Row]:
    """Return errors of weights built from the path alone, and from the samples."""
    rows: list[Row] = []
    for rho in config.distances:
        x, y = close_pair(rho, config.length, cell["trial"])
        units = 2 * config.trap_steps
        propagate = torch_propagate(3, config.device, [])
        errors: dict[str, float] = {}
        for name, loop in (("open", False), ("closed", True)):
            built = interpolating_network(
                x, y, units, closed_loop=loop, propagate=propagate
            )
            parts = built.first, built.second, built.bias
            errors[f"error_{name}"] = _miss(run_chain(*parts, x, config.device), y)
            if loop:
                # A few units in the last place, along the direction that grows.
                nudged = run_chain(*parts, x * (1 + 4 * EPS), config.device)
                errors["error_nudged"] = _miss(nudged, y)
            errors["exponent"] = np.sqrt(8 / built.rho**2 - 1) * built.lengths[0]
        rows += named(errors, EPS, rho=rho)
    return rows


def _miss(made: np.ndarray, y: np.ndarray) -> float:
    """Return the error of the first sample, at most 1000."""
    off = float(np.nan_to_num(np.abs(made - y)[0], nan=np.inf).max())
    return min(off, 1e3)


def _digits(config: Config, cell: Cell) -> list[Row]:
    """Return the error on digits of norm one with labels moved apart."""
    x, y = whitened(config.dataset, 10)
    chosen, labels = unit_rows(x[: config.samples]), y[: config.samples]
    built = interpolating_network(
        chosen, labels, 40 * config.samples, perturb=0.2, seed=cell["trial"]
    )
    numbers = {
        "rho_perturbed": built.rho,
        "error_perturbed": np.abs(built.apply(chosen) - built.targets).max(),
    }
    return named(numbers, 1e-12)
