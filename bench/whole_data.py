"""A Hessian product with batch statistics of all the data: memory against time.

On the CPU; ``bench.whole_data_gpu`` measures on a CUDA device.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from bench.networks import Data, Residual
from bench.peak_memory import rise_mib
from bench.timing import cpu_seconds
from theodolite.instruments import Hessian

LOSS = nn.CrossEntropyLoss()
NORMS = (2, 5, 10, 20)
SAMPLES, PARTS = 128, 4
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


def in_step(model: nn.Module, data: Data, parts: int = PARTS) -> Hessian:
    """Return the operator on chunks that go from norm to norm together."""
    size = len(data[0]) // parts
    return Hessian(model, data, loss=LOSS, norm_mode="full", micro_batch=size)


def by_turns(model: nn.Module, data: Data) -> Hessian:
    """Return it with memory for the graph of one chunk, and for nothing else."""
    size = len(data[0]) // PARTS
    given = {"loss": LOSS, "norm_mode": "full", "micro_batch": size}
    least = Hessian(model, data, **given).forecast_bytes
    return Hessian(model, data, **given, graph_bytes=(least or 0) + 1)


WAYS: dict[str, Make] = {
    "one graph, kept": one_graph,
    "in step": in_step,
    "by turns": by_turns,
}


def run() -> Iterator[dict[str, Any]]:
    """Check every way against one graph in float64, then count gradients and memory."""
    for norms in NORMS:
        model, data = case(norms)
        v = torch.randn(_size(model), generator=torch.Generator().manual_seed(0))
        truth = one_graph(deepcopy(model).double(), (data[0].double(), data[1]))
        wanted = truth @ v.double()
        for name, make in WAYS.items():
            operator = make(model, data)
            operator.loss_and_gradient()  # finds what is found once for all products
            rounds = 1 if name == "by turns" else 5
            gradients, product = _in_gradients(operator, v, (model, data), rounds)
            gap = float((product.double() - wanted).norm() / wanted.norm())
            peak = rise_mib("bench.whole_data", f"{name}, {norms}")
            yield {
                "task": f"one product, {norms} batch norms",
                "way": name,
                "counted": f"{_counted(make, model, data, v):.1f}",
                "gradients": gradients,
                "agree": f"to {gap:.0e}",
                "peak": "" if peak is None else f"{peak:.0f} MiB",
            }


def _in_gradients(
    operator: Hessian, v: Tensor, subject: tuple[nn.Module, Data], rounds: int
) -> tuple[float, Tensor]:
    """Return the time of a product in gradients, each beside its neighbours."""
    gradient = partial(_gradient, *subject)
    gradient()
    ratios, product = [], v
    for _ in range(rounds):
        before = cpu_seconds(gradient, 1)[0]
        seconds, product = cpu_seconds(partial(operator.matvec, v), 1)
        after = cpu_seconds(gradient, 1)[0]
        ratios.append(2 * seconds / (before + after))
    return median(ratios), product


def _counted(make: Make, model: nn.Module, data: Data, v: Tensor) -> float:
    """Return the arithmetic of a product in that of gradients, on a few samples."""
    few = data[0][: 2 * PARTS], data[1][: 2 * PARTS]
    operator = make(model, few)
    operator.matvec(v)  # checks derivatives once
    with FlopCounterMode(display=False) as gradient:
        _gradient(model, few)
    with FlopCounterMode(display=False) as product:
        operator.matvec(v)
    return product.get_total_flops() / gradient.get_total_flops()


def _size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _gradient(model: nn.Module, data: Data) -> tuple[Tensor, ...]:
    return torch.autograd.grad(LOSS(model(data[0]), data[1]), list(model.parameters()))


def _memory_case(make: Make, norms: int) -> Callable[[], Callable[[], Any]]:
    def prepare() -> Callable[[], Any]:
        model, data = case(norms)
        few, v = (data[0][:8], data[1][:8]), torch.ones(_size(model))
        _ = in_step(model, few) @ v  # loads what is loaded once
        if make is by_turns:  # whose products hold no more than a gradient does
            return lambda: make(model, data).loss_and_gradient()
        return lambda: make(model, data) @ v

    return prepare


CASES = {
    f"{name}, {norms}": _memory_case(make, norms)
    for name, make in WAYS.items()
    for norms in NORMS
}
