"""One Hessian-vector product on a CUDA device, in gradients: ours and other ways.

``python -m bench.cuda --out FOLDER`` writes a file a network, batch and norm mode, each
as soon as it is measured, and stops in time (``--seconds``). Every product is first
compared with one in float64 (in float32 where that does not fit), and only those that
agree are timed, in turns with the gradient of the same loss. Networks, libraries and
memory that are missing are lines. Random weights, float32, TF32 off.

Peers run attention on torch's plain backend, the only one that any of them can
differentiate twice; the gradient runs on whichever torch chooses.

``--device cpu --tiny`` runs the same on small networks anywhere. ``make bench`` leaves
this out. ``--gather RESULT`` writes the rows of all files in the folder as one result,
as ``docs/benchmarks.md`` takes it.
"""

import argparse
import copy
import gc
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import DeviceType
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile

from bench import command_line
from bench.cuda_gathering import gather
from bench.cuda_networks import LARGE, TINY, Subject
from bench.hessian_products import (
    Product,
    curvlinops,
    double_backward,
    eigenthings,
    forward_over_reverse,
)
from bench.networks import Data
from bench.peers import Missing, peer_name
from bench.versions import versions
from theodolite.instruments import Hessian
from theodolite.instruments.differentiate import twice

LOSS = nn.CrossEntropyLoss()
Make = Callable[[nn.Module, Data], Product]
# Products count as right that are as near to float64 as this, or as twice what plain
# double backward in float32 is off: with random weights and batch statistics rounding
# moves activations across kinks.
AGREE = 1e-3
ROUNDS = 3
GRADIENT = "one gradient"


class InMeasurement:
    """Our operator's product as spectra and traces take it: the model is opened once.

    Products inside of ``around()`` need not look whether it changed.
    """

    def __init__(self, operator: Hessian) -> None:
        self._operator, self.around = operator, operator.together

    def __call__(self, v: Tensor) -> Tensor:
        """Multiply a vector."""
        return self._operator.matvec(v)


def ours(model: nn.Module, data: Data) -> Product:
    """Return our operator's product within a measurement; its graph is built once."""
    return InMeasurement(_hessian(model, data))


def by_itself(model: nn.Module, data: Data, *, replay: bool = False) -> Product:
    """Return the product as a user asks for one."""
    return _hessian(model, data, replay=replay).matvec


def _hessian(model: nn.Module, data: Data, *, replay: bool = False) -> Hessian:
    mode = "batch" if model.training else "eval"
    return Hessian(model, data, loss=LOSS, norm_mode=mode, replay=replay)


def as_torch_does(model: nn.Module, data: Data) -> Product:
    """Return ours with torch's own second derivatives of all but batch statistics."""
    kept, twice.CALLED_INSTEAD = twice.CALLED_INSTEAD, {}
    try:
        operator = by_itself(model, data)
        operator(torch.zeros(_size(model), device=data[0].device))  # builds the graph
    finally:
        twice.CALLED_INSTEAD = kept
    return operator


WAYS: dict[str, Make] = {
    "theodolite": ours,
    "theodolite, a product by itself": by_itself,
    "theodolite, one CUDA graph": partial(by_itself, replay=True),
    "theodolite, torch's second derivatives": as_torch_does,
    "double backward, graph kept": partial(double_backward, retain=True),
    "double backward": double_backward,
    "torch.func jvp of grad": forward_over_reverse,
    peer_name("hessian_eigenthings"): eigenthings,
    peer_name("curvlinops"): curvlinops,
}


def main(arguments: list[str] | None = None) -> None:
    """Measure what the command line asks for."""
    given = _arguments(arguments)
    if given.gather is not None:
        gather(given.out, command_line.file(given.gather))
        return
    device = command_line.device(
        "cuda",
        given.device,
        otherwise="run it where one is, or pass --device cpu --tiny",
    )
    subjects = TINY if given.tiny else LARGE
    _check(given, subjects)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = given.search
    clock = Clock(device, time.monotonic() + given.seconds)
    begins = tuple(given.ways or [""])
    ways = {name: way for name, way in WAYS.items() if name.startswith(begins)}
    for subject in subjects:
        if given.only and subject.name not in given.only:
            continue
        for batch in given.batches or subject.batches:
            for mode in subject.modes:
                rows = list(measured(subject, batch, mode, ways, clock))
                _write(given.out, rows, device, search=given.search)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the rows")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small networks")
    parser.add_argument("--seconds", type=float, default=540.0, help="stop after")
    parser.add_argument("--batches", type=int, nargs="*", help="samples; 16 32 64")
    parser.add_argument("--only", nargs="*", help="names of networks")
    parser.add_argument("--ways", nargs="*", help="beginnings of names of ways")
    parser.add_argument("--gather", type=Path, help="write a result from the folder")
    parser.add_argument("--search", action="store_true", help="cudnn.benchmark")
    return parser.parse_args(arguments)


def _check(given: argparse.Namespace, subjects: Sequence[Subject]) -> None:
    """Refuse what would measure nothing, before anything is measured."""
    for name in given.only or ():
        command_line.known("network", name, [subject.name for subject in subjects])
    for begin in given.ways or ():
        if not any(name.startswith(begin) for name in WAYS):
            command_line.known("way", begin, WAYS)
    for batch in given.batches or ():
        command_line.count("--batches", batch)
    command_line.folder(given.out)


class Clock:
    """Times work on a device, and knows when time is up."""

    def __init__(self, device: torch.device, end: float) -> None:
        self.device, self._end = device, end

    def over(self) -> bool:
        """Say whether the time given is spent."""
        return time.monotonic() > self._end

    def in_turns(
        self, one: Callable[[], Any], other: Callable[[], Any], around: Any
    ) -> tuple[float, float]:
        """Return the least time of each, warmed up, in turns; the other within."""
        best = [float("inf")] * 2
        for round_ in range(ROUNDS + 1):
            for place, work in enumerate((one, other)):
                with around() if place else nullcontext():
                    taken = self._seconds(work)
                best[place] = min(best[place], taken) if round_ else best[place]
        return best[0], best[1]

    def profiled(
        self, work: Callable[[], Any], seconds: float | None = None
    ) -> dict[str, Any]:
        """Return the number of kernels of some work, and their share of its time.

        The time is that without the profiler, which takes its own.
        """
        if self.device.type == "cpu":
            return {}
        if seconds is None:
            seconds = min(self._seconds(work) for _ in range(ROUNDS + 1))
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            self._seconds(work)
        # What a profiler finds on the device, copies and fills among it.
        events = [
            e for e in profiler.events() or () if e.device_type == DeviceType.CUDA
        ]
        busy = sum(event.self_device_time_total for event in events) / 1e6
        return {"launches": len(events), "busy": busy / seconds}

    def _seconds(self, work: Callable[[], Any]) -> float:
        if self.device.type == "cpu":
            start = time.process_time()
            work()
            return time.process_time() - start
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        return time.perf_counter() - start


def measured(
    subject: Subject,
    batch: int,
    mode: str,
    ways: dict[str, Make],
    clock: Clock,
) -> Iterator[dict[str, Any]]:
    """Yield a row a way, or one that says why there are none."""
    row: dict[str, Any] = {"model": subject.name, "batch": batch, "norm_mode": mode}
    if clock.over():
        yield _told({**row, "note": "not run: the time given was over"})
        return
    try:
        torch.manual_seed(0)
        model, data = subject.make(batch)
        model = model.to(clock.device).train(mode == "batch")
        data = (data[0].to(clock.device), data[1].to(clock.device))
        row["parameters"] = _size(model)
        v = torch.randn(row["parameters"], device=clock.device)
        truth, words = _truth(model, data, v)
        row["plain_gap"] = _plain_gap(model, data, v, truth)
        work = partial(_gradient, model, data)
        profiled = {**row, "way": GRADIENT, "gradients": 1.0, **clock.profiled(work)}
    except Missing as missing:
        yield _told({**row, "note": str(missing)})
        return
    except torch.OutOfMemoryError:
        yield _told({**row, "note": "a plain double backward does not fit in memory"})
        return
    yield _told(profiled)
    for name, make in ways.items():
        late = clock.over()
        record = {"note": "not run: the time given was over"} if late else {}
        limit = max(AGREE, 2 * row["plain_gap"])
        record = record or _way(make, model, data, v, truth, limit, clock)
        yield _told({**row, "way": name, "reference": words, **record})


def _way(
    make: Make,
    model: nn.Module,
    data: Data,
    v: Tensor,
    truth: Tensor,
    limit: float,
    clock: Clock,
) -> dict[str, Any]:
    """Check one way, then time it beside the gradient."""
    with _forgotten(clock.device) as peak:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.filterwarnings("error", "the product was not recorded")
                product, around = _plainly(make, copy.deepcopy(model), data)
                gap = float((product(v).double() - truth).norm() / truth.norm())
                if not gap < limit:
                    words = f"further off than {limit:.0e}, so not timed"
                    return {"gap": gap, "note": words}
                gradient, work = partial(_gradient, model, data), partial(product, v)
                times = clock.in_turns(gradient, work, around)
                with around():
                    kernels = clock.profiled(work, times[1])
        except Missing as missing:
            return {"note": str(missing)}
        except torch.OutOfMemoryError:
            return {"note": "does not fit in memory"}
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            return {"note": reason[:160]}
        record = {"gradients": times[1] / times[0], "gap": gap, "peak_gib": peak()}
        return {**record, **kernels}


def _gradient(model: nn.Module, data: Data) -> None:
    parameters = [p for p in model.parameters() if p.requires_grad]
    torch.autograd.grad(LOSS(model(data[0]), data[1]), parameters)


def _plainly(make: Make, model: nn.Module, data: Data) -> tuple[Product, Any]:
    """Return a way's product with attention on torch's plain backend.

    And what products are made within.
    """
    with sdpa_kernel(SDPBackend.MATH):
        product = make(model, data)

    def plain(v: Tensor) -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return product(v)

    return plain, getattr(product, "around", nullcontext)


def _truth(model: nn.Module, data: Data, v: Tensor) -> tuple[Tensor, str]:
    """Return the product by plain double backward, in float64 where that fits."""
    for kind in (torch.float64, torch.float32):
        with _forgotten(v.device):
            try:
                exact = copy.deepcopy(model).to(kind)
                x = data[0].to(kind) if data[0].is_floating_point() else data[0]
                product, _ = _plainly(double_backward, exact, (x, data[1]))
                return product(v.to(kind)).double(), str(kind).removeprefix("torch.")
            except torch.OutOfMemoryError:
                if kind is torch.float32:
                    raise
    raise AssertionError


def _plain_gap(model: nn.Module, data: Data, v: Tensor, truth: Tensor) -> float:
    """Return how far plain double backward is off in the model's own precision."""
    with _forgotten(v.device):
        product, _ = _plainly(double_backward, copy.deepcopy(model), data)
        return float((product(v).double() - truth).norm() / truth.norm())


@contextmanager
def _forgotten(device: torch.device) -> Iterator[Callable[[], float | None]]:
    """Give memory back on the way out; inside, the peak so far can be asked for."""
    cuda = device.type == "cuda"
    if cuda:
        gc.collect()  # the way before, whose operator refers to itself
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    try:
        yield lambda: torch.cuda.max_memory_allocated() / 2**30 if cuda else None
    finally:
        if cuda:
            gc.collect()
            torch.cuda.empty_cache()


def _size(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def _told(row: dict[str, Any]) -> dict[str, Any]:
    print(json.dumps(row), flush=True)
    return row


def _write(
    folder: Path, rows: list[dict[str, Any]], device: torch.device, *, search: bool
) -> None:
    cuda = device.type == "cuda"
    record = {
        "versions": versions(),
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "cudnn.benchmark": search,
        "rows": rows,
    }
    first = rows[0]
    name = "_".join(str(first[key]) for key in ("model", "batch", "norm_mode"))
    safe = "".join(c if c.isalnum() or c in "._" else "-" for c in name)
    (folder / f"{safe}.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
