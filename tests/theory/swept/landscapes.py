"""Hessians, path counts, spin glasses and interpolating networks."""

import numpy as np

from tests.theory.swept.case import Case
from theodolite import theory
from theodolite.core import PathBlueprint, ShortcutBlueprint, SpinGlassBlueprint

ONE = ShortcutBlueprint(width=3, depth=2, shortcut=1)
TWO = ShortcutBlueprint(width=3, depth=4, bias=True)
LINEAR = ShortcutBlueprint(width=3, depth=4)
RELU = ShortcutBlueprint(width=3, depth=2, mid="relu")
SHARED = PathBlueprint(inputs=3, width=4, depth=3, unique=2)
GLASS = SpinGlassBlueprint(width=5, mixture={2: 0.5, 3: 0.5})


X, Y = ("x", (5, 3)), ("y", (5, 3))
WEIGHTS = ("weights", (4, 3, 3))
WORDS = ("identity", "relu", "tanh", "symmetric_sigmoid", "silu", "polynomial:1,2")


def both_ways(plan):
    def call(x, y):
        return [
            theory.hessian_at_zero(plan, x, y),
            theory.eigenvalues_at_zero(plan, x, y),
            theory.conditioning_at_zero(plan, x, y),
        ]

    return call


def curves(z):
    result = [theory.activation(word) for word in WORDS]
    return [curve(z) for one in result for curve in (one.value, one.slope)]


def toeplitz(a, b):
    spectrum = theory.ToeplitzSpectrum(a, b, units=3)
    return [spectrum.bound, spectrum.largest(), spectrum.index()]


def walked(x, y):
    net = theory.interpolating_network(x, y, 12)
    return [net.first, net.second, net.bias, net.apply(x), net.trajectory(y)]


def linear(function):
    def call(weights, x, y):
        return function(LINEAR, weights, theory.moments(x, y))

    return call


def with_moments(xx, yx, yy):
    data = theory.Moments(xx, yx, yy)
    return [data.gap, data.optimal_loss()]


def path_model(weights, x):
    model = theory.PathModel(blueprint=SHARED, weights=weights)
    lines = [model.beta, model.epsilons, model.first_line, model.second_line]
    return [*lines, model.terms(x), model.mean_terms(x), model.approximate_terms(x)]


def two_degrees(shallow, deep, weights):
    scales = np.array([2.0, 3.0])
    loss = theory.TwoDegreeLoss(shallow=shallow, deep=deep, scales=scales)
    return loss.parts(weights)


CASES = {
    "Moments": Case(with_moments, (("xx", (3, 3)), ("yx", (3, 3)), ("yy", (3, 3)))),
    "PathModel": Case(path_model, (("weights", (2,)), ("x", (5, 3)))),
    "ToeplitzSpectrum": Case(toeplitz, (("a", (3, 3)), ("b", (3, 3)))),
    "TwoDegreeLoss": Case(
        two_degrees, (("shallow", (3,)), ("deep", (3, 3)), ("weights", (3,)))
    ),
    "activation": Case(curves, (("z", (6, 2)),)),
    "conditioning_at_zero": Case(both_ways(TWO), (X, Y)),
    "data_matrix": Case(lambda x, y: theory.data_matrix(TWO, x, y), (X, Y)),
    "eigenvalues_at_zero": Case(both_ways(ONE), (X, Y)),
    "energy_covariance": Case(
        lambda overlap: theory.energy_covariance(GLASS, overlap), (("overlap", (4,)),)
    ),
    "gradient_spectrum": Case(
        lambda hessian, gradient: theory.gradient_spectrum(hessian, gradient),
        (("hessian", (4, 4)), ("gradient", (4,))),
    ),
    "hessian_at_zero": Case(both_ways(LINEAR), (X, Y)),
    "interpolating_network": Case(walked, units=(("x", [0, 1]), ("y", [2, 3]))),
    "linear_gradient": Case(linear(theory.linear_gradient), (WEIGHTS, X, Y)),
    "linear_hessian": Case(linear(theory.linear_hessian), (WEIGHTS, X, Y)),
    "linear_loss": Case(linear(theory.linear_loss), (WEIGHTS, X, Y)),
    "minimum_distance": Case(theory.minimum_distance, (("points", (6, 3)),)),
    "moments": Case(theory.moments, (X, Y)),
    "network_mixture": Case(theory.network_mixture, (("weights", (6,)),)),
    "relu_gradient": Case(
        lambda weights, x, y: theory.relu_gradient(RELU, weights, x, y),
        (("weights", (2, 3, 3)), X, Y),
    ),
    "relu_hessian": Case(
        lambda weights, x, y: theory.relu_hessian(RELU, weights, x, y),
        (("weights", (2, 3, 3)), X, Y),
    ),
    "relu_hessian_parts": Case(
        lambda weights, x, y: theory.relu_hessian_parts(RELU, weights, x, y),
        (("weights", (2, 3, 3)), X, Y),
    ),
    "relu_spectrum_near_zero": Case(
        theory.relu_spectrum_near_zero, (("first_weights", (2, 3, 3)), X, Y)
    ),
    "shifted_singular_density": Case(
        lambda points: theory.shifted_singular_density(points, deviation=0.5),
        (("points", (5,)),),
    ),
    "sphere_path": Case(
        lambda start, end, others: theory.sphere_path(start, end, others, 0.1).steps(4),
        units=(("start", 0), ("end", 1), ("others", [2, 3])),
    ),
    "step_unit": Case(
        lambda here, there: theory.step_unit(here, there, 0.5),
        units=(("here", 0), ("there", 1)),
    ),
    "unit_blocks": Case(lambda x, y: theory.unit_blocks(ONE, x, y), (X, Y)),
}
# What takes no arrays takes numbers: of any width, none of which may wrap around.
COUNTS = {
    "MeanCount": lambda n: theory.MeanCount(log=n, error=n, method="sampling"),
    "configuration_repeats": lambda n: theory.configuration_repeats(n, n, n, n),
    "critical_exponent": lambda n: theory.critical_exponent({n: 1.0}),
    "exponent_gap_limit": lambda n: theory.exponent_gap_limit(n),
    "exponent_of_ratio": lambda n: theory.exponent_of_ratio(n),
    "exponent_slope": lambda n: theory.exponent_slope(n),
    "least_norm_force": lambda n: theory.least_norm_force(n, n - n, shallow=n, deep=n),
    "log_legendre_normaliser": lambda n: theory.log_legendre_normaliser(n, n),
    "log_legendre_sum": lambda n: theory.log_legendre_sum(n, n),
    "log_missing_mass_bound": lambda n: theory.log_missing_mass_bound(n, n, 0.5, 1),
    "log_path_normaliser": lambda n: theory.log_path_normaliser(n, n),
    "log_path_weights": lambda n: theory.log_path_weights(n, n),
    "mean_critical_points": lambda n: (
        theory.mean_critical_points(GLASS, index=n - n, sampling=True, samples=n).log
    ),
    "missing_mass": lambda n: theory.missing_mass(n, n, 0.5, 0.9),
    "mixture_moments": lambda n: theory.mixture_moments({n: 1.0}),
    "path_counts": lambda n: theory.path_counts(n, n),
    "path_length_moments": lambda n: theory.path_length_moments(n, n),
    "path_masses": lambda n: theory.path_masses(n, n, n),
    "path_peak": lambda n: theory.path_peak(n, n),
    "path_weight_slopes": lambda n: theory.path_weight_slopes(n, n),
    "path_weights": lambda n: theory.path_weights(n, n),
    "plain_path_count": lambda n: theory.plain_path_count(n, n),
    "scalar_norm_sizes": lambda n: theory.scalar_norm_sizes(n),
    "scale_for_path_length": lambda n: theory.scale_for_path_length(n, n - 1),
    "commutation": lambda n: theory.commutation(n),
    "weight_norm_bound": lambda n: theory.weight_norm_bound(
        rho=0.5, samples=n, units=n
    ),
}
