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
from theodolite.theory.layer_constraint import (
    TWO_CLASS_GAP,
    LayerFactors,
    diagonal_solution,
    layer_factors,
    least_first_layer_gap,
    projection_gap,
)
from theodolite.theory.linear_flow import LinearFlow
from theodolite.theory.linear_network import (
    linear_gradient,
    linear_hessian,
    linear_loss,
)
from theodolite.theory.margin_bounds import (
    frobenius_complexity,
    least_norm_classifier,
    margin_bound,
    ramp_loss,
    two_layer_complexity,
)
from theodolite.theory.mixtures import (
    MixtureMoments,
    energy_covariance,
    mixture_moments,
    network_mixture,
)
from theodolite.theory.moments import Moments, moments
from theodolite.theory.norm_dynamics import (
    aligned_norm,
    frozen_norm,
    layered_norm,
    norm_equilibrium,
    norm_multiplier,
    transient_time,
)
from theodolite.theory.normalised_flow import FlowPath, Kink, NormalisedFlow
from theodolite.theory.normalised_weights import (
    batch_norm_jacobian,
    weight_norm_speeds,
)
from theodolite.theory.ordering import column_major, commutation
from theodolite.theory.path_band import log_missing_mass_bound, missing_mass
from theodolite.theory.path_counts import (
    configuration_repeats,
    path_counts,
    path_masses,
    plain_path_count,
)
from theodolite.theory.path_model import Assumption, PathModel
from theodolite.theory.path_peak import ScaleRange, path_peak, scale_for_path_length
from theodolite.theory.path_weights import (
    LengthMoments,
    log_legendre_normaliser,
    log_legendre_sum,
    log_path_normaliser,
    log_path_weights,
    path_length_moments,
    path_weight_slopes,
    path_weights,
)
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
from theodolite.theory.stable_rates import rectified_sharpness
from theodolite.theory.toeplitz import ToeplitzSpectrum
from theodolite.theory.two_degree_loss import (
    Parts,
    TwoDegreeLoss,
    least_norm_force,
)
from theodolite.theory.unit_points import minimum_distance, separated_labels

__all__ = [
    "TWO_CLASS_GAP",
    "Activation",
    "Assumption",
    "Conditioning",
    "FlowPath",
    "GradientSpectrum",
    "HessianParts",
    "InterpolatingNetwork",
    "Kink",
    "LayerFactors",
    "LayerSizes",
    "LengthMoments",
    "LinearFlow",
    "MeanCount",
    "MixtureMoments",
    "Moments",
    "NormalisedFlow",
    "Parts",
    "PathModel",
    "ScaleRange",
    "SpherePath",
    "ToeplitzSpectrum",
    "TwoDegreeLoss",
    "activation",
    "aligned_norm",
    "batch_norm_jacobian",
    "column_major",
    "commutation",
    "conditioning_at_zero",
    "configuration_repeats",
    "critical_exponent",
    "data_matrix",
    "diagonal_solution",
    "eigenvalues_at_zero",
    "energy_covariance",
    "exponent_gap_limit",
    "exponent_of_ratio",
    "exponent_slope",
    "frobenius_complexity",
    "frozen_norm",
    "gradient_spectrum",
    "hessian_at_zero",
    "interpolating_network",
    "layer_factors",
    "layered_norm",
    "least_first_layer_gap",
    "least_norm_classifier",
    "least_norm_force",
    "linear_gradient",
    "linear_hessian",
    "linear_loss",
    "log_legendre_normaliser",
    "log_legendre_sum",
    "log_missing_mass_bound",
    "log_path_normaliser",
    "log_path_weights",
    "margin_bound",
    "mean_critical_points",
    "minimum_distance",
    "missing_mass",
    "mixture_moments",
    "moments",
    "network_mixture",
    "norm_equilibrium",
    "norm_multiplier",
    "path_counts",
    "path_length_moments",
    "path_masses",
    "path_peak",
    "path_weight_slopes",
    "path_weights",
    "plain_path_count",
    "projection_gap",
    "ramp_loss",
    "rectified_sharpness",
    "relu_gradient",
    "relu_hessian",
    "relu_hessian_parts",
    "relu_spectrum_near_zero",
    "residual_unit",
    "scalar_norm_sizes",
    "scale_for_path_length",
    "separated_labels",
    "sphere_path",
    "step_unit",
    "transient_time",
    "two_layer_complexity",
    "unit_blocks",
    "weight_norm_bound",
    "weight_norm_speeds",
]
