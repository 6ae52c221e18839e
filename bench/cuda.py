"""Hessian-vector products of torchvision's ResNets on a CUDA device, in gradients.

``python -m bench.cuda`` prints a row a network and writes ``bench/results/cuda.json``;
it needs CUDA and torchvision, so ``make bench`` leaves it out. The committed rows are
of random weights, images of 224 × 224, TF32 off.
"""

import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from theodolite.instruments import Hessian

CASES = (("resnet18", 32), ("resnet50", 16), ("resnet50", 32))


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the least mean time of three series, the device waited for."""
    work()
    torch.cuda.synchronize()
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / repeats)
    return best


def measure(name: str, batch: int, mode: str) -> dict[str, Any]:
    """Return the cost of one product of one network."""
    import torchvision

    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(weights=None).cuda()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2)
    x = torch.randn(batch, 3, 224, 224, device="cuda")
    y = torch.randint(0, 1000, (batch,), device="cuda")
    loss, params = nn.CrossEntropyLoss(), list(model.parameters())
    model.train(mode == "batch")
    gradient = seconds(lambda: torch.autograd.grad(loss(model(x), y), params), 10)
    torch.cuda.reset_peak_memory_stats()
    with Hessian(model, (x, y), loss=loss, norm_mode=mode) as operator:
        v, w = torch.randn(2, operator.shape[1], device="cuda")
        product = seconds(lambda: operator @ v, 5)
        peak = torch.cuda.max_memory_allocated()
        there, back = float(w @ (operator @ v)), float(v @ (operator @ w))

    def plain() -> None:
        first = torch.autograd.grad(loss(model(x), y), params, create_graph=True)
        parts = torch.split(v, [p.numel() for p in params])
        pairs = zip(first, parts, strict=True)
        torch.autograd.grad(sum((a * b.view_as(a)).sum() for a, b in pairs), params)

    return {
        "model": name,
        "batch": batch,
        "norm_mode": mode,
        "parameters": operator.shape[1],
        "gradients": product / gradient,
        "gradients, plain double backward": seconds(plain, 3) / gradient,
        "asymmetry": abs(there - back) / abs(there),
        "peak_gib": peak / 2**30,
    }


def main() -> None:
    """Measure with cuDNN's default algorithms, then with those it finds fastest."""
    if not torch.cuda.is_available() or find_spec("torchvision") is None:
        raise SystemExit(
            "bench.cuda wants a CUDA device and torchvision, and one of them is not "
            "here: run it where both are"
        )
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    rows = []
    for search in (False, True):
        torch.backends.cudnn.benchmark = search
        for name, batch in CASES:
            for mode in ("batch", "eval"):
                row = {"cudnn.benchmark": search, **measure(name, batch, mode)}
                rows.append(row)
                print(row, flush=True)
    record = {
        "versions": {"torch": torch.__version__},
        "device": torch.cuda.get_device_name(),
        "rows": rows,
    }
    path = Path(__file__).parent / "results" / "cuda.json"
    path.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
