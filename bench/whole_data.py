"""A Hessian product with batch statistics of all the data: memory against time.

``python -m bench whole_data`` measures on the CPU; ``python -m bench.whole_data --out
FILE`` on a CUDA device, where one graph may also lie on the host.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench.high_water import rise_mib
from bench.networks import Data, Residual
from bench.timing import in_turns
from theodolite.instruments import Hessian

LOSS = nn.CrossEntropyLoss()
NORMS = (2, 5, 10, 20)
SAMPLES, PARTS = 64, 4
Make = Callable[[nn.Module, Data], Hessian]


def case(norms: int, samples: int = SAMPLES, side: int = 16) -> tuple[nn.Module, Data]:
    """Return a residual net with so many batch norms, and its data."""
    with torch.random.fork_rng():
        torch.manual_seed(norms)
        stem = [nn.Conv2d(3, 16, 3, padding=1, bias=False)]
        stem += [nn.BatchNorm2d(16), nn.ReLU()] if norms % 2 else []
        blocks = [Residual(16) for _ in range(norms // 2)]
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)]
        x, y = torch.randn(samples, 3, side, side), torch.arange(samples) % 10
        return nn.Sequential(*stem, *blocks, *head).train(), (x, y)


def one_graph(model: nn.Module, data: Data) -> Hessian:
    """Return the operator on all the data at once, whose graph is kept."""
    return Hessian(model, data, loss=LOSS, norm_mode="batch")


def on_the_host(model: nn.Module, data: Data) -> Hessian:
    """Return the same with the graph's tensors on the host."""
    operator = one_graph(model, data)
    operator._kept.offload = True
    return operator


def in_step(model: nn.Module, data: Data, *, host: bool = False) -> Hessian:
    """Return the operator on chunks that go from norm to norm together."""
    size = len(data[0]) // PARTS
    operator = Hessian(model, data, loss=LOSS, norm_mode="full", micro_batch=size)
    if host:
        operator.loss_and_gradient()
        for group in operator._prepared.groups:
            group.joint.shelf.host = True
    return operator


def by_turns(model: nn.Module, data: Data) -> Hessian:
    """Return it with memory for the graph of one chunk, and for nothing else."""
    size = len(data[0]) // PARTS
    given = {"loss": LOSS, "norm_mode": "full", "micro_batch": size}
    least = Hessian(model, data, **given).forecast_bytes
    return Hessian(model, data, **given, graph_bytes=least + 1)


WAYS: dict[str, Make] = {
    "one graph, kept": one_graph,
    "in step": in_step,
    "by turns": by_turns,
}


def run() -> Iterator[dict[str, Any]]:
    """Check every way against one graph, then count gradients and memory."""
    for norms in NORMS:
        model, data = case(norms)
        v = torch.randn(_size(model), generator=torch.Generator().manual_seed(0))
        made = {name: make(model, data) for name, make in WAYS.items()}
        found = {name: operator @ v for name, operator in made.items()}
        quick = {n: partial(o.matvec, v) for n, o in made.items() if n != "by turns"}
        times = in_turns({"gradient": partial(_gradient, model, data), **quick}, 5)
        slow = {"by turns": partial(made["by turns"].matvec, v)}
        times |= in_turns(slow, 1, warm=False)
        for name in WAYS:
            gap = (found[name] - found["one graph, kept"]).norm()
            yield _row(norms, name, times, float(gap / found[name].norm()))


def _row(norms: int, name: str, times: dict[str, float], gap: float) -> dict[str, Any]:
    peak = rise_mib("bench.whole_data", f"{name}, {norms}")
    return {
        "task": f"one product, {norms} batch norms",
        "way": name,
        "gradients": times[name] / times["gradient"],
        "agree": "—" if name == "one graph, kept" else f"to {gap:.0e}",
        "peak": "" if peak is None else f"{peak:.0f} MiB",
    }


def _size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _gradient(model: nn.Module, data: Data) -> tuple[Tensor, ...]:
    return torch.autograd.grad(LOSS(model(data[0]), data[1]), list(model.parameters()))


def _memory_case(make: Make, norms: int) -> Callable[[], Callable[[], Any]]:
    def prepare() -> Callable[[], Any]:
        model, data = case(norms)
        _gradient(model, (data[0][:2], data[1][:2]))
        return lambda: make(model, data) @ torch.ones(_size(model))

    return prepare


CASES = {
    f"{name}, {norms}": _memory_case(make, norms)
    for name, make in WAYS.items()
    for norms in NORMS
}


def on_a_card(samples: int, side: int) -> list[dict[str, Any]]:
    """Measure all ways on a CUDA device, by wall time and its peak memory."""
    ways = {
        **WAYS,
        "one graph, on the host": on_the_host,
        "in step, on the host": partial(in_step, host=True),
    }
    rows = []
    for norms in NORMS:
        model, data = case(norms, samples, side)
        model, data = model.cuda(), (data[0].cuda(), data[1].cuda())
        gradient = _wall(partial(_gradient, model, data))
        v = torch.randn(_size(model), generator=torch.Generator().manual_seed(0)).cuda()
        truth: Tensor | None = None
        for name, make in ways.items():
            operator = make(model, data)
            product = partial(operator.matvec, v)
            seconds, found = _wall(product), product()
            truth = found if truth is None else truth
            rows.append(
                {
                    "task": f"one product, {norms} batch norms, {samples} samples",
                    "way": name,
                    "gradients": seconds / gradient,
                    "agree": f"to {float((found - truth).norm() / truth.norm()):.0e}",
                    "peak": f"{torch.cuda.max_memory_allocated() / 2**20:.0f} MiB",
                }
            )
            operator.close()
    return rows


def _wall(work: Callable[[], object]) -> float:
    """Return the wall time of the second of two calls, and start a new peak."""
    work()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    """Write the rows of a CUDA device to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--side", type=int, default=32)
    given = parser.parse_args()
    rows = on_a_card(given.samples, given.side)
    record = {"device": torch.cuda.get_device_name(), "rows": rows}
    given.out.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
