"""Closed forms: blueprint and data to arrays, in NumPy and SciPy alone."""

from theodolite.theory.activations import Activation, activation
from theodolite.theory.critical_counts import MeanCount, mean_critical_points
from theodolite.theory.critical_exponent import (
    critical_exponent,
    exponent_gap_limit,
    exponent_of_ratio,
    exponent_slope,
)
from theodolite.theory.hessian_at_zero import (
    data_matrix,
    hessian_at_zero,
    unit_blocks,
)
from theodolite.theory.interpolation import (
    InterpolatingNetwork,
    interpolating_network,
    residual_unit,
    step_unit,
    weight_norm_bound,
)
from theodolite.theory.linear_network import (
    linear_gradient,
    linear_hessian,
    linear_loss,
)
from theodolite.theory.mixtures import (
    MixtureMoments,
    energy_covariance,
    mixture_moments,
    network_mixture,
)
from theodolite.theory.moments import Moments, moments
from theodolite.theory.ordering import column_major, commutation
from theodolite.theory.quadratic_descent import GradientSpectrum, gradient_spectrum
from theodolite.theory.relu_gradient import relu_gradient
from theodolite.theory.relu_hessian import (
    HessianParts,
    relu_hessian,
    relu_hessian_parts,
)
from theodolite.theory.spectrum_at_zero import (
    Conditioning,
    conditioning_at_zero,
    eigenvalues_at_zero,
    relu_spectrum_near_zero,
)
from theodolite.theory.sphere_paths import SpherePath, sphere_path
from theodolite.theory.toeplitz import ToeplitzSpectrum
from theodolite.theory.unit_points import minimum_distance, separated_labels

__all__ = [
    "Activation",
    "Conditioning",
    "GradientSpectrum",
    "HessianParts",
    "InterpolatingNetwork",
    "MeanCount",
    "MixtureMoments",
    "Moments",
    "SpherePath",
    "ToeplitzSpectrum",
    "activation",
    "column_major",
    "commutation",
    "conditioning_at_zero",
    "critical_exponent",
    "data_matrix",
    "eigenvalues_at_zero",
    "energy_covariance",
    "exponent_gap_limit",
    "exponent_of_ratio",
    "exponent_slope",
    "gradient_spectrum",
    "hessian_at_zero",
    "interpolating_network",
    "linear_gradient",
    "linear_hessian",
    "linear_loss",
    "mean_critical_points",
    "minimum_distance",
    "mixture_moments",
    "moments",
    "network_mixture",
    "relu_gradient",
    "relu_hessian",
    "relu_hessian_parts",
    "relu_spectrum_near_zero",
    "residual_unit",
    "separated_labels",
    "sphere_path",
    "step_unit",
    "unit_blocks",
    "weight_norm_bound",
]
