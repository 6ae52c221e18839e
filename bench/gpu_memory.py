"""What products take on a CUDA device, beside what was forecast of them.

``python -m bench.gpu_memory --out FILE`` writes a row a network, number of samples,
norm mode and operator: forecasts from a few samples by the size of a graph and by the
tensors of a product, what the product took beyond what was there, and what torch had
set aside at that time.
"""

import argparse
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bench.cuda_networks import LARGE, Subject
from bench.gpu_rows import write_rows
from bench.networks import Data
from theodolite.instruments import GaussNewton, Hessian
from theodolite.instruments.passes.set_up import GraphMemory

LOSS = nn.CrossEntropyLoss()
GIB = 2**30
CASES = (
    ("ResNet-18", 64, "batch"),
    ("ResNet-50", 16, "batch"),
    ("ResNet-50", 64, "batch"),
    ("ResNet-50", 64, "eval"),
    ("ConvNeXt-T", 64, "eval"),
    ("ViT-B/16", 64, "eval"),
    ("GPT-2", 16, "eval"),
    ("GPT-2", 32, "eval"),
)


def rows() -> Iterator[dict[str, Any]]:
    """Measure Hessians and Gauss–Newton matrices of all networks."""
    for name, samples, mode in CASES:
        subject = next(one for one in LARGE if one.name.startswith(name))
        model, data = _on_card(subject, samples, train=mode == "batch")
        for kind in (Hessian, GaussNewton):
            words = f"{kind.title}, {subject.name}, {samples} samples, mode {mode}"
            yield {"task": words, **_measured(kind, model, data, mode)}


def _on_card(subject: Subject, samples: int, *, train: bool) -> tuple[nn.Module, Data]:
    torch.manual_seed(0)
    model, data = subject.make(samples)
    return model.cuda().train(train), (data[0].cuda(), data[1].cuda())


def _measured(
    kind: type[Hessian | GaussNewton], model: nn.Module, data: Data, mode: str
) -> dict[str, str]:
    told: dict[str, float] = {}

    def tightly(self: GraphMemory, samples: int) -> int | None:
        told["graphs"] = self.predict(samples) or 0
        told["tensors"] = self.counted(samples) or 0
        return 0

    kept, GraphMemory.tightly = GraphMemory.tightly, tightly
    try:
        operator = kind(model, data, loss=LOSS, norm_mode=mode)
    finally:
        GraphMemory.tightly = kept
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    operator.matvec(torch.ones(operator.shape[1], device="cuda"))
    taken = torch.cuda.max_memory_allocated() - before
    aside = torch.cuda.max_memory_reserved() - before
    operator.close()
    record = {**told, "taken": taken, "aside": aside}
    return {name: f"{value / GIB:.2f} GiB" for name, value in record.items()}


def main() -> None:
    """Write the rows of a CUDA device to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    write_rows("gpu_memory", rows, given.out)


if __name__ == "__main__":
    main()
