"""A grid of small ReLU networks on a CUDA device: all cells at once, or one by one.

``python -m bench.training_gpu --out FILE`` needs CUDA, so ``make bench`` leaves it out.
The grid is 10 seeds × 9 rates of a 2-shortcut network of depth 64 and width 10 on
60,000 samples in float32, TF32 off. Trajectories are first compared at a small scale.
The loop that a user writes is timed on one cell for a few steps and scaled to all
cells: it takes equal time for each. Useful operations are 6 N width² depth a step and
cell: one product forward and two backward a layer, without padding or recomputing.
Products of torch and the CUDA kernel are measured apart; what the kernel issues is
counted by ``bench.kernel_counts``.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from theodolite.core import ShortcutBlueprint
from theodolite.networks import build, initial_weights, set_weights
from theodolite.training.engines.protocol import Rule
from theodolite.training.engines.stacked.engine import Method, StackedEngine

BLUEPRINT = ShortcutBlueprint(width=10, depth=64, shortcut=2, mid="relu", init="small")
SAMPLES, SEEDS, RATES = 60_000, 10, np.geomspace(1e-3, 1e-1, 9)
KERNELS: tuple[Method, ...] = ("torch", "cuda")
LOOP_STEPS = 30


def problem(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return white inputs and targets that a near-identity network can fit."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(samples, BLUEPRINT.width))
    mix = np.eye(BLUEPRINT.width) + 0.3 * rng.normal(size=(BLUEPRINT.width,) * 2)
    return x, np.maximum(x @ mix, -0.5)


def grid(seeds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return weights of every seed and rate, and those rates."""
    drawn = np.stack([initial_weights(BLUEPRINT, seed=seed) for seed in range(seeds)])
    return drawn.repeat(len(RATES), axis=0), np.tile(RATES, seeds)


def stacked(
    engine: StackedEngine, weights: np.ndarray, rates: np.ndarray, steps: int
) -> tuple[float, np.ndarray]:
    """Return the seconds a step, first calls left out, and the losses."""
    every = rates[:, None].repeat(steps, axis=1)
    placed, velocity = engine.place(weights), engine.place(0 * weights)
    engine.advance(placed, velocity, Rule.of(every[:, :2]))
    placed, velocity = engine.place(weights), engine.place(0 * weights)
    torch.cuda.synchronize()
    start = time.perf_counter()
    done = engine.advance(placed, velocity, Rule.of(every))
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps, done.losses


def loop(
    data: tuple[np.ndarray, np.ndarray], weights: np.ndarray, rate: float, steps: int
) -> tuple[float, np.ndarray]:
    """Train one cell as a user would; return the seconds a step and the losses."""
    network = build(BLUEPRINT, seed=0, dtype=torch.float32)
    set_weights(network, weights)
    network.cuda()
    x, y = (torch.tensor(d, dtype=torch.float32, device="cuda") for d in data)
    optim = torch.optim.SGD(network.parameters(), lr=rate)
    losses, start = [], 0.0
    for step in range(steps + 3):
        if step == 3:  # the first steps load kernels
            torch.cuda.synchronize()
            start = time.perf_counter()
        optim.zero_grad()
        loss = (network(x) - y).square().sum() / (2 * len(x))
        loss.backward()
        optim.step()
        losses.append(loss.detach())
    torch.cuda.synchronize()
    taken = (time.perf_counter() - start) / steps
    return taken, torch.stack(losses).double().cpu().numpy()


def gemm_rate(precision: str) -> float:
    """Return the operations a second of large float32 products."""
    torch.set_float32_matmul_precision(precision)
    size, repeats = 8192, 10
    a, b = torch.randn(2, size, size, device="cuda")
    for _ in range(2):
        a @ b
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        a @ b
    end.record()
    end.synchronize()
    torch.set_float32_matmul_precision("highest")
    return 2 * size**3 * repeats / (start.elapsed_time(end) / 1000)


def check(kernel: Method) -> float:
    """Return how far losses are from the plain loop's, relative, at a small scale."""
    data = problem(3_001)
    weights, rates = grid(1)
    engine = StackedEngine(BLUEPRINT, *data, method=kernel)
    _, losses = stacked(engine, weights, rates, 60)
    gaps = []
    for cell in (0, 4, 8):
        _, wanted = loop(data, weights[cell], rates[cell], 57)
        gaps.append(np.abs(losses[cell] / wanted - 1).max())
    return float(max(gaps))


def measure(kernel: Method, steps: int, limits: dict[str, float]) -> dict[str, Any]:
    """Return what one kernel costs on the whole grid."""
    data = problem(SAMPLES)
    weights, rates = grid(SEEDS)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    engine = StackedEngine(BLUEPRINT, *data, method=kernel)
    start = time.perf_counter()
    engine.losses(engine.place(weights))
    ready = time.perf_counter() - start
    seconds, losses = stacked(engine, weights, rates, steps)
    useful = 6 * SAMPLES * BLUEPRINT.width**2 * BLUEPRINT.depth * len(weights)
    row = {
        "kernel": kernel,
        "engine": engine.name,
        "seconds a step": seconds,
        "seconds to plan, compile and capture": ready,
        "useful operations a second": useful / seconds,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30,
        "first and last loss of the middle cell": losses[len(losses) // 2, [0, -1]],
    }
    for name, limit in limits.items():
        row[f"fraction of the measured {name} rate"] = useful / seconds / limit
    return row


def report(steps: int, say: Callable[[Any], None]) -> dict[str, Any]:
    """Check, then measure; every finding is also said at once."""
    torch.set_float32_matmul_precision("highest")
    gaps = {kernel: check(kernel) for kernel in KERNELS}
    say({"largest relative gap of losses to the plain loop": gaps})
    limits = {
        "float32 product": gemm_rate("highest"),
        "TF32 product": gemm_rate("high"),
    }
    say(limits)
    weights, _ = grid(1)
    one, _ = loop(problem(SAMPLES), weights[0], 1e-3, LOOP_STEPS)
    sequential = one * SEEDS * len(RATES)
    say({"seconds a step of the loop, one cell and all": (one, sequential)})
    rows = []
    for kernel in KERNELS:
        count = min(steps, 100) if kernel == "torch" else steps
        row = measure(kernel, count, limits)
        row["ratio to the loop"] = sequential / row["seconds a step"]
        row["steps timed"] = count
        rows.append(row)
        say(row)
    return {
        "versions": {"torch": torch.__version__},
        "device": torch.cuda.get_device_name(),
        "grid": f"{SEEDS} seeds x {len(RATES)} rates, {BLUEPRINT}, N = {SAMPLES}",
        "gaps": gaps,
        "products a second": limits,
        "loop": {
            "steps timed, of one cell": LOOP_STEPS,
            "seconds a step, one cell": one,
            "seconds a step, all cells one by one": sequential,
        },
        "rows": rows,
    }


def as_ratios(record: dict[str, Any]) -> dict[str, Any]:
    """Return what the page shows of a record: ratios and shares, no times."""
    rows = []
    for row in record["rows"]:
        share = row["fraction of the measured float32 product rate"]
        gap = record["gaps"][row["kernel"]]
        rows.append(
            {
                "task": f"64 layers, ReLU at mid; {row['engine']}",
                "peer": "PyTorch loop, cell by cell",
                "ratio": row["ratio to the loop"],
                "agree": f"to {gap:.0e}",
                "share of the float32 product rate": f"{share:.0%}",
                "note": f"{row['steps timed']} steps timed, "
                f"{record['loop']['steps timed, of one cell']} of the loop; peak "
                f"{row['peak_gib']:.1f} GiB",
            }
        )
    versions = {**record["versions"], "device": record["device"]}
    return {"suite": "training_gpu", "versions": versions, "rows": rows}


def main() -> None:
    """Read the arguments, measure, write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1000)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit(
            "bench.training_gpu wants a CUDA device, and none is here: run it where "
            "one is"
        )
    record = report(given.steps, lambda line: print(line, flush=True))
    text = json.dumps(as_ratios(record), indent=2)
    given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
