r"""The Hessian at states along training, and what is read off it.

A linear network's Hessian is known exactly from its weights and the data's second
moments; the first network of every kind is measured by double backward instead, on few
samples with those moments, and the two are compared.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from theodolite import instruments, networks
from theodolite.core import Blueprint, NormMode, Row, Status, index_of
from theodolite.studies.li2016demystifying.exact_optimum import exact_optimum
from theodolite.studies.li2016demystifying.measuring import (
    EPS,
    gap,
    measured_hessian,
)
from theodolite.theory import (
    Moments,
    equivalent_samples,
    linear_gradient,
    linear_hessian,
    linear_loss,
)

READ = ("largest", "small", "index")
# Depth 16 at width 10 takes 3 matrices of 1600².
_BYTES = 2**30


@dataclass(eq=False)
class States:
    """A probe that reads the Hessian wherever its schedule says.

    Attributes:
        plan: The network.
        data: Second moments of the data.
        by_network: Whether to measure by double backward; else from the moments.
        gaps: How far the two Hessians were apart, where both were computed.
        weights: Those of the last state seen.
    """

    plan: Blueprint
    data: Moments
    by_network: bool
    gaps: list[Row] = field(default_factory=list)
    weights: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __call__(self, snapshot: Any) -> list[Row]:
        """Read one state."""
        self.weights = networks.get_weights(snapshot.model)
        matrix = linear_hessian(self.plan, self.weights, self.data)
        reading = _from_moments(matrix)
        if self.by_network:
            reading = self._measured(snapshot, matrix)
        gradient = linear_gradient(self.plan, self.weights, self.data)
        flat = gradient.transpose(0, 2, 1).ravel()  # (layer, column, row)
        return [*_read(instruments.spectrum_of(reading)), *_slope(flat, matrix)]

    def _measured(self, snapshot: Any, matrix: np.ndarray) -> Any:
        few = equivalent_samples(self.data)
        found, reading = measured_hessian(snapshot.model, *few, max_bytes=_BYTES)
        self.gaps.append(
            {
                "quantity": "moments_gap",
                "step": snapshot.step,
                "value": gap(matrix, found, float(np.abs(found).max())),
                "error": reading.asymmetry + EPS * len(found),
                "norm_mode": str(reading.norm_mode),
                "method": reading.method,
            }
        )
        return reading


def _from_moments(matrix: np.ndarray) -> Any:
    return instruments.DenseHessian(
        matrix=matrix,
        matrix_error=EPS * float(np.abs(matrix).max()),
        asymmetry=EPS,
        loss=float("nan"),
        gradient=np.zeros(0),
        status=Status.EXACT,
        norm_mode=NormMode.EVAL,
        method="second moments",
    )


def _read(spectrum: Any) -> list[Row]:
    """Return extremes and index with their errors; times would differ by run."""
    rows = [*spectrum.condition().rows(), *spectrum.index().rows()]
    kept = ("quantity", "value", "error", "status", "norm_mode", "method")
    return [
        {key: row[key] for key in kept if key in row}
        for row in rows
        if row["quantity"] in READ
    ]


def _slope(gradient: np.ndarray, matrix: np.ndarray) -> list[Row]:
    """Return the gradient's norm and the curvature along it."""
    size = float(np.linalg.norm(gradient))
    curvature = float(gradient @ matrix @ gradient) / size**2 if size else 0.0
    rounding = EPS * len(gradient)
    return [
        {"quantity": "gradient", "value": size, "error": rounding * size},
        {
            "quantity": "curvature",
            "value": curvature,
            "error": rounding * float(np.abs(matrix).max()),
        },
    ]


def start_rows(plan: Blueprint, data: Moments, seed: int) -> list[Row]:
    """Return the index of a network before its first step."""
    weights = networks.draw_weights(plan, seed=seed)
    values = np.linalg.eigvalsh(linear_hessian(plan, weights, data))
    rounding = EPS * len(values) * float(np.abs(values).max())
    unsure = float(np.mean(np.abs(values) <= rounding))
    index = index_of(values, rounding=rounding)
    return [{"quantity": "first_index", "value": index, "error": unsure}]


def optimum_rows(states: States) -> list[Row]:
    """Return rank and percentile of the Hessian at an optimum near the last state."""
    plan, data = states.plan, states.data
    there, _ = exact_optimum(plan, states.weights, data)
    size = np.abs(np.linalg.eigvalsh(linear_hessian(plan, there, data)))
    # The map is optimal to the rounding of two inverses.
    rank = float(np.sum(size > 1e-9 * size.max()))
    excess = linear_loss(plan, there, data) - data.optimal_loss()
    small = float(np.quantile(size, 0.1) / size.max())
    rounding = EPS * len(size)
    return [
        {"quantity": "optimum_rank", "value": rank, "error": 0.0,
         "parameters": len(size)},
        {"quantity": "optimum_excess", "value": excess, "error": rounding},
        {"quantity": "optimum_small", "value": small, "error": rounding},
    ]  # fmt: skip


def onto_levels(rows: Iterable[Row], levels: Mapping[float, float]) -> list[Row]:
    """Interpolate a run's states linearly in the loss onto common levels.

    Args:
        rows: Rows of one run with ``loss``, its first state among them.
        levels: Fraction of the excess loss to loss.

    Returns:
        A row a quantity and level that the run passed, with the distance to its
        nearest state as error, and the ratio of the two extremes.
    """
    found: list[Row] = []
    by_name: dict[str, dict[float, Row]] = {}
    for row in rows:
        by_name.setdefault(row["quantity"], {})[row["loss"]] = row
    for fraction, loss in levels.items():
        here = {}
        for name, states in by_name.items():
            losses = np.array(sorted(states))
            if not losses[0] <= loss <= losses[-1]:
                continue
            values = np.array([states[each]["value"] for each in losses])
            nearest = states[losses[np.argmin(np.abs(losses - loss))]]
            value = float(np.interp(loss, losses, values))
            here[name] = {
                "quantity": name,
                "fraction": fraction,
                "loss": loss,
                "value": value,
                "error": abs(value - nearest["value"]) + nearest["error"],
                "status": nearest.get("status", str(Status.EXACT)),
            }
        found += [*here.values(), *_ratio(here)]
    return found


def _ratio(here: dict[str, Row]) -> list[Row]:
    if "largest" not in here or "small" not in here:
        return []
    top, low = here["largest"], here["small"]
    value = top["value"] / low["value"] if low["value"] else float("inf")
    error = value * (top["error"] / top["value"] + low["error"] / low["value"])
    return [{**low, "quantity": "ratio", "value": value, "error": error}]
