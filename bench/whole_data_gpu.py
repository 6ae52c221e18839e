"""A Hessian product with batch statistics of all the data on a CUDA device.

``python -m bench.whole_data_gpu --out FILE`` writes its rows as they are measured: the
nets of ``bench.whole_data``, then a ResNet-20 on images as CIFAR-10 has them. Only here
may what is carried between norms, or the one graph, lie on the host.
"""

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench.gpu_rows import write_rows
from bench.networks import Data
from bench.whole_data import LOSS, NORMS, case, in_step, one_graph
from theodolite import networks
from theodolite.core import ResnetBlueprint
from theodolite.instruments import Hessian
from theodolite.instruments.norms.lockstep import LockstepChunks

Make = Callable[[nn.Module, Data], Hessian]
# How maps lie, and whether cuDNN looks for its quickest kernels.
LAYOUTS = {
    "as torch lays maps": (torch.contiguous_format, False),
    "channels last": (torch.channels_last, False),
    "channels last, cudnn.benchmark": (torch.channels_last, True),
}


def on_the_host(model: nn.Module, data: Data) -> Hessian:
    """Return one graph of all the data with its tensors on the host."""
    operator = one_graph(model, data)
    plan = operator._prepared.plan
    operator._prepared.plan = replace(plan, offload=True)
    return operator


def in_step_on_the_host(model: nn.Module, data: Data) -> Hessian:
    """Return chunks in step whose inputs of norms lie on the host."""
    operator = in_step(model, data)
    operator.loss_and_gradient()
    for group in operator._prepared.plan.groups:
        if isinstance(group.statistics, LockstepChunks):
            group.statistics.store.host = True
    return operator


def running(model: nn.Module, data: Data, *, parts: int = 1) -> Hessian:
    """Return the operator on running statistics, in chunks or not."""
    size = None if parts == 1 else len(data[0]) // parts
    return Hessian(model, data, loss=LOSS, norm_mode="eval", micro_batch=size)


SMALL: dict[str, Make] = {
    "one graph, kept": one_graph,
    "in step, four chunks": in_step,
    "one graph, on the host": on_the_host,
    "in step, four chunks, on the host": in_step_on_the_host,
}
RESNET: dict[str, Make] = {
    "one graph, kept": one_graph,
    "in step, two chunks": partial(in_step, parts=2),
    "running statistics, one graph, kept": running,
    "running statistics, two chunks": partial(running, parts=2),
}
TEN_FOLD: dict[str, Make] = {
    "in step, ten chunks": partial(in_step, parts=10),
    "running statistics, ten chunks": partial(running, parts=10),
}


def rows(images: int, samples: int, side: int) -> Iterator[dict[str, Any]]:
    """Measure all ways: small nets, a ResNet-20, and that on ten times the images."""
    for norms in NORMS:
        words = f"{norms} batch norms, {samples:,} images"
        yield from compared(words, *case(norms, samples, side), SMALL, {})
    for name, (layout, search) in LAYOUTS.items():
        words = f"ResNet-20, {images:,} images, {name}"
        torch.backends.cudnn.benchmark = search
        yield from compared(words, *resnet20(images, layout), RESNET, {})
    torch.backends.cudnn.benchmark = False
    words = f"ResNet-20, {10 * images:,} images, channels last"
    subject = resnet20(10 * images, torch.channels_last)
    yield from compared(words, *subject, TEN_FOLD, {"parts": 10})


def resnet20(images: int, layout: torch.memory_format) -> tuple[nn.Module, Data]:
    """Return the network with random weights, and random images."""
    blueprint = ResnetBlueprint(width=16, blocks=(3, 3, 3), channels=3, classes=10)
    model = networks.build(blueprint, seed=0, device="cuda").to(torch.float32)
    drawn = torch.Generator("cuda").manual_seed(0)
    x = torch.randn(images, 3, 32, 32, generator=drawn, device="cuda")
    model.train().to(memory_format=layout)  # pyright: ignore[reportCallIssue]
    return model, (x.to(memory_format=layout), torch.arange(images) % 10)


def compared(
    words: str, model: nn.Module, data: Data, ways: dict[str, Make], taken: Any
) -> Iterator[dict[str, Any]]:
    """Yield a row a way: its time in gradients, its peak, its gap to the first way."""
    model, data = model.cuda(), (data[0].cuda(), data[1].cuda())
    seconds = _wall(partial(gradient, model, data, **taken))[0]
    size = sum(parameter.numel() for parameter in model.parameters())
    v = torch.randn(size, generator=torch.Generator().manual_seed(0)).cuda()
    firsts: dict[bool, Tensor] = {}
    for name, make in ways.items():
        operator = make(model, data)
        took, peak, product = _wall(partial(operator.matvec, v))
        first = firsts.setdefault("running" in name, product)
        gap = float((product - first).norm() / first.norm())
        yield {
            "task": words,
            "way": name,
            "gradients": took / seconds,
            "agree": "" if product is first else f"to {gap:.0e}",
            "peak": f"{peak / 2**30:.1f} GiB",
            "note": _otherwise(name, operator.way),
        }
        operator.close()


def _otherwise(name: str, way: str) -> str:
    """Say so where memory or the model made an operator take another way."""
    if "lockstep" not in name or way.startswith("lockstep"):
        return ""
    return f"taken {way}"


def gradient(model: nn.Module, data: Data, parts: int = 1) -> list[Tensor]:
    """Return the gradients of the parts of the data, each with its own statistics."""
    gradients: list[Tensor] = []
    for x, y in zip(data[0].chunk(parts), data[1].chunk(parts), strict=True):
        gradients += torch.autograd.grad(LOSS(model(x), y), list(model.parameters()))
    return gradients


def _wall(work: Callable[[], Any]) -> tuple[float, int, Any]:
    """Return the least wall time of a second and third call, the peak, what it gave."""
    gc.collect()
    torch.cuda.empty_cache()
    work()
    torch.cuda.reset_peak_memory_stats()
    times, result = [], None
    for _ in range(2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times), torch.cuda.max_memory_allocated(), result


def main() -> None:
    """Write the rows of a CUDA device to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int, default=5_000, help="of ResNet-20")
    parser.add_argument("--samples", type=int, default=2_048, help="of small nets")
    parser.add_argument("--side", type=int, default=32, help="of small nets' images")
    given = parser.parse_args()
    measured = partial(rows, given.images, given.samples, given.side)
    write_rows("whole_data_gpu", measured, given.out)


if __name__ == "__main__":
    main()
