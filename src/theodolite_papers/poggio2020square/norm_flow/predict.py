"""Flows of norms and normalised layers, integrated or in closed form."""

import numpy as np

from theodolite import theory
from theodolite.core import Row, Rows, named_rows

from ..shared.drawn_networks import Drawn, draw
from .config import (
    ANGLE,
    DECAY,
    EQUILIBRIA,
    LABELS,
    LAYERED,
    OUTPUTS,
    SCALES,
    SIDES,
    START,
    TIMES,
    TORCH_DECAY,
    UNITS,
    Config,
    shares,
    unit_data,
    unit_weights,
)

EPS = 1e-13
FLOW = 1e-8  # of flows at a tolerance of 1e-11 a step, seen at 1e-9 as well


def predict(config: Config) -> Rows:
    """Return the predictions for each group of numbers."""
    rows = [*_held(), *_layered(config), *_units(config)]
    for trial in config.seeds:
        rows += _identities(config, trial)
        for spread, f in shares(config, trial).items():
            value = 1 + float(f @ (1 - f) / (f @ f))
            rows += named_rows({"shares_norm": value}, EPS, trial=trial, spread=spread)
        rows += _network(config, trial)
    return Rows(rows)


def _identities(config: Config, trial: int) -> list[Row]:
    drawn = draw(config.seed, trial, config.deep_widths, config.samples)
    scale = 1.5 + trial % 3
    flow = _flow(drawn, config.decay)
    f, y = flow.outputs(drawn.weights), drawn.labels
    rho, moved = flow.speed(scale, drawn.weights)
    loss, layers, n = scale * f - y, len(drawn.weights), len(y)
    pull = float(loss @ f)
    numbers = {
        "norm_speed": rho,
        "multiplier": theory.norm_multiplier(scale, f, y),
        # Of unnormalised layers of equal norm, on the mean and on the sum of squares.
        "square_rate": -4 / n * scale * pull,
        "printed_square_rate": 4 / n * float(scale**2 * f @ f + scale * f.sum()),
        "layer_norm_speed": -2 * scale ** (1 - 1 / layers) * pull,
        "mean_layer_norm_speed": -2 / n * scale ** (1 - 1 / layers) * pull,
        "printed_layer_norm_speed": -2 * layers * scale ** (1 - 1 / layers) * pull,
    }
    rows = named_rows(numbers, EPS, trial=trial)
    each = scale ** (1 - 1 / layers)  # of one layer less than the product
    for k, (v, probe) in enumerate(zip(moved, drawn.probes, strict=True)):
        # The sum of losses times gradients of f, of which v has the part along it.
        pulled = drawn.weights[k] * pull - v / (2 * scale)
        numbers = {
            "velocity": np.sum(v * probe),
            "plain_velocity": -2 / n * each * np.sum(pulled * probe),
        }
        rows += named_rows(numbers, EPS, trial=trial, layer=k)
    for rho in SCALES:
        for side in SIDES:
            value = -4 * theory.norm_multiplier(rho, np.sqrt(side) * f, y)
            # A difference of 0.1 in the square multiplies what rounding leaves.
            error = EPS * (1 + rho**2)
            rows += named_rows(
                {"sphere_rate": value}, error, trial=trial, rho=rho, side=side
            )
    return rows


def _held() -> list[Row]:
    rows: list[Row] = []
    for time, value in zip(
        TIMES, theory.frozen_norm(START, OUTPUTS, LABELS, TIMES, DECAY), strict=True
    ):
        rows += named_rows({"held_norm": value}, EPS, time=time)
    for case, (products, decay) in EQUILIBRIA.items():
        value = theory.norm_equilibrium(products, np.ones(len(products)), decay)
        rows += named_rows({"equilibrium": value}, EPS, case=case)
    torch = theory.norm_equilibrium(OUTPUTS, LABELS, len(OUTPUTS) * TORCH_DECAY / 2)
    rows += named_rows({"equilibrium": torch}, EPS, case="torch")
    at_rest = theory.norm_equilibrium(OUTPUTS, LABELS, DECAY)
    return rows + named_rows({"equilibrium": at_rest}, EPS, case="held")


def _layered(config: Config) -> list[Row]:
    rows: list[Row] = []
    for layers, time in LAYERED:
        value = theory.layered_norm(START, layers, OUTPUTS, LABELS, [time])[0]
        rows += named_rows({"layered_norm": value}, 1e-9, layers=layers, time=time)
    limit = theory.norm_equilibrium(OUTPUTS, LABELS)
    pull = float(np.dot(OUTPUTS, LABELS))
    for layers in config.layers:
        times = np.linspace(0.02, 4.0, 100)
        for t, rho in zip(
            times,
            theory.layered_norm(START, layers, OUTPUTS, LABELS, times),
            strict=True,
        ):
            rows += named_rows({"growth": rho}, 1e-9, layers=layers, time=float(t))
        # A logistic curve through the same start and end at the same first speed.
        rate = 2 * layers * START ** (1 - 2 / layers) * pull
        grown = limit / (1 + (limit / START - 1) * np.exp(-rate * times))
        true = theory.layered_norm(START, layers, OUTPUTS, LABELS, times)
        gap = float(np.max(np.abs(grown - true))) / limit
        rows += named_rows({"logistic_gap": gap}, 1e-8, layers=layers)
        for start in config.starts:
            value = theory.transient_time(start, layers, OUTPUTS, LABELS)
            rows += named_rows({"transient": value}, 1e-9, layers=layers, start=start)
    return rows


def _units(config: Config) -> list[Row]:
    rows: list[Row] = []
    times = np.arange(1, round(config.horizon / 0.01) + 1) * 0.01
    for case in UNITS:
        inputs, labels, decay = unit_data(case)
        flow = theory.NormalisedFlow(inputs=inputs, labels=labels, decay=decay)
        path = flow.integrate(START, unit_weights(), times, tolerance=1e-11)
        numbers = {"peak": path.scales.max(), "end": path.scales[-1]}
        # The peak is read on a grid, on which it is flat to second order.
        rows += named_rows(numbers, 1e-5, case=case)
        for k in range(0, min(len(times), 1200), 10):
            rest = theory.norm_equilibrium(path.outputs[k], labels, decay)
            at = {"unit_norm": path.scales[k], "unit_rest": rest}
            rows += named_rows(at, FLOW, case=case, time=float(times[k]))
    rows += named_rows({"aligned": theory.aligned_norm(START, ANGLE)}, EPS)
    return rows + named_rows({"invariant": START**2 + 2 * np.log(np.sin(ANGLE))}, EPS)


def _network(config: Config, trial: int) -> list[Row]:
    drawn = draw(config.seed, trial, config.widths, config.samples)
    flow = _flow(drawn, config.decay)
    path = flow.integrate(
        START, drawn.weights, [config.network_horizon], tolerance=1e-11, until_kink=True
    )
    rows: list[Row] = []
    if path.kink is None:
        number = {"flow_norm": path.scales[-1]}
        rows += named_rows(number, FLOW, trial=trial)
        for k, (w, probe) in enumerate(zip(path.weights, drawn.probes, strict=True)):
            value = np.sum(w * probe)
            rows += named_rows({"flow_weights": value}, FLOW, trial=trial, layer=k)
    long = flow.integrate(
        START, drawn.weights, [config.end], tolerance=1e-9, until_kink=True
    )
    kink = {
        "slides": float(long.kink is not None),
        "slides_from": long.end[0],
        "switches": float(long.switches),
    }
    return rows + named_rows(kink, FLOW, trial=trial)


def _flow(drawn: Drawn, decay: float) -> theory.NormalisedFlow:
    return theory.NormalisedFlow(inputs=drawn.inputs, labels=drawn.labels, decay=decay)
