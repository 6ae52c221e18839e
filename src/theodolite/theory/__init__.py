"""Closed forms: blueprint and data to arrays, in NumPy and SciPy alone."""

from theodolite.theory.activations import Activation, activation
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
from theodolite.theory.moments import Moments, moments
from theodolite.theory.ordering import column_major, commutation
from theodolite.theory.quadratic_descent import GradientSpectrum, gradient_spectrum
from theodolite.theory.relu_gradient import relu_gradient
from theodolite.theory.relu_hessian import (
    HessianParts,
    relu_hessian,
    relu_hessian_parts,
)
from theodolite.theory.scale_recursion import LayerSizes, scalar_norm_sizes
from theodolite.theory.spectrum_at_zero import (
    Conditioning,
    conditioning_at_zero,
    eigenvalues_at_zero,
    relu_spectrum_near_zero,
)
from theodolite.theory.sphere_paths import SpherePath, sphere_path
from theodolite.theory.toeplitz import ToeplitzSpectrum
from theodolite.theory.two_degree_loss import (
    Parts,
    TwoDegreeLoss,
    least_norm_force,
)
from theodolite.theory.unit_points import minimum_distance, separated_labels

__all__ = [
    "Activation",
    "Conditioning",
    "GradientSpectrum",
    "HessianParts",
    "InterpolatingNetwork",
    "LayerSizes",
    "Moments",
    "Parts",
    "SpherePath",
    "ToeplitzSpectrum",
    "TwoDegreeLoss",
    "activation",
    "column_major",
    "commutation",
    "conditioning_at_zero",
    "data_matrix",
    "eigenvalues_at_zero",
    "gradient_spectrum",
    "hessian_at_zero",
    "interpolating_network",
    "least_norm_force",
    "linear_gradient",
    "linear_hessian",
    "linear_loss",
    "minimum_distance",
    "moments",
    "relu_gradient",
    "relu_hessian",
    "relu_hessian_parts",
    "relu_spectrum_near_zero",
    "residual_unit",
    "scalar_norm_sizes",
    "separated_labels",
    "sphere_path",
    "step_unit",
    "unit_blocks",
    "weight_norm_bound",
]
