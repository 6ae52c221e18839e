"""Closed forms: blueprint and data to arrays, in NumPy and SciPy alone."""

from theodolite.theory.activations import Activation, activation
from theodolite.theory.cost_bounds import CostBounds, CostName, cost_bounds
from theodolite.theory.critical_counts import MeanCount, mean_critical_points
from theodolite.theory.critical_exponent import (
    critical_exponent,
    exponent_gap_limit,
    exponent_of_ratio,
    exponent_slope,
)
from theodolite.theory.entry_descent import CubeMinimum, EntryDescent
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
from theodolite.theory.layer_bounds import Extent, LayerBounds, extent_of
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
from theodolite.theory.nonlinearities import (
    NonlinearityBounds,
    nonlinearity_bounds,
    nonlinearity_derivatives,
)
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
from theodolite.theory.parameterisations import (
    NORMALISED_CURVATURE,
    ParameterBall,
    ParameterisationBounds,
    centred_norm_derivatives,
    entry_norm_derivatives,
    parameterisation_bounds,
    weight_norm_derivatives,
)
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
from theodolite.theory.shifted_singular import (
    shifted_singular_density,
    shifted_singular_edges,
    shifted_singular_shares,
)
from theodolite.theory.smoothness import smoothness_bound
from theodolite.theory.spectrum_at_zero import (
    Conditioning,
    conditioning_at_zero,
    eigenvalues_at_zero,
    relu_spectrum_near_zero,
)
from theodolite.theory.sphere_paths import SpherePath, sphere_path
from theodolite.theory.stable_rates import rectified_sharpness, stability_edge
from theodolite.theory.stalled_network import StalledNetwork
from theodolite.theory.system_bounds import SystemBounds, layer_bounds, system_bounds
from theodolite.theory.system_jacobians import (
    input_jacobian,
    layer_value,
    parameter_jacobian,
    system_jacobian,
)
from theodolite.theory.system_regularity import Regularity, system_regularity
from theodolite.theory.toeplitz import ToeplitzSpectrum
from theodolite.theory.two_degree_loss import (
    Parts,
    TwoDegreeLoss,
    least_norm_force,
)
from theodolite.theory.unit_points import minimum_distance, separated_labels
from theodolite.theory.vanishing_regularity import (
    descent_gain,
    flat_cost_exponent,
    growth_law,
    kernel_exponent,
    kernel_floor,
    longest_path,
    surviving_factor,
    worst_growth,
)

__all__ = [
    "NORMALISED_CURVATURE",
    "TWO_CLASS_GAP",
    "Activation",
    "Assumption",
    "Conditioning",
    "CostBounds",
    "CostName",
    "CubeMinimum",
    "EntryDescent",
    "Extent",
    "FlowPath",
    "GradientSpectrum",
    "HessianParts",
    "InterpolatingNetwork",
    "Kink",
    "LayerBounds",
    "LayerFactors",
    "LayerSizes",
    "LengthMoments",
    "LinearFlow",
    "MeanCount",
    "MixtureMoments",
    "Moments",
    "NonlinearityBounds",
    "NormalisedFlow",
    "ParameterBall",
    "ParameterisationBounds",
    "Parts",
    "PathModel",
    "Regularity",
    "ScaleRange",
    "SpherePath",
    "StalledNetwork",
    "SystemBounds",
    "ToeplitzSpectrum",
    "TwoDegreeLoss",
    "activation",
    "aligned_norm",
    "batch_norm_jacobian",
    "centred_norm_derivatives",
    "column_major",
    "commutation",
    "conditioning_at_zero",
    "configuration_repeats",
    "cost_bounds",
    "critical_exponent",
    "data_matrix",
    "descent_gain",
    "diagonal_solution",
    "eigenvalues_at_zero",
    "energy_covariance",
    "entry_norm_derivatives",
    "exponent_gap_limit",
    "exponent_of_ratio",
    "exponent_slope",
    "extent_of",
    "flat_cost_exponent",
    "frobenius_complexity",
    "frozen_norm",
    "gradient_spectrum",
    "growth_law",
    "hessian_at_zero",
    "input_jacobian",
    "interpolating_network",
    "kernel_exponent",
    "kernel_floor",
    "layer_bounds",
    "layer_factors",
    "layer_value",
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
    "longest_path",
    "margin_bound",
    "mean_critical_points",
    "minimum_distance",
    "missing_mass",
    "mixture_moments",
    "moments",
    "network_mixture",
    "nonlinearity_bounds",
    "nonlinearity_derivatives",
    "norm_equilibrium",
    "norm_multiplier",
    "parameter_jacobian",
    "parameterisation_bounds",
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
    "shifted_singular_density",
    "shifted_singular_edges",
    "shifted_singular_shares",
    "smoothness_bound",
    "sphere_path",
    "stability_edge",
    "step_unit",
    "surviving_factor",
    "system_bounds",
    "system_jacobian",
    "system_regularity",
    "transient_time",
    "two_layer_complexity",
    "unit_blocks",
    "weight_norm_bound",
    "weight_norm_derivatives",
    "weight_norm_speeds",
    "worst_growth",
]
