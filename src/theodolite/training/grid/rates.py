"""The best learning rate: over a log grid, per seed, refined between its points."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import (
    ConfigError,
    Rows,
    Status,
    estimate,
)


@dataclass(frozen=True, kw_only=True)
class BestRate:
    """The optimum for one setting of the other axes."""

    labels: dict[str, Any]  # that setting, without seed and rate
    lr: float  # geometric mean over seeds of each seed's best rate; NaN if all diverged
    # Its standard error in decades: the spread over seeds and the spacing of the rates,
    # which all seeds share (uniform: over √12).
    lr_error: float
    final_loss: float  # mean over seeds of the smallest final loss
    final_loss_error: float  # its standard error over seeds; NaN for a single seed
    # ``low`` or ``high`` if any seed's best is the first or last rate tried, so that
    # the optimum may lie outside; else None.
    edge: str | None
    # Decades between the best rate and the farther of its neighbours tried.
    spacing: float
    n_seeds: int  # seeds with at least one run that did not diverge
    status: Status  # ``DIVERGED`` if no run survived


def best_rates(rows: Rows, axes: Iterable[str]) -> list[BestRate]:
    """Return the best rate of every setting among finished runs.

    Each seed's best is the vertex of the parabola through its best run and the two
    neighbours, log loss against log rate, where all three finished; else the run's
    own rate.

    Args:
        rows: Rows of one grid or of several.
        axes: Their axes; all but ``seed`` and ``lr`` tell settings apart.
    """
    others = [name for name in axes if name not in ("seed", "lr")]
    settings: dict[tuple[Any, ...], dict[int, dict[float, float]]] = {}
    for row in rows.where(quantity="final_loss"):
        key = tuple(row[name] for name in others)
        loss = math.inf if row["value"] is None else row["value"]
        by_seed = settings.setdefault(key, {})
        by_seed.setdefault(row.get("seed", 0), {})[row["lr"]] = loss
    if not settings:
        raise ConfigError("no finished runs came: pass the rows of a grid")
    return [
        _best(dict(zip(others, key, strict=True)), by_seed)
        for key, by_seed in settings.items()
    ]


def _best(labels: dict[str, Any], by_seed: dict[int, dict[float, float]]) -> BestRate:
    optima = [optimum for runs in by_seed.values() if (optimum := _optimum(runs))]
    if not optima:
        numbers = ("lr", "lr_error", "final_loss", "final_loss_error", "spacing")
        unknown = dict.fromkeys(numbers, math.nan)
        status = Status.DIVERGED
        return BestRate(labels=labels, **unknown, edge="low", n_seeds=0, status=status)
    logs = estimate([math.log10(optimum.lr) for optimum in optima])
    losses = estimate([optimum.loss for optimum in optima])
    spacing = max(optimum.spacing for optimum in optima)
    # Seeds share the rates tried, so their number does not make them finer.
    resolution = spacing / math.sqrt(12)
    spread = 0.0 if math.isnan(logs.stderr) else logs.stderr
    edges = sorted({optimum.edge for optimum in optima if optimum.edge is not None})
    return BestRate(
        labels=labels,
        lr=10**logs.mean,
        lr_error=math.hypot(spread, resolution),
        final_loss=losses.mean,
        final_loss_error=losses.stderr,
        edge=edges[0] if edges else None,
        spacing=spacing,
        n_seeds=len(optima),
        status=Status.FINISHED,
    )


@dataclass(frozen=True)
class _Optimum:
    lr: float
    loss: float
    spacing: float
    edge: str | None


def _optimum(runs: dict[float, float]) -> _Optimum | None:
    """Return one seed's best, refined between the rates tried."""
    rates = sorted(runs)
    losses = [runs[rate] for rate in rates]
    place = int(np.argmin(losses))
    if not math.isfinite(losses[place]):
        return None
    edge = {0: "low", len(rates) - 1: "high"}.get(place) if len(rates) > 1 else "high"
    near = [i for i in (place - 1, place + 1) if 0 <= i < len(rates)]
    gaps = [abs(math.log10(rates[i] / rates[place])) for i in near]
    lr = rates[place]
    if edge is None and all(math.isfinite(losses[i]) for i in near):
        lr = _vertex(rates[place - 1 : place + 2], losses[place - 1 : place + 2])
    return _Optimum(lr, losses[place], max(gaps, default=math.nan), edge)


def _vertex(rates: list[float], losses: list[float]) -> float:
    """Return the rate at the vertex of a parabola through three points, kept inside."""
    if min(losses) <= 0:
        return rates[1]
    x, y = np.log10(rates), np.log(losses)
    left, right = (y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
    bend = right - left
    if not bend > 0:
        return rates[1]
    middle = (x[0] + x[1]) / 2 - left * (x[2] - x[0]) / 2 / bend
    return float(10 ** np.clip(middle, (x[0] + x[1]) / 2, (x[1] + x[2]) / 2))
