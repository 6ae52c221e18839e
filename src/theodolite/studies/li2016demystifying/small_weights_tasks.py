"""The smaller tasks of the study of theorem 1: one unit, rounding, real labels."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import ConfigError, Row
from theodolite.studies.li2016demystifying.measuring import EPS, named
from theodolite.studies.li2016demystifying.sphere_data import (
    close_pair,
    outputs,
    points,
    run_chain,
    torch_network,
    torch_propagate,
    unit_rows,
)
from theodolite.studies.li2016demystifying.whitened import whitened
from theodolite.theory import interpolating_network, minimum_distance, step_unit


def one_unit(config: Any, cell: Mapping[str, Any]) -> list[Row]:
    """One unit of lemma 1: what it moves, and what it leaves alone."""
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
        wanted = np.sqrt(8 * step) / rho
        norms = np.array([np.linalg.norm(part) for part in unit[:2]])
        found = {
            "gain": np.linalg.norm(moved[0] - (there - here)) / step,
            "others_moved": np.abs(moved[1:3]).max() / step,
            "inside_moved": np.abs(moved[3]).max() / step,
            "norm_gap": np.abs(norms / wanted - 1).max(),
        }
        rows += named(found, 100 * EPS / step, step=step)
    return rows


def _chord(here: np.ndarray, side: np.ndarray, chord: float) -> np.ndarray:
    """Return the unit vector a chord away towards an orthogonal side."""
    angle = 2 * np.arcsin(chord / 2)
    return np.cos(angle) * here + np.sin(angle) * side


def rounding(config: Any, cell: Mapping[str, Any]) -> list[Row]:
    """Rounding along a path: weights from the path alone, and from the samples."""
    rows: list[Row] = []
    for rho in config.distances:
        x, y = close_pair(rho, config.length, cell["trial"])
        units = 2 * config.trap_steps
        propagate = torch_propagate(3, config.device, [])
        found: dict[str, float] = {}
        for name, closed in (("open", False), ("closed", True)):
            built = interpolating_network(
                x, y, units, closed_loop=closed, propagate=propagate
            )
            parts = built.first, built.second, built.bias
            made = run_chain(*parts, x, config.device)
            found[f"error_{name}"] = _miss(made, y)
            if closed:
                # A few units in the last place, along the direction that grows.
                nudged = x * (1 + 4 * EPS)
                made = run_chain(*parts, nudged, config.device)
                found["error_nudged"] = _miss(made, y)
            found["exponent"] = np.sqrt(8 / built.rho**2 - 1) * built.lengths[0]
        rows += named(found, EPS, rho=rho)
    return rows


def _miss(made: np.ndarray, y: np.ndarray) -> float:
    """Return the error of the first sample, a thousand where it is lost altogether."""
    off = float(np.nan_to_num(np.abs(made - y)[0], nan=np.inf).max())
    return min(off, 1e3)


def digits(config: Any, cell: Mapping[str, Any]) -> list[Row]:
    """Whitened digits against assumptions 1 and 2."""
    x, y = whitened(config.dataset, 10)
    norms = np.linalg.norm(x, axis=1)
    chosen, labels = unit_rows(x[: config.samples]), y[: config.samples]
    units = 40 * config.samples
    try:
        interpolating_network(chosen, labels, units)
        refused = 0.0
    except ConfigError:
        refused = 1.0
    built = interpolating_network(
        chosen, labels, units, perturb=0.2, seed=cell["trial"]
    )
    found = {
        "label_distance": minimum_distance(labels),
        "distinct_labels": len(np.unique(y, axis=0)),
        "digits": len(y),
        "norm_least": norms.min(),
        "norm_most": norms.max(),
        "refused": refused,
        "rho_perturbed": built.rho,
        "moved_labels": np.linalg.norm(built.targets - labels, axis=1).max(),
        "error_perturbed": np.abs(built.apply(chosen) - built.targets).max(),
    }
    return named(found, 1e-12)
