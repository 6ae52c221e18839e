"""Flows of normalised networks, margins and their bounds."""

import numpy as np

from tests.theory.swept.case import Case
from theodolite import theory

SIGNS = np.array([1.0, -1.0, 1.0, 1.0])


def flow_of_a_network(inputs):
    flow = theory.NormalisedFlow(inputs=inputs, labels=SIGNS)
    layers = [np.eye(4)[:2], np.ones((1, 2))]
    return [flow.outputs(layers), *flow.speed(0.5, layers), *flow.residuals(1, layers)]


def flow_of_a_line(inputs, direction):
    flow = theory.LinearFlow(inputs=inputs, labels=SIGNS, decay=0.5)
    return [*flow.speed(0.5, direction), flow.rest()]


def shared_output(x):
    return theory.layer_factors([np.eye(3)[:1], np.eye(1)], x)


OUTPUTS = (("outputs", (4,)),)
CASES = {
    "LinearFlow": Case(flow_of_a_line, (), (("inputs", slice(0, 4)), ("direction", 0))),
    "NormalisedFlow": Case(flow_of_a_network, (("inputs", (4, 4)),)),
    "batch_norm_jacobian": Case(
        lambda batch: theory.batch_norm_jacobian(batch, 0.1), (("batch", (6,)),)
    ),
    "diagonal_solution": Case(
        lambda x: theory.diagonal_solution(x, 4), (), (("x", ([0], [0])),)
    ),
    "frobenius_complexity": Case(
        lambda inputs: theory.frobenius_complexity(inputs, 3), (("inputs", (5, 3)),)
    ),
    "frozen_norm": Case(
        lambda outputs: theory.frozen_norm(0.1, outputs, SIGNS, [0.5, 1.0]), OUTPUTS
    ),
    "layer_factors": Case(shared_output, (("x", (3,)),)),
    "layered_norm": Case(
        lambda outputs: theory.layered_norm(0.1, 2, outputs, SIGNS, [0.5]), OUTPUTS
    ),
    "least_first_layer_gap": Case(
        theory.least_first_layer_gap, (), (("inputs", slice(0, 3)),)
    ),
    "least_norm_classifier": Case(
        lambda inputs: theory.least_norm_classifier(inputs, [1.0, 1.0, 1.0]),
        (),
        (("inputs", slice(0, 3)),),
    ),
    "norm_equilibrium": Case(
        lambda outputs: theory.norm_equilibrium(outputs, SIGNS, 0.5), OUTPUTS
    ),
    "norm_multiplier": Case(
        lambda outputs: theory.norm_multiplier(0.5, outputs, SIGNS), OUTPUTS
    ),
    "transient_time": Case(
        lambda outputs: theory.transient_time(0.01, 2, outputs, np.ones(4)),
        (),
        (("outputs", 0),),
    ),
    "two_layer_complexity": Case(theory.two_layer_complexity, (("inputs", (3, 2)),)),
    "weight_norm_speeds": Case(
        lambda vector, speed: theory.weight_norm_speeds(2.0, vector, speed),
        (("vector", (3,)), ("speed", (3,))),
    ),
}
COUNTS = {
    "TWO_CLASS_GAP": lambda n: theory.TWO_CLASS_GAP,
    "aligned_norm": lambda n: theory.aligned_norm(float(n) / 2000, 1.4),
    "margin_bound": lambda n: theory.margin_bound(
        0.1, 0.1, gamma=0.5, samples=n, delta=0.1
    ),
    "projection_gap": lambda n: theory.projection_gap(n),
    "shifted_singular_edges": lambda n: theory.shifted_singular_edges(
        deviation=n, shift=n
    ),
    "shifted_singular_shares": lambda n: theory.shifted_singular_shares(
        3, deviation=n, shift=n
    ),
}
