"""Full-batch training of small n-shortcut networks against the loop in PyTorch."""

from collections.abc import Callable, Iterator

import numpy as np
import torch

from bench.telling import told
from bench.timing import Result, in_turns
from theodolite.core import ShortcutBlueprint
from theodolite.data import load, whiten
from theodolite.networks import build, initial_weights
from theodolite.training.engines.cpu import FusedEngine, MomentsEngine

RATE = 0.1
# Steps of the loop, and of ours where more are needed to be measured at all.
LOOP, STEPS = 60, {"moments (numba)": 1000, "moments (torch)": 250}
CELLS = {"moments (numba)": 4, "moments (torch)": 32}


def run() -> Iterator[Result]:
    """Compare at two depths, linear and with ReLU, compiled and not."""
    digits = load("mnist5k")
    x = whiten(digits.flat(), k=10).apply(digits.flat())
    y = digits.one_hot()
    cases = [
        (f"{depth} layers, {mid} at mid", (engine, depth, mid))
        for engine, mid in ((MomentsEngine, "identity"), (FusedEngine, "relu"))
        for depth in (16, 64)
    ]
    for engine, depth, mid in told(cases):
        plan = ShortcutBlueprint(width=10, depth=depth, mid=mid, init="small")
        yield from both(engine, plan, x, y)


def both(
    make: type, plan: ShortcutBlueprint, x: np.ndarray, y: np.ndarray
) -> list[Result]:
    """Return a row for the compiled and one for the torch path of an engine."""
    theirs = lambda: loop(plan, x, y)  # noqa: E731
    truth = theirs()
    ours, rows = {}, []
    for compiled in (True, False):
        engine = make(plan, x, y, dtype="float32", compiled=compiled)
        ours[engine.name] = descent(engine, plan, STEPS.get(engine.name, LOOP))
    gaps = {name: gap(way(), truth) for name, way in ours.items()}
    best = in_turns({"loop": theirs, **ours}, rounds=2, warm=False)
    for name in ours:
        task = f"{plan.depth} layers, {'ReLU' if plan.mid == 'relu' else 'linear'}"
        peer = f"PyTorch loop; ours {name}"
        if not gaps[name] <= 1e-4:
            rows.append(Result(task, peer, None, f"no: {gaps[name]:.1e}"))
            continue
        steps = STEPS.get(name, LOOP) * CELLS.get(name, 1)
        per_step = best[name] / steps
        ratio = best["loop"] / LOOP / per_step
        rows.append(Result(task, peer, ratio, f"to {gaps[name]:.0e}"))
    return rows


def loop(plan: ShortcutBlueprint, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the losses of the loop that a user of PyTorch writes."""
    network = build(plan, seed=0, dtype=torch.float32)
    inputs, targets = torch.as_tensor(x).float(), torch.as_tensor(y).float()
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
    losses = []
    for _ in range(LOOP):
        optimizer.zero_grad()
        loss = 0.5 * (network(inputs) - targets).square().sum() / len(x)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def descent(engine, plan: ShortcutBlueprint, steps: int) -> Callable[[], np.ndarray]:
    """Return a function that trains a stack and returns its first cell's losses."""
    cells = CELLS.get(engine.name, 1)
    start = np.stack([initial_weights(plan, seed=seed) for seed in range(cells)])
    rule = {
        "momentum": np.zeros(cells),
        "weight_decay": np.zeros(cells),
        "floor": np.full(cells, -np.inf),
        "ceiling": np.full(cells, np.inf),
    }
    rates = np.full((cells, steps), RATE)

    def way() -> np.ndarray:
        weights = engine.place(start)
        return engine.advance(weights, np.zeros_like(weights), rates, **rule).losses[0]

    return way


def gap(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest relative difference of losses along the way."""
    return float(np.abs(ours[:LOOP] / theirs - 1).max())
