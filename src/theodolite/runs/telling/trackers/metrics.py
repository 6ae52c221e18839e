"""Rows as trackers want them: a tag, a step and a finite number, or a text."""

import importlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from theodolite.core import ConfigError, Row

# What a value cost and how its computation ended are not part of its name.
_CIRCUMSTANCES = frozenset(("status", "cpu_s", "wall_s", "passes"))
_NOT_LABELS = _CIRCUMSTANCES | {"quantity", "value", "error", "step", "loss"}


@dataclass(frozen=True)
class Metric:
    """One number for a tracker."""

    tag: str
    step: int
    value: float


def metrics(rows: Iterable[Row], step: int, study: str) -> Iterator[Metric]:
    """Yield the finite numbers of rows, their errors, and how many are not finite.

    Args:
        rows: Rows of one cell.
        step: Step of rows that have no ``step`` of their own.
        study: First part of every tag.

    Example:
        >>> rows = [{"quantity": "loss", "lr": 0.1, "step": 5, "value": 0.25},
        ...         {"quantity": "loss", "lr": 9.0, "step": 5, "value": None}]
        >>> for metric in metrics(rows, 0, "grid"):
        ...     print(metric.tag, metric.step, metric.value)
        grid/loss/lr=0.1 5 0.25
        grid/not_finite 0 1.0
    """
    n_lost = 0
    for row in rows:
        if isinstance(row.get("value"), str):
            continue
        own = _number(row.get("step"))
        at = step if own is None else int(own)
        value, error = _number(row.get("value")), _number(row.get("error"))
        n_lost += value is None
        if value is not None:
            yield Metric(tag_of(row, study), at, value)
        if error is not None:
            yield Metric(tag_of(row, study, ".error"), at, error)
    if n_lost:
        yield Metric(f"{study}/not_finite", step, float(n_lost))


def texts(rows: Iterable[Row], study: str) -> Iterator[tuple[str, str]]:
    """Yield (tag, text) of the rows whose value is a text, such as a verdict."""
    for row in rows:
        if isinstance(row.get("value"), str):
            yield tag_of(row, study), row["value"]


def tag_of(row: Row, study: str, suffix: str = "") -> str:
    """Return ``study/quantity/label=value,…``."""
    labels = ",".join(f"{k}={v}" for k, v in row.items() if k not in _NOT_LABELS)
    return "/".join(
        filter(None, (study, f"{row.get('quantity', 'value')}{suffix}", labels))
    )


def library(name: str, extra: str) -> Any:
    """Import what a tracker needs, or say how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"tracking with {extra} needs a library that cannot be imported ({error}): "
            f"pip install 'theodolite[{extra}]'"
        ) from error


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
