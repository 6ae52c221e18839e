"""The numbers of a survey that matter most, each in a few words with its unit."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from theodolite.core import Row

from .outcomes import (
    NOT_RESOLVED,
    identity_of,
    is_resolved,
    on_fewest,
    on_samples,
    samples_of,
    unlike,
)
from .words import OPTIMIZERS, word

if TYPE_CHECKING:
    from .whole_survey import Survey


def headlines(survey: "Survey") -> list[tuple[str, str]]:
    """Return pairs of a name and its value in words."""
    told = ((name, tell(survey)) for name, tell in _HEADLINES)
    return [(name, text) for name, text in told if text]


def amount(value: float, error: float | None = None, *, of: str = "") -> str:
    """Return a number with its error in the unit of a quantity.

    The value is rounded to the digits that its error leaves.

    Example:
        >>> amount(-6e-15, 3e-6), amount(0.47, 0.011, of="dead_share")
        ('0 ± 3e-06', '47 ± 1.1 %')
    """
    factor, unit = word(of).factor, word(of).unit
    unit = f" {unit}" if unit else ""
    if not math.isfinite(value):
        return "not finite"
    if not error:
        return f"{factor * value:.4g}{unit}"
    if math.isfinite(error):
        # The sum with 0 turns a negative zero into zero.
        value = round(value, 1 - math.floor(math.log10(error))) + 0.0
    return f"{factor * value:.4g} ± {factor * error:.2g}{unit}"


def figure(row: Row) -> str:
    """Return a row's value with its error, and its samples if not all were used.

    Example:
        >>> figure({"value": 2.0, "error": 0.125, "n_samples": 8, "of_samples": 64})
        '2 ± 0.12 on 8 of 64 samples'
    """
    short = ", not converged" if identity_of(row)[2] == "not converged" else ""
    return brief(row) + on_samples(samples_of(row)) + short


def brief(row: Row) -> str:
    """Return a row's value with its error; what to try if it is not resolved."""
    value, error = row.get("value"), row.get("error")
    if value is None:
        more = row.get("needs_effort")
        said = str(row.get("nonfinite", "unknown"))
        return said + (f", try effort={more}" if more else "")
    text = amount(value, error, of=str(row.get("quantity", "")))
    return text if is_resolved(row) else f"{NOT_RESOLVED} ({text})"


def _one(quantity: str, **labels: Any) -> Callable[["Survey"], str]:
    def tell(survey: "Survey") -> str:
        row = survey.number(quantity, **labels)
        return "" if row is None else figure(row)

    return tell


def _loss(survey: "Survey") -> str:
    text = _one("loss")(survey)
    chance = (survey.number("loss_at_chance") or {}).get("value")
    known = text and chance is not None
    return text + (f" (guessing: {chance:.4g})" if known else "")


def _trials(survey: "Survey") -> str:
    """Return words for the losses after the trial steps at each rate."""
    rows = survey.find("trial_loss")
    before = next((row for row in rows if row["step"] == 0), None)
    used = ", in use" if survey.settings.get("optimizer") else ""
    parts = [
        f"{brief(row)} (rate {row['rate']:.3g}{used if row['factor'] == 1 else ''})"
        for row in sorted(rows, key=lambda row: row["factor"])
        if row["step"] > 0
    ]
    if before is None or before.get("value") is None:
        return ""
    return f"loss {brief(before)} → {', '.join(parts)}"


def _rate(survey: "Survey") -> str:
    """Return words for the stable rate, and the rate in use beside it."""
    row, used = survey.number("stable_rate"), survey.number("rate_in_use")
    if row is None:
        return ""
    text = f"{OPTIMIZERS[row['optimizer']]} {figure(row)}"
    if used is None:
        return text
    over = (survey.number("rate_over_stable") or {}).get("value")
    ratio = "" if over is None else f", {over:.3g} times as large"
    return f"{text} (in use {used['value']:.4g}{ratio})"


def _range(quantity: str, *, by_depth: bool = False) -> Callable[["Survey"], str]:
    """Return words for the smallest and the largest number of a quantity.

    Args:
        quantity: The quantity.
        by_depth: Whether to give the numbers of the first and the last block too.
    """
    of = word(quantity)

    def tell(survey: "Survey") -> str:
        rows = survey.find(quantity).where(lambda row: row.get("value") is not None)
        if not len(rows) or any(any(unlike(rows[0], row)) for row in rows):
            return ""
        values = [of.factor * row["value"] for row in rows]
        ends = dict.fromkeys(f"{end:.3g}" for end in (min(values), max(values)))
        text = f"{' to '.join(ends)} {of.unit}".strip()
        if by_depth:
            over = f"{len(values)} block{'s' * (len(values) > 1)}"
            text = f"{values[0]:.3g} → {values[-1]:.3g} over {over} ({text})"
        return text + on_fewest(rows)

    return tell


def _curvature(survey: "Survey") -> str:
    largest = _one("largest_eigenvalue", rank=0)(survey)
    smallest = _one("smallest_eigenvalue", rank=0)(survey)
    return largest + (f", smallest {smallest}" if largest and smallest else "")


_HEADLINES: tuple[tuple[str, Callable[["Survey"], str]], ...] = (
    ("loss", _loss),
    ("trial steps", _trials),
    ("stable rate", _rate),
    ("forward rms", _range("forward_rms", by_depth=True)),
    ("backward rms", _range("backward_rms", by_depth=True)),
    ("branch/skip gain", _range("branch_gain")),
    ("dead units", _range("dead_share")),
    ("largest curvature", _curvature),
)
