"""Descent whose convergence is guaranteed, and where it is not."""

import numpy as np

from tests.theory.swept.case import Case
from theodolite import theory


def one_layer(inputs, labels):
    layer = theory.EntryDescent(inputs=inputs, labels=labels)
    return [layer.smoothness, layer.loss(np.eye(4)), layer.gradient(np.eye(4))]


def started(weights):
    layer = theory.EntryDescent(inputs=np.eye(3)[:2], labels=np.eye(2))
    return [layer.integrate(weights, [1.0]), layer.guarantee(weights, 0.1, 10)]


CASES = {
    "EntryDescent": Case(
        one_layer, (), (("inputs", slice(0, 4)), ("labels", slice(0, 4)))
    ),
    "CubeMinimum": Case(started, (("weights", (2, 3)),)),
    "growth_law": Case(
        lambda steps: theory.growth_law(steps, 0.5, 2.0), (), (("steps", 0),)
    ),
    "kernel_floor": Case(
        lambda inputs: theory.kernel_floor(inputs, 1.0), (), (("inputs", slice(0, 3)),)
    ),
}
COUNTS = {
    "StalledNetwork": lambda n: theory.StalledNetwork(layers=n).infimum,
    "descent_gain": lambda n: theory.descent_gain(n, 0.01),
    "flat_cost_exponent": theory.flat_cost_exponent,
    "kernel_exponent": theory.kernel_exponent,
    "longest_path": lambda n: theory.longest_path(n, n),
    "surviving_factor": lambda n: theory.surviving_factor(1.5, 0.5, n),
    "worst_growth": lambda n: theory.worst_growth(n, n, n, n),
}
