"""Full-batch training of small n-shortcut networks against the loop in PyTorch."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch

from bench.progress import told
from bench.timing import Result, in_turns
from theodolite.core import ShortcutBlueprint
from theodolite.data import load, whiten
from theodolite.networks import build, initial_weights
from theodolite.training.engines.cpu import FusedEngine, MomentsEngine
from theodolite.training.engines.protocol import Rule

RATE = 0.1
# Steps of the loop, and of ours where more are needed to be measured at all.
LOOP, STEPS = 60, {"moments (numba)": 1000}
CELLS = {"moments (numba)": 4}


def run() -> Iterator[Result]:
    """Compare at two depths, linear and with ReLU."""
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
        yield compared(engine(plan, x, y, dtype="float32"), plan, x, y)


def compared(engine, plan: ShortcutBlueprint, x: np.ndarray, y: np.ndarray) -> Result:
    """Return the row of an engine beside the loop."""
    steps = STEPS.get(engine.name, LOOP)
    theirs = partial(loop, plan, x, y)
    ours = descent(engine, plan, steps)
    off = gap(ours(), theirs())
    best = in_turns({"loop": theirs, "ours": ours}, rounds=2, warm=False)
    task = f"{plan.depth} layers, {'ReLU' if plan.mid == 'relu' else 'linear'}"
    peer = f"PyTorch loop; ours {engine.name}"
    if not off <= 1e-4:
        return Result(task, peer, None, f"no: {off:.1e}")
    per_step = best["ours"] / (steps * CELLS.get(engine.name, 1))
    return Result(task, peer, best["loop"] / LOOP / per_step, f"to {off:.0e}")


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
    rule = Rule.of(np.full((cells, steps), RATE))

    def train() -> np.ndarray:
        weights = engine.place(start)
        return engine.advance(weights, np.zeros_like(weights), rule).losses[0]

    return train


def gap(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest relative difference of losses along the way."""
    return float(np.abs(ours[:LOOP] / theirs - 1).max())
