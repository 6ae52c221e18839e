"""Bounds and derivatives of chains of layers."""

import numpy as np

from tests.theory.swept.case import Case
from theodolite import theory
from theodolite.core import NONLINEARITIES, BatchNormLayer, normalised_residual

SYSTEM = normalised_residual(inputs=3, widths=(3, 2))


def extents(data):
    result = theory.extent_of(data)
    return [result, theory.system_bounds(SYSTEM, result), result.tightened()]


OWN = [
    {"weight": np.arange(9.0).reshape(3, 3)},
    ({"weight": np.eye(3)}, {}, {"weight": np.eye(3)[:2]}),
]
PAIRS = [*zip(SYSTEM.layers, OWN, strict=True), (BatchNormLayer(features=3), {})]


def sized(n):
    return theory.Extent(samples=n, shape=(3,), frobenius=n, entries=n)


def bounded(n):
    bounds = theory.SystemBounds(
        groups=("0",),
        slopes=np.ones(1),
        curvatures=np.ones((1, 1)),
        layers=(),
        outputs=sized(n),
        reasons=(),
    )
    return [bounds.smoothness(float(n), float(n)), bounds.derivative]


CASES = {
    "centred_norm_derivatives": Case(
        lambda rows: theory.centred_norm_derivatives(rows, 0.5), (("rows", (2, 3)),)
    ),
    "entry_norm_derivatives": Case(
        lambda weights: theory.entry_norm_derivatives(weights, 0.5),
        (("weights", (2, 3)),),
    ),
    "extent_of": Case(extents, (("data", (5, 3)),)),
    "smoothness_bound": Case(
        lambda data: [
            theory.smoothness_bound(SYSTEM, data, cost)
            for cost in theory.CostName.__args__
        ],
        (("data", (4, 3)),),
    ),
    "input_jacobian": Case(
        lambda z: [theory.input_jacobian(one, own, z) for one, own in PAIRS],
        (("z", (4, 3)),),
    ),
    "layer_value": Case(
        lambda z: [theory.layer_value(one, own, z) for one, own in PAIRS],
        (("z", (4, 3)),),
    ),
    "parameter_jacobian": Case(
        lambda z: [theory.parameter_jacobian(one, own, z) for one, own in PAIRS],
        (("z", (4, 3)),),
    ),
    "system_jacobian": Case(
        lambda data: theory.system_jacobian(SYSTEM, OWN, data), (("data", (4, 3)),)
    ),
    "system_regularity": Case(
        lambda data: theory.system_regularity(SYSTEM, OWN, data), (("data", (4, 3)),)
    ),
    "weight_norm_derivatives": Case(
        lambda weights: theory.weight_norm_derivatives(weights, 0.5),
        (("weights", (2, 3)),),
    ),
}
COUNTS = {
    "CostBounds": lambda n: theory.CostBounds(
        gradient=n, curvature=n, polyak=n, floor=n
    ),
    "CostName": lambda n: theory.CostName.__args__,
    "Extent": sized,
    "ParameterBall": lambda n: theory.ParameterBall(radius=n, weight=n, bias=n),
    "SystemBounds": bounded,
    "cost_bounds": lambda n: [
        theory.cost_bounds(cost, sized(n), target_norm=n)
        for cost in theory.CostName.__args__
    ],
    "layer_bounds": lambda n: theory.layer_bounds(
        SYSTEM.layers[0], sized(n), theory.ParameterBall(radius=n)
    ),
    "nonlinearity_bounds": lambda n: [
        theory.nonlinearity_bounds(one, n) for one in NONLINEARITIES
    ],
    "system_bounds": lambda n: theory.system_bounds(SYSTEM, sized(n)),
    "rectified_sharpness": lambda n: theory.rectified_sharpness(n),
    "stability_edge": lambda n: theory.stability_edge(n),
}
