"""The numbers of a survey that matter most, each in a few words."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import Row

from .outcomes import identity_of, on_fewest, on_samples, samples_of, unlike

if TYPE_CHECKING:
    from .whole_survey import Survey


def headlines(survey: "Survey") -> list[tuple[str, str]]:
    """Return at most 10 pairs of a name and its value in words."""
    return [(name, text) for name, tell in _HEADLINES if (text := tell(survey))]


def figure(row: Row) -> str:
    """Return a row's value with its error, and its samples if not all were used.

    Example:
        >>> figure({"value": 2.0, "error": 0.125, "n_samples": 8, "of_samples": 64})
        '2 ± 0.12 on 8 of 64 samples'
    """
    on = on_samples(samples_of(row))
    if row.get("value") is None:
        return _missing(row) + on
    error = row.get("error")
    short = ", not converged" if identity_of(row)[2] == "not converged" else ""
    return f"{row['value']:.4g}" + ("" if not error else f" ± {error:.2g}") + on + short


def _missing(row: Row) -> str:
    """Return words for a number that is not finite, with the effort to try."""
    more = row.get("needs_effort")
    return str(row.get("nonfinite", "unknown")) + (f", try effort={more}" * bool(more))


def _one(quantity: str, **labels: Any) -> Callable[["Survey"], str]:
    def tell(survey: "Survey") -> str:
        row = survey.number(quantity, **labels)
        return "" if row is None else figure(row)

    return tell


def _loss(survey: "Survey") -> str:
    text = _one("loss")(survey)
    chance = _one("loss_at_chance")(survey)
    return text + (f" (at chance {chance})" if text and chance else "")


def _by_depth(quantity: str) -> Callable[["Survey"], str]:
    """Return words for a quantity at the first and the last block, and its extremes."""

    def tell(survey: "Survey") -> str:
        rows = survey.find(quantity)
        values = rows.values()
        if not len(values) or any(any(unlike(rows[0], row)) for row in rows):
            return ""
        text = f"{values[0]:.3g} → {values[-1]:.3g}"
        among = f"{np.min(values):.3g} to {np.max(values):.3g}"
        return f"{text} over {len(values)} ({among}){on_fewest(rows)}"

    return tell


def _range(quantity: str) -> Callable[["Survey"], str]:
    def tell(survey: "Survey") -> str:
        rows = survey.find(quantity)
        values = rows.values()
        if not len(values) or any(any(unlike(rows[0], row)) for row in rows):
            return ""
        return f"{np.min(values):.3g} to {np.max(values):.3g}{on_fewest(rows)}"

    return tell


def _curvature(survey: "Survey") -> str:
    largest = _one("largest_eigenvalue", rank=0)(survey)
    smallest = _one("smallest_eigenvalue", rank=0)(survey)
    return largest + (f", smallest {smallest}" if largest and smallest else "")


def _rates(survey: "Survey") -> str:
    """Return words for the rates, grouped by their samples, since lines are cut."""
    briefs: dict[str, list[str]] = {}
    for row in survey.find("stable_rate"):
        brief = f"{row.get('optimizer')} {_brief(row)}"
        briefs.setdefault(on_samples(samples_of(row)).strip(), []).append(brief)
    parts = (": ".join(filter(None, (on, ", ".join(of)))) for on, of in briefs.items())
    return "; ".join(parts)


def _brief(row: Row) -> str:
    value, error = row.get("value"), row.get("error")
    if value is None:
        return _missing(row)
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
