"""Closed forms: blueprint and data to arrays, in NumPy and SciPy alone."""

from theodolite.theory.activations import Activation, activation
from theodolite.theory.hessian_at_zero import (
    data_matrix,
    hessian_at_zero,
    unit_blocks,
)
from theodolite.theory.linear_network import (
    linear_gradient,
    linear_hessian,
    linear_loss,
)
from theodolite.theory.moments import Moments, equivalent_samples, moments
from theodolite.theory.ordering import column_major, commutation
from theodolite.theory.spectrum_at_zero import (
    Conditioning,
    conditioning_at_zero,
    eigenvalues_at_zero,
    parameter_count,
    relu_spectrum_near_zero,
)
from theodolite.theory.toeplitz import ToeplitzSpectrum

__all__ = [
    "Activation",
    "Conditioning",
    "Moments",
    "ToeplitzSpectrum",
    "activation",
    "column_major",
    "commutation",
    "conditioning_at_zero",
    "data_matrix",
    "eigenvalues_at_zero",
    "equivalent_samples",
    "hessian_at_zero",
    "linear_gradient",
    "linear_hessian",
    "linear_loss",
    "moments",
    "parameter_count",
    "relu_spectrum_near_zero",
    "unit_blocks",
]
