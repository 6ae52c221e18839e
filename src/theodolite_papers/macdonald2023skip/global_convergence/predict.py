"""Closed forms of the parts of theorem 5.1 that hold, and their limits."""

from collections.abc import Iterable
from functools import cache
from typing import Literal

import numpy as np

from theodolite import theory
from theodolite.core import Row, Rows, named_rows, normalised_residual

from .config import (
    BRANCH_NORM,
    COSTS,
    FORCE,
    GROWTH_RATES,
    KERNEL_SCALES,
    LINE,
    QUADRATICS,
    SIZES,
    STALLS,
    Config,
    Cost,
    Gate,
    inputs,
    kernel_weights,
    one_layer_start,
)

# The slope of exp(-1/z) bends at most 2.6 times as much as that of the ramp, at
# z = 1/2 - 1/sqrt(12), and bounds are linear in how much it bends.
_BUMP = 2.6


def smoothness(
    config: Config,
    inputs: np.ndarray,
    widths: tuple[int, ...],
    cost: Literal["cross_entropy", "logistic", "square"],
    *,
    gate: str = "tanh",
    target_norm: float = 0.0,
) -> float:
    r"""Return a certified $\beta$ of the loss of a normalised residual network."""
    plan = normalised_residual(
        inputs=inputs.shape[1],
        widths=widths,
        eps=config.epsilon,
        branch_norm=BRANCH_NORM,
        activation="ramp" if gate == "bump" else gate,
    )
    bounds = theory.system_bounds(plan, theory.extent_of(inputs))
    known = theory.cost_bounds(cost, bounds.outputs, target_norm=target_norm)
    beta = bounds.smoothness(known.gradient, known.curvature)
    # The library's square cost has a factor ½, ours has none.
    beta = 2 * beta if cost == "square" else beta
    return _BUMP * beta if gate == "bump" else beta


EPS = 1e-12
FLOW_ERROR = 1e-7
ONE_LAYER_STARTS = (*SIZES, "turned")


def predict(config: Config) -> Rows:
    """Return limits, rates and bounds of every part."""
    rows = [*_arithmetic(config), *_stalls(config)]
    for trial in config.seeds:
        rows += [*_kernels(config, trial), *_one_layer(config, trial)]
    return Rows(rows)


@cache
def layer_of(config: Config, trial: int) -> theory.EntryDescent:
    """Return the theory of one layer on a dataset."""
    x = inputs(config, trial)
    return theory.EntryDescent(inputs=x, labels=np.eye(len(x)), epsilon=config.epsilon)


def stalled(
    config: Config, gate: Gate, cost: Cost, layers: int
) -> theory.StalledNetwork:
    """Return the network of one unit; targets lie midway between stall and reach."""
    plain = theory.StalledNetwork(layers=layers, gate=gate, epsilon=config.epsilon)
    target = (1 + plain.reach) / 2
    return theory.StalledNetwork(
        layers=layers, gate=gate, cost=cost, target=target, epsilon=config.epsilon
    )


@cache
def stalled_rate(config: Config, network: theory.StalledNetwork) -> float:
    """Return the certified step of a network of one unit."""
    beta = smoothness(
        config,
        np.ones((1, 1)),
        (1,) * network.layers,
        network.cost,
        gate=network.gate,
        target_norm=network.target,
    )
    return 1 / beta


def _arithmetic(config: Config) -> list[Row]:
    rows: list[Row] = []
    for case, (spectrum, rate) in enumerate(QUADRATICS):
        regular, beta = 2 * min(spectrum), max(spectrum)
        numbers = {
            "factor": 1 - regular * theory.descent_gain(rate, beta),
            "printed_factor": 1 - regular * rate * (1 - 2 * rate / beta),
        }
        rows += named_rows(numbers, EPS, case=case)
    curvature, rate = LINE
    step = 1 - 2 * curvature * theory.descent_gain(rate, curvature)
    for t in range(6):
        numbers = {"left": step**t, "printed_left": step ** (t + 1)}
        rows += named_rows(numbers, EPS, step=t)
    for rate in GROWTH_RATES:
        marks = np.array(config.stall_marks, dtype=float)
        laws = (
            theory.growth_law(marks, rate, FORCE),
            theory.growth_law(marks, 1.0, FORCE),
        )
        for mark, law, printed in zip(config.stall_marks, *laws, strict=True):
            numbers = {"growth": law, "printed_growth": printed}
            rows += named_rows(numbers, EPS, step=mark, rate=rate)
    exponents = {"square": theory.kernel_exponent(3.0), "printed": 0.75}
    for name, exponent in exponents.items():
        rows += named_rows({"vanishing": exponent}, EPS, of=name)
        for steps in (1000, 1_000_000):
            left = theory.surviving_factor(exponent, 0.5, steps)
            rows += named_rows({"product": left}, 1e-9 * left, of=name, step=steps)
    return rows


def _kernels(config: Config, trial: int) -> Iterable[Row]:
    x = inputs(config, trial)
    for scale in KERNEL_SCALES:
        radius = float(np.abs(kernel_weights(config, trial, scale)[0]).max())
        floor = theory.kernel_floor(x, radius, config.epsilon, [BRANCH_NORM**2])
        yield from named_rows({"kernel_floor": floor}, EPS, trial=trial, scale=scale)
    plan = normalised_residual(
        inputs=config.features,
        widths=(config.samples,) * 2,
        eps=config.epsilon,
        branch_norm=BRANCH_NORM,
    )
    outputs = theory.system_bounds(plan, theory.extent_of(x)).outputs
    floor = theory.cost_bounds("cross_entropy", outputs).floor
    yield from named_rows({"loss_floor": floor}, EPS, trial=trial)


def _one_layer(config: Config, trial: int) -> Iterable[Row]:
    layer = layer_of(config, trial)
    least, rate = layer.infimum(), 1 / layer.smoothness
    of = {"trial": trial}
    yield from named_rows({"infimum": least.value}, least.error, layers=1, **of)
    yield from named_rows({"constant": layer.rate_constant(rate)}, 1e-6, **of)
    for start in ONE_LAYER_STARTS:
        w = one_layer_start(config, trial, start, least.weights)
        for mark in config.marks:
            bound = {"guarantee": layer.guarantee(w, rate, mark)}
            yield from named_rows(bound, EPS, start=start, step=mark, **of)
        if trial - config.seed < config.flows:
            losses = layer.integrate(w, rate * np.array(config.marks))
            for mark, loss in zip(config.marks, losses, strict=True):
                numbers = {"flow_excess": loss - least.value}
                yield from named_rows(numbers, FLOW_ERROR, start=start, step=mark, **of)


def _stalls(config: Config) -> list[Row]:
    rows: list[Row] = []
    for gate, _ in STALLS:
        for cost in COSTS:
            for layers in config.layers:
                of = {"gate": gate, "cost": cost, "layers": layers}
                network = stalled(config, gate, cost, layers)
                numbers = {"stall": network.stall, "infimum": network.infimum}
                rows += named_rows(numbers, EPS, **of)
    return rows
