"""The numbers of a survey that matter most, each in a few words."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import Row

if TYPE_CHECKING:
    from theodolite.survey.records.whole_survey import Survey


def headlines(survey: "Survey") -> list[tuple[str, str]]:
    """Return at most 10 pairs of a name and what is said of it."""
    return [(name, told) for name, tell in _HEADLINES if (told := tell(survey))]


def figure(row: Row) -> str:
    """Return a row's value with its error.

    Example:
        >>> figure({"value": 2.0, "error": 0.125})
        '2 ± 0.12'
    """
    if row.get("value") is None:
        return str(row.get("nonfinite", "unknown"))
    error = row.get("error")
    return f"{row['value']:.4g}" + ("" if not error else f" ± {error:.2g}")


def _one(quantity: str, **labels: Any) -> Callable[["Survey"], str]:
    def tell(survey: "Survey") -> str:
        row = survey.number(quantity, **labels)
        return "" if row is None else figure(row)

    return tell


def _loss(survey: "Survey") -> str:
    told = _one("loss")(survey)
    chance = _one("loss_at_chance")(survey)
    return told + (f" (at chance {chance})" if told and chance else "")


def _by_depth(quantity: str) -> Callable[["Survey"], str]:
    """Tell a quantity of the first and the last block, and its extremes."""

    def tell(survey: "Survey") -> str:
        values = survey.find(quantity).values()
        if not len(values):
            return ""
        told = f"{values[0]:.3g} → {values[-1]:.3g}"
        return (
            told + f" over {len(values)} ({np.min(values):.3g} to {np.max(values):.3g})"
        )

    return tell


def _range(quantity: str) -> Callable[["Survey"], str]:
    def tell(survey: "Survey") -> str:
        values = survey.find(quantity).values()
        return f"{np.min(values):.3g} to {np.max(values):.3g}" if len(values) else ""

    return tell


def _curvature(survey: "Survey") -> str:
    largest = _one("largest_eigenvalue", rank=0)(survey)
    smallest = _one("smallest_eigenvalue", rank=0)(survey)
    return largest + (f", smallest {smallest}" if largest and smallest else "")


def _rates(survey: "Survey") -> str:
    rows = survey.find("stable_rate")
    return ", ".join(f"{row.get('optimiser')} {_brief(row)}" for row in rows)


def _brief(row: Row) -> str:
    value, error = row.get("value"), row.get("error")
    if value is None:
        return str(row.get("nonfinite", "unknown"))
    return f"{value:.3g}" + ("" if not error else f" ± {error:.1g}")


_HEADLINES: tuple[tuple[str, Callable[["Survey"], str]], ...] = (
    ("loss", _loss),
    ("forward rms", _by_depth("forward_rms")),
    ("backward rms", _by_depth("backward_rms")),
    ("branch/skip gain", _range("branch_gain")),
    ("dead units", _range("dead_share")),
    ("largest curvature", _curvature),
    ("stable rate", _rates),
    ("noise scale", _one("gradient_noise_scale")),
    ("effective depth", _one("effective_depth")),
    ("tangent λmin", _one("tangent_smallest")),
)
