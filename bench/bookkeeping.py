"""What a grid costs beyond its training: cells, rows, files."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.progress import say
from theodolite.core import ShortcutBlueprint
from theodolite.training import train_grid
from theodolite.training.engines.cpu import MomentsEngine

SEEDS, RATES, STEPS = 250, 10, 1000


def run() -> Iterator[dict[str, Any]]:
    """Train small cells in this process, and see what is not training."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5000, 10)), np.eye(10)[rng.integers(0, 10, 5000)]
    plan, spent = ShortcutBlueprint(width=10, depth=16), [0.0]
    train_grid(plan, (x, y), {"lr": [0.01]}, steps=1)  # compiled and loaded

    inner = MomentsEngine.advance

    def timed(*arguments: Any, **settings: Any) -> Any:
        start = time.process_time()
        result = inner(*arguments, **settings)
        spent[0] += time.process_time() - start
        return result

    axes = {"seed": range(SEEDS), "lr": np.geomspace(0.005, 0.05, RATES)}
    say(f"{SEEDS * RATES:,} cells, each {STEPS:,} steps")
    MomentsEngine.advance = timed
    try:
        start = time.process_time()
        grid = train_grid(plan, (x, y), axes, steps=STEPS, jobs=0)
        total = time.process_time() - start
    finally:
        MomentsEngine.advance = inner
    finished = int(np.isfinite(grid.final_loss).sum())
    yield {
        "task": f"{SEEDS * RATES:,} cells of 16 layers, {STEPS:,} steps, "
        f"{grid.methods[0]}",
        "agree": f"{finished:,} cells finished",
        "share of the run that is not training": f"{1 - spent[0] / total:.2%}",
    }
