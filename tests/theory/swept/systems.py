"""Bounds and derivatives of chains of layers."""

import numpy as np

from tests.theory.swept.case import Case
from theodolite import theory
from theodolite.core import NONLINEARITIES, BatchNormLayer, normalised_residual

SYSTEM = normalised_residual(inputs=3, widths=(3, 2))


def extents(data):
    found = theory.extent_of(data)
    return [found, theory.system_bounds(SYSTEM, found), found.tightened()]


OWN = [
    {"weight": np.arange(9.0).reshape(3, 3)},
    ({"weight": np.eye(3)}, {}, {"weight": np.eye(3)[:2]}),
]
PAIRS = [
    *zip(SYSTEM.layers, OWN, strict=True),
    (BatchNormLayer(features=3), {}),
]


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
    "nonlinearity_derivatives": Case(
        lambda z: [theory.nonlinearity_derivatives(one, z) for one in NONLINEARITIES],
        (("z", (2, 3)),),
    ),
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
    "LayerBounds": lambda n: theory.LayerBounds(outputs=sized(n), input_slope=n),
    "NORMALISED_CURVATURE": lambda n: theory.NORMALISED_CURVATURE,
    "NonlinearityBounds": lambda n: theory.NonlinearityBounds(n, n, n, n),
    "ParameterBall": lambda n: theory.ParameterBall(radius=n, weight=n, bias=n),
    "ParameterisationBounds": lambda n: theory.ParameterisationBounds(n, n, n, n),
    "Regularity": lambda n: theory.Regularity(own=n, onward=n, terms=n, notes=()),
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
    "parameterisation_bounds": lambda n: theory.parameterisation_bounds(
        SYSTEM.layers[0], theory.ParameterBall(radius=n)
    ),
    "system_bounds": lambda n: theory.system_bounds(SYSTEM, sized(n)),
    "rectified_sharpness": lambda n: theory.rectified_sharpness(n),
    "stability_edge": lambda n: theory.stability_edge(n),
}
