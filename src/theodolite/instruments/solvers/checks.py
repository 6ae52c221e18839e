"""Checks of operators and settings that all solvers share."""

from typing import Any

import torch

from theodolite.core import ConfigError, MeasurementError, NormMode

from ..operators.operator import Operator
from ..operators.rounding_noise import noise_norm

# An error E makes products of a symmetric operator disagree by 2|E| at most.
_EXPLAINED = 2.0


def norms_of(operator: Operator) -> dict[str, Any]:
    """Return the norm mode for readings; a plain matrix counts as ``eval``."""
    return {
        "norm_mode": NormMode(getattr(operator, "norm_mode", NormMode.EVAL)),
        "norm_layers": getattr(operator, "norm_layers", {}),
    }


def symmetric(operator: Any) -> Operator:
    """Return an operator with a real spectrum, or refuse it."""
    if not operator.symmetric:
        raise MeasurementError(
            f"{operator.written()} of shape {operator.shape} is not symmetric: "
            "pass a Hessian, or say symmetric=True if it is"
        )
    if operator.inexact:
        raise MeasurementError(
            "products with an inverse are solutions up to a residual, which errors of "
            "readings leave out: measure the operator itself, whose eigenvalues are "
            "the reciprocals, or use dense()"
        )
    if not operator.shape[1]:
        raise MeasurementError(
            f"{type(operator).__name__} of shape {operator.shape} has no eigenvalues: "
            "choose parameters that hold numbers"
        )
    return operator


def check_count(name: str, value: int, least: int = 1) -> None:
    """Refuse a count that is not a whole number from ``least`` up."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} is {value!r}: pass a whole number from {least} up")


def check_precision(tol: float | None) -> None:
    """Refuse a value that is not a precision for a sampling estimate."""
    if tol is not None and not tol > 0:
        raise ConfigError(f"tol is {tol!r}: pass a number above 0, as 0.1, or None")


def relative_error(error: float, value: float) -> float:
    """Return an error divided by the size of its value; infinite if that is 0."""
    if value:
        return error / abs(value)
    return float("inf") if error else 0.0


def check_level(level: float) -> None:
    """Refuse what is not a level of confidence."""
    if not 0 < level < 1:
        raise ConfigError(f"level is {level!r}: pass a number between 0 and 1, as 0.95")


def refuse_asymmetry(
    operator: Operator, gap: float, scale: float, explained: float = 0.0
) -> float:
    """Refuse products that disagree with symmetry by more than rounding explains.

    Half the digits are granted to rounding, and all of them where there is nothing
    else; beyond that the graph is looked into.

    Args:
        operator: What made the products.
        gap: Their disagreement.
        scale: Their size.
        explained: Disagreement that is known to be rounding.

    Returns:
        The disagreement that is now known to be rounding.
    """
    eps = torch.finfo(operator.torch_dtype).eps
    if gap <= max(eps**0.5 * scale, explained) or scale <= eps:
        return explained
    explained = _EXPLAINED * noise_norm(operator)
    if gap > explained:
        raise MeasurementError(
            f"the products disagree with symmetry by {gap / scale:.1e} of their size, "
            f"and the rounding of the graph explains {explained / scale:.1e}: pass a "
            "symmetric operator, or look for randomness and for derivatives written "
            "by hand in the model"
        )
    return explained
