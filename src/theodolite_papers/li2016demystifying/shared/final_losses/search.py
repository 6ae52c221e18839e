"""Final losses over learning rates, for one network at one depth."""

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from theodolite import networks, training
from theodolite.core import Cell, Row, Rows, ShortcutBlueprint, named_rows, stream

from ..optima import least_loss
from .config import NETWORKS, RateConfig, inputs

# Bootstrap samples of seeds for the error of an optimal rate.
_RESAMPLES = 400
# A search that still moves after this many windows is left as it is, and flagged.
_WINDOWS = 8
# A run has left its start once it keeps at most this share of its first excess loss.
_KEPT = 0.5
# Steps at which losses are read for that: within a factor of 1.12 of one another.
_READ = training.LogSpaced(20)


class Search:
    """Trains runs of one network and keeps their final losses.

    Args:
        config: Rates and seeds.
        plan: Architecture.
        data: Inputs and targets.
        floor: Least loss; the optimum is that of the loss above it.
        strategy: How to train; see :func:`theodolite.training.train_grid`.

    Attributes:
        losses: Final loss above the floor by rung and seed; infinite for a run that
            diverged.
    """

    def __init__(
        self,
        config: RateConfig,
        plan: ShortcutBlueprint,
        data: tuple[np.ndarray, np.ndarray],
        *,
        floor: float = 0.0,
        strategy: str = "auto",
    ) -> None:
        self.config, self.plan, self.data = config, plan, data
        self.floor, self.strategy = floor, strategy
        self.losses: dict[int, dict[int, float]] = {}
        self.errors: dict[tuple[int, int], float] = {}
        self.methods: set[str] = set()
        self.runs = 0
        # Steps until a run has left its start, by rung and seed; infinite if never.
        # Only networks that start at a stationary point are followed.
        at_rest = plan.init == "small" and plan.shortcut > 1
        self.follows = config.quantity == "excess" and at_rest
        self.escapes: dict[int, dict[int, float]] = {}

    def run(self) -> "Search":
        """Train all seeds at all rates, or at those around the optimum."""
        config = self.config
        if not config.scouts:
            self._train(config.ladder, config.seeds)
            return self
        self._train(config.ladder[:: config.stride], config.seeds[: config.scouts])
        centre, reach = self._best(range(config.scouts)), config.reach
        for _ in range(_WINDOWS):
            near = range(centre - reach, centre + reach + 1)
            wanted = [k for k in near if k in config.ladder and not self._complete(k)]
            if not wanted:
                break
            self._train(wanted, config.seeds)
            # Once a window is trained, half of it is enough around a moved optimum.
            centre, reach = self.best, max(config.reach // 2, 1)
        return self

    @property
    def best(self) -> int:
        """Rung with the least mean loss over all seeds."""
        return self._best(range(self.config.n_seeds))

    @property
    def edge(self) -> bool:
        """Whether the best rung is the lowest or the highest one tried."""
        tried = [k for k in sorted(self.losses) if self._complete(k)]
        return self.best in (tried[0], tried[-1])

    def rows(self, quantity: str) -> list[Row]:
        """Return rows of the losses at the best rate, the best rate, and all means."""
        best, config = self.best, self.config
        rate, error = math.log10(config.rate(best)), self._rate_error()
        method = ", ".join(sorted(self.methods))
        of = {"edge": self.edge, "runs": self.runs, "method": method}
        rows = named_rows({"log10_rate": rate}, error, **of)
        for seed in config.seeds:
            own = self._own(seed)
            rows.append(
                {
                    "quantity": quantity,
                    "trial": seed,
                    "value": _finite(self.losses[best][seed]),
                    "error": self.errors[best, seed],
                    "own_rate": _finite(math.log10(own.lr)),
                    "own_error": _finite(own.lr_error),
                    "own_edge": own.edge is not None,
                }
            )
        return rows + self._escapes() + self._means(f"mean_{quantity}")

    def _escapes(self) -> list[Row]:
        """Return the steps that each seed needs to leave its start, by rate.

        Rates are half a decade apart; ``fastest_escape`` is at the rate of all that
        needs the fewest steps. A run that never leaves has the number of all steps,
        and ``left`` is false.
        """
        rows: list[Row] = []
        half_decade = max(self.config.rungs // 2, 1)
        for seed in self.config.seeds if self.follows else ():
            by_rung = {
                rung: runs[seed]
                for rung, runs in sorted(self.escapes.items())
                if math.isfinite(self.losses[rung][seed])
            }
            if not by_rung:
                continue
            shown = {k: step for k, step in by_rung.items() if k % half_decade == 0}
            fastest = min(by_rung, key=by_rung.__getitem__)
            named = [("escape", rung, step) for rung, step in shown.items()]
            for name, rung, step in [
                *named,
                ("fastest_escape", fastest, by_rung[fastest]),
            ]:
                left = math.isfinite(step)
                steps = step if left else self.config.steps
                rows += named_rows(
                    {name: steps},
                    # Losses are read 20 times a decade.
                    steps * (1 - 10 ** (-1 / _READ.per_decade)) if left else 0.0,
                    trial=seed,
                    rate=round(rung / self.config.rungs, 6),
                    left=left,
                )
        return rows

    def _first(self, seed: int) -> float:
        """Return the loss above the floor before the first step."""
        import torch

        x, y = (torch.as_tensor(part) for part in self.data)
        with torch.no_grad():
            away = networks.build(self.plan, seed=seed)(x) - y
        return float((away**2).sum(1).mean()) / 2 - self.floor

    def _means(self, quantity: str) -> list[Row]:
        """Return the mean over finished runs at every rate that has any."""
        rows: list[Row] = []
        for rung in sorted(self.losses):
            losses = np.array(list(self.losses[rung].values()))
            alive = losses[np.isfinite(losses)]
            if len(alive):
                several = len(alive) > 1
                spread = alive.std(ddof=1) / math.sqrt(len(alive)) if several else 0.0
                rows += named_rows(
                    {quantity: alive.mean()},
                    float(spread),
                    rate=round(rung / self.config.rungs, 6),
                    finished=len(alive),
                    diverged=len(losses) - len(alive),
                )
        return rows

    def _train(self, rungs: Iterable[int], seeds: Iterable[int]) -> None:
        """Train the runs that are not trained yet."""
        config, seeds = self.config, list(seeds)
        new: dict[tuple[int, ...], list[int]] = {}
        for rung in rungs:
            missing = tuple(s for s in seeds if s not in self.losses.get(rung, {}))
            if missing:
                new.setdefault(missing, []).append(rung)
        for missing, chosen in new.items():
            rate = {config.rate(rung): rung for rung in chosen}
            with warnings.catch_warnings():
                # Rates above the stable ones are meant to diverge.
                warnings.simplefilter("ignore", training.GridWarning)
                grid = training.train_grid(
                    self.plan,
                    self.data,
                    {"seed": list(missing), "lr": list(rate)},
                    steps=config.steps,
                    dtype=config.dtype,  # type: ignore[arg-type]
                    device=config.device,
                    strategy=self.strategy,
                    record=_READ if self.follows else None,
                    jobs=0,
                )
            self.methods.update(grid.methods)
            self._keep(grid.rows, rate)

    def _keep(self, rows: Rows, rate: dict[float, int]) -> None:
        for row in rows.where(quantity="final_loss"):
            rung, seed = rate[row["lr"]], row["seed"]
            lost = row["value"] is None
            # A loss within rounding of the floor gets its rounding as its excess.
            value = math.inf if lost else max(row["value"] - self.floor, row["error"])
            self.losses.setdefault(rung, {})[seed] = value
            self.errors[rung, seed] = 0.0 if lost else row["error"]
            self.runs += 1
        if self.follows:
            half = {s: self.floor + _KEPT * self._first(s) for s in rows.levels("seed")}
            for row in rows.where(quantity="loss"):
                rung, seed = rate[row["lr"]], row["seed"]
                steps = self.escapes.setdefault(rung, {}).setdefault(seed, math.inf)
                if row["value"] <= half[seed]:
                    self.escapes[rung][seed] = min(steps, row["step"])

    def _complete(self, rung: int) -> bool:
        return len(self.losses.get(rung, {})) == self.config.n_seeds

    def _table(self, some: Iterable[int]) -> tuple[list[int], np.ndarray]:
        """Return rungs and losses (rungs, seeds) where all those seeds have run."""
        seeds = [self.config.seeds[place] for place in some]
        rungs = [
            rung
            for rung in sorted(self.losses)
            if all(seed in self.losses[rung] for seed in seeds)
        ]
        return rungs, np.array([[self.losses[k][s] for s in seeds] for k in rungs])

    def _best(self, some: Iterable[int]) -> int:
        rungs, table = self._table(some)
        means = table.mean(axis=1)
        # If some run diverges at every rate, take the lowest rate.
        return rungs[int(np.argmin(means))] if np.isfinite(means).any() else rungs[0]

    def _rate_error(self) -> float:
        """Return the best rate's error: bootstrap over seeds, and rung spacing."""
        n = self.config.n_seeds
        rungs, table = self._table(range(n))
        rng = stream(self.config.seed, "optimal_rate")
        drawn = (
            rng.integers(n, size=(_RESAMPLES, n)) if n > 1 else np.zeros((1, 1), int)
        )
        means = table[:, drawn].mean(axis=2)
        optima = np.array(rungs)[np.argmin(means, axis=0)]
        rounding = 1 / math.sqrt(12)
        return float(np.hypot(optima.std(), rounding)) / self.config.rungs

    def _own(self, seed: int) -> Any:
        """Return the best rate of one seed."""
        rows = Rows(
            {
                "quantity": "final_loss",
                "seed": seed,
                "lr": self.config.rate(rung),
                "value": _finite(losses[seed]),
            }
            for rung, losses in sorted(self.losses.items())
            if seed in losses
        )
        return training.best_rates(rows, ["seed", "lr"])[0]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def plan_of(config: RateConfig, cell: Cell) -> ShortcutBlueprint:
    """Return the architecture of a cell."""
    plan = ShortcutBlueprint(
        width=config.width,
        depth=cell["depth"],
        mid=config.mid,
        **NETWORKS[cell["network"]],
    )
    # One matrix per unit leaves no middle.
    return plan.with_(mid="identity") if plan.shortcut == 1 else plan


def measure(config: RateConfig, cell: Cell, *, strategy: str = "auto") -> Rows:
    """Train one network at all its rates."""
    data = inputs(config)
    floor = least_loss(*data) if config.quantity == "excess" else 0.0
    search = Search(config, plan_of(config, cell), data, floor=floor, strategy=strategy)
    return Rows(search.run().rows(config.quantity))
