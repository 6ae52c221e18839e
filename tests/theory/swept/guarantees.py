"""Descent whose convergence is guaranteed, and where it is not."""

import numpy as np

from tests.theory.swept.case import Case
from theodolite import theory


def one_layer(weights, inputs, labels):
    layer = theory.EntryDescent(inputs=inputs, labels=labels)
    values = [layer.smoothness, layer.loss(np.eye(4)), layer.gradient(np.eye(4))]
    path = layer.integrate(weights, [1.0])
    return [*values, path, layer.guarantee(weights, 0.1, 10)]


CASES = {
    "EntryDescent": Case(
        one_layer,
        (("weights", (4, 4)),),
        (("inputs", slice(0, 4)), ("labels", slice(0, 4))),
    ),
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
    "kernel_exponent": theory.kernel_exponent,
    "longest_path": lambda n: theory.longest_path(n, n),
    "surviving_factor": lambda n: theory.surviving_factor(1.5, 0.5, n),
    "worst_growth": lambda n: theory.worst_growth(n, n, n, n),
}
