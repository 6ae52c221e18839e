"""The best learning rate: over a log grid, per seed, refined between its points."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from theodolite.core import (
    ConfigError,
    Cost,
    Rows,
    ShortcutBlueprint,
    Status,
    as_integer,
    estimate,
    join_lines,
)

from .grid import train_grid
from .result import Grid


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


@dataclass(frozen=True, eq=False)
class RateSearch:
    """Best rates, and the runs that they come from."""

    best: tuple[BestRate, ...]
    rows: Rows
    cost: Cost
    grids: tuple[Grid, ...]

    def __repr__(self) -> str:
        """Return the best rates, as many as fit on a screen."""
        lines = []
        for best in self.best:
            setting = "".join(
                f"{name} {value}, " for name, value in best.labels.items()
            )
            lines.append(
                f"  {setting}lr {best.lr:.4g} ± {best.lr_error:.2g} decades, final "
                f"loss {best.final_loss:.4g}"
            )
        runs = len(self.rows.where(quantity="final_loss"))
        return join_lines(
            [f"RateSearch over {runs} runs, {len(lines)} settings", *lines]
        )


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


def search_rates(
    blueprint: ShortcutBlueprint | Mapping[str, ShortcutBlueprint],
    data: tuple[Any, Any],
    axes: Mapping[str, Iterable[Any]],
    *,
    steps: int,
    rounds: int = 2,
    **settings: Any,
) -> RateSearch:
    """Train over a log grid of rates, then halve the spacing around each optimum.

    Args:
        blueprint: As for :func:`train_grid`.
        data: Inputs and targets.
        axes: As for :func:`train_grid`, with at least three rates.
        steps: Updates of each point.
        rounds: Times to halve the spacing, on either side of every seed's best.
        **settings: Further settings of :func:`train_grid`, but no folder.

    Example:
        >>> x = np.eye(3)
        >>> search = search_rates(ShortcutBlueprint(width=3, depth=2), (x, x[::-1]),
        ...                      {"lr": [0.03, 0.3, 3.0]}, steps=50, rounds=2)
        >>> search.best[0].edge is None, 0.3 < search.best[0].lr < 3
        (True, True)
    """
    axes, rates = _kept(axes)
    if len(rates) < 3:
        raise ConfigError(
            f"learning rates {list(rates)}: a search wants at least 3, such as "
            "np.logspace(-3, 0, 7)"
        )
    as_integer("rounds", rounds, 0)
    if "folder" in settings:
        raise ConfigError("a search trains several grids: give a folder to train_grid")
    grids = [train_grid(blueprint, data, axes, steps=steps, **settings)]
    rows, names = grids[0].rows, list(grids[0].axes)
    for _ in range(rounds):
        for setting, new in _between(rows, names):
            fixed = {name: [value] for name, value in setting.items()}
            plan = blueprint
            if isinstance(plan, Mapping):
                (name,) = fixed.pop("network")
                plan = {name: plan[name]}
            narrowed = {**axes, **fixed, "lr": new}
            grid = train_grid(plan, data, narrowed, steps=steps, **settings)
            grids.append(grid)
            rows = rows + [{**setting, **row} for row in grid.rows]
    cost = sum((grid.cost for grid in grids), Cost())
    return RateSearch(tuple(best_rates(rows, names)), rows, cost, tuple(grids))


def _kept(axes: Any) -> tuple[dict[str, Any], list[Any]]:
    """Return the axes as lists, which can be read twice, and the learning rates."""
    kept = {
        name: list(values)
        if isinstance(values, Iterable) and not isinstance(values, str)
        else values  # which train_grid refuses
        for name, values in axes.items()
    }
    rates = kept.get("lr", [])
    return kept, rates if isinstance(rates, list) else [rates]


def _between(rows: Rows, axes: list[str]) -> Iterable[tuple[dict[str, Any], list]]:
    """Yield each setting with the rates half-way around its seeds' best."""
    for setting in best_rates(rows, axes):
        mine = rows.where(quantity="final_loss", **setting.labels)
        tried = np.array(mine.levels("lr"))
        new: set[float] = set()
        for seed in mine.levels("seed") or [None]:
            of_seed = mine if seed is None else mine.where(seed=seed)
            losses = {row["lr"]: row["value"] for row in of_seed}
            alive = {rate: v for rate, v in losses.items() if v is not None}
            if alive:
                place = int(np.searchsorted(tried, min(alive, key=lambda r: alive[r])))
                for near in (place - 1, place):
                    if 0 <= near < len(tried) - 1:
                        new.add(float(np.sqrt(tried[near] * tried[near + 1])))
        if new:
            yield setting.labels, sorted(new)


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
