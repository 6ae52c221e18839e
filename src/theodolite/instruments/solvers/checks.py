"""What every spectrum asks of its operator and of its settings."""

from theodolite.core import ConfigError, MeasurementError, NormMode
from theodolite.instruments.operators.operator import Operator


def norm_mode_of(operator: Operator) -> NormMode:
    """Return the operator's norm mode; a plain matrix counts as ``eval``."""
    return NormMode(getattr(operator, "norm_mode", NormMode.EVAL))


def check_symmetric(operator: Operator) -> None:
    """Refuse an operator that has no real spectrum."""
    if not operator.symmetric:
        raise MeasurementError(
            f"{type(operator).__name__} of shape {operator.shape} is not symmetric: "
            "pass a Hessian, or say symmetric=True if it is"
        )
    if not operator.shape[1]:
        raise MeasurementError(
            f"{type(operator).__name__} of shape {operator.shape} has no eigenvalues: "
            "choose parameters that hold numbers"
        )


def check_count(name: str, value: int, least: int = 1) -> None:
    """Refuse a count that is not a whole number from ``least`` up."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} is {value!r}: pass a whole number from {least} up")


def check_level(level: float) -> None:
    """Refuse what is not a level of confidence."""
    if not 0 < level < 1:
        raise ConfigError(f"level is {level!r}: pass a number between 0 and 1, as 0.95")
