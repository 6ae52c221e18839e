"""Equilibria, integrated flows and speeds of linear classifiers."""

import numpy as np

from theodolite.core import Row, Rows, named_rows
from theodolite.theory import LinearFlow, NormalisedFlow

from ..shared.drawn_networks import draw
from .config import (
    LOSSES,
    SETTINGS,
    STARTS,
    THREE_DECAYS,
    Config,
    data,
    directions,
    three_points,
)

EPS = 1e-12
DIFFERENCE = 1e-6


def predict(config: Config) -> Rows:
    """Return the predictions for each group of numbers."""
    rows = _points()
    for trial in config.seeds:
        rows += [*_speeds(config, trial), *_ends(config, trial), *_deep(config, trial)]
    return Rows(rows)


def _speeds(config: Config, trial: int) -> list[Row]:
    rows: list[Row] = []
    x, y = data(config, "wide", trial)
    for loss in LOSSES:
        flow = LinearFlow(inputs=x, labels=y, loss=loss, decay=0.1)
        for start, v in enumerate(directions(config, "wide", trial)):
            rho, moved = flow.speed(STARTS[start], v)
            labels = {"trial": trial, "loss": loss, "start": start}
            rows += named_rows({"norm_speed": rho}, EPS, **labels)
            for k, value in enumerate(moved):
                rows += named_rows({"direction_speed": value}, EPS, feature=k, **labels)
    return rows


def _ends(config: Config, trial: int) -> list[Row]:
    """Return equilibria, and ends of flows that depend on their start."""
    rows: list[Row] = []
    for shape, loss, decay in SETTINGS:
        x, y = data(config, shape, trial)
        flow = LinearFlow(inputs=x, labels=y, loss=loss, decay=decay)
        labels = {"trial": trial, "shape": shape, "loss": loss, "decay": decay}
        for k, value in enumerate(flow.rest()):
            rows += named_rows({"rest": value}, EPS, feature=k, **labels)
        if decay == 0 and shape == "wide":
            for start, v in enumerate(directions(config, shape, trial)):
                scales, _ = flow.integrate(STARTS[start], v, [config.horizon])
                end = {"end_norm": abs(scales[-1])}
                rows += named_rows(end, 1e-8, start=start, **labels)
            least = float(np.linalg.norm(flow.rest()))
            rows += named_rows({"least_norm": least}, EPS, trial=trial)
    return rows


def _points() -> list[Row]:
    """Return residuals and margins at the equilibrium of the three points."""
    x, y = three_points()
    rows: list[Row] = []
    for decay in THREE_DECAYS:
        w = LinearFlow(inputs=x, labels=y, decay=decay).rest()
        for n, value in enumerate(y - x @ w):
            rows += named_rows({"residual": value}, EPS, sample=n, decay=decay)
    for n, value in enumerate(x[:, 0]):
        rows += named_rows({"margin": value}, EPS, sample=n)
    return rows


def _deep(config: Config, trial: int) -> list[Row]:
    """Return Eq 46 for ReLU networks, derivatives of outputs by differences."""
    drawn = draw(config.seed, trial, config.widths, 6)
    flow = NormalisedFlow(inputs=drawn.inputs, labels=drawn.labels)
    norms = np.linspace(1.2, 1.6, len(drawn.weights))
    rho, y = float(np.prod(norms)), drawn.labels
    f = flow.outputs(drawn.weights)
    weight = np.exp(-rho * y * f) * y
    rows: list[Row] = []
    for k, (v, probe) in enumerate(zip(drawn.weights, drawn.probes, strict=True)):
        labels = {"trial": trial, "layer": k}
        rows += named_rows(
            {"deep_norm_speed": rho / norms[k] * weight @ f}, EPS, **labels
        )
        along = probe - v * np.sum(v * probe)
        sides = [
            flow.outputs([*drawn.weights[:k], v + s * along, *drawn.weights[k + 1 :]])
            for s in (DIFFERENCE, -DIFFERENCE)
        ]
        slope = (sides[0] - sides[1]) / (2 * DIFFERENCE)
        rows += named_rows({"deep_velocity": rho * weight @ slope}, 1e-8, **labels)
    return rows
