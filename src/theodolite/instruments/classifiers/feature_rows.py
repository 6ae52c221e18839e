"""Features as rows, one a sample, or a sentence that says why they are none."""

from typing import Any

import torch
from torch import Tensor

from theodolite.core import MeasurementError


def rows_of(features: Any, samples: torch.Size) -> Tensor:
    """Return features as rows, one for each label."""
    try:
        found = torch.as_tensor(features).detach()
    except (TypeError, ValueError, RuntimeError):
        found = torch.zeros(0, dtype=torch.complex64)
    if found.is_complex() or not found.is_floating_point():
        raise MeasurementError(
            f"features came as {type(features).__name__} of type {found.dtype}, wanted "
            "are real floats, a row a sample: convert them"
        )
    if found.shape[: len(samples)] != samples and samples[-1:] == (1,):
        samples = samples[:-1]
    if found.shape[: len(samples)] != samples or found.ndim <= len(samples):
        raise MeasurementError(
            f"features have shape {tuple(found.shape)} and labels {tuple(samples)}: "
            "pass a row of features for each label"
        )
    return found.reshape(samples.numel(), found.shape[len(samples) :].numel())


def version_of(tensor: Tensor) -> int:
    """Return a number that writing to a tensor changes."""
    return 0 if tensor.is_inference() else tensor._version


def mean_row(features: Any, width: int) -> Tensor:
    """Return the mean of features of a given width."""
    found = torch.as_tensor(features).detach()
    mean = found.reshape(len(found), -1).double().mean(0) if found.ndim > 1 else found
    if mean.shape != (width,) or not bool(torch.isfinite(mean).all()):
        raise MeasurementError(
            f"other features have shape {tuple(found.shape)}, wanted are finite rows "
            f"of {width}: take them from the same layer"
        )
    return mean


def other_width(came: int, wanted: int) -> MeasurementError:
    """Say that features are of another layer or size."""
    return MeasurementError(
        f"features of width {came} came after those of width {wanted}: use one meter a "
        "layer, and inputs of one size"
    )


def not_finite() -> MeasurementError:
    """Say that features are no numbers."""
    return MeasurementError(
        "the features hold NaN or infinity: check the data, the weights, and the dtype "
        "for overflow"
    )
