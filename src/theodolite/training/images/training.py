"""Train many image classifiers at once on one device, each as if it were alone.

On CUDA runs take turns, one step each; each has its own stream and its step is one
graph, so small networks share the GPU. On the CPU they train one after another. A run
that diverges or raises is retired with the reason; others go on.
"""

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from theodolite.core import ConfigError
from theodolite.instruments import preserve_process

from .recipe import Images, Precision, Recipe, Trained
from .run import Augment, Measure, Report, Run

_C: Any = torch._C  # whose settings have private names
# The largest block whose release changes glibc's threshold: 32 MiB, less its header.
_LARGEST = 32 * 2**20 - 2**16


def keep_freed_memory() -> None:
    """Make glibc keep the memory that steps free.

    glibc returns blocks to the system at once if they are larger than any freed so far,
    up to 32 MiB, and the ends of its heaps past twice that. The next step then waits
    while the system fills the memory with zeros: a tenth of the processor time of
    networks with maps of 1 to 3 MB. Freeing one block of that
    size, which is never written to, prevents it.

    References:
        mallopt(3), M_MMAP_THRESHOLD and M_TRIM_THRESHOLD.
    """
    np.empty(_LARGEST, np.uint8)


def train_many(
    models: Sequence[nn.Module | Callable[[], nn.Module]],
    images: Images,
    *,
    recipe: Recipe | Sequence[Recipe],
    seeds: Sequence[int],
    augment: Augment | None = None,
    probe: Measure | None = None,
    probe_steps: Collection[int] | None = None,
    report: Report | None = None,
    at_once: int | None = None,
    limit_s: float = float("inf"),
) -> list[Trained]:
    """Train networks of any architecture, on a GPU several at a time.

    A seed sets the order of the images and their augmentation, so runs of one seed see
    the same batches, in every architecture. On the CPU it also sets the random numbers
    that a network draws from torch, for dropout.

    Args:
        models: Networks, trained in place where ``images`` live, or functions that
            build them when their turn comes.
        images: What to train and test on.
        recipe: One recipe for all, or one per network, of one precision.
        seeds: One per network.
        augment: Maps raw images and a CPU generator to changed images.
        probe: Measures a network at the start and after every epoch; the network is not
            changed. A probe that raises is retired.
        probe_steps: Numbers of updates after which the probe measures instead, 0 for
            the start; those within an epoch add readings.
        report: Called with each reading and the place of the network in ``models``;
            retired if it raises.
        at_once: Networks that take turns; by default four on a GPU, and one on the CPU,
            where more save no time.
        limit_s: Seconds after which all remaining runs are stopped.

    Returns:
        The result of each network, in the order given.
    """
    if len(models) != len(seeds):
        raise ConfigError(
            f"{len(models)} models and {len(seeds)} seeds: pass one seed per model"
        )
    recipes = [recipe] * len(models) if isinstance(recipe, Recipe) else list(recipe)
    precision = _check(recipes, len(models), images)
    calls = (augment, probe, report, set[str](), probe_steps)
    trio = zip(models, recipes, seeds, strict=True)
    runs = [
        Run(place, model, images, how, seed, *calls)
        for place, (model, how, seed) in enumerate(trio)
    ]
    with preserve_process():
        _set_cudnn(tf32=precision == "tf32")
        deadline = time.monotonic() + limit_s
        if not images.inputs.is_cuda:
            keep_freed_memory()
        if at_once is None:
            at_once = 4 if images.inputs.is_cuda else 1
        _take_turns(runs, at_once, lambda: time.monotonic() < deadline)
    return [run.result() for run in runs]


def _set_cudnn(*, tf32: bool) -> None:
    """Choose the kernels of cuDNN; ``preserve_process`` undoes it.

    Not by ``torch.backends.cudnn.flags``, which fails where TF32 is set by newer names.
    """
    deterministic = torch.are_deterministic_algorithms_enabled()
    _C._set_cudnn_enabled(True)
    _C._set_cudnn_benchmark(not deterministic)
    _C._set_cudnn_deterministic(deterministic)
    for product in ("conv", "rnn"):
        _C._set_fp32_precision_setter("cuda", product, "tf32" if tf32 else "ieee")


def _check(recipes: list[Recipe], wanted: int, images: Images) -> Precision:
    """Refuse recipes that do not fit; return the precision, the same for all runs."""
    if len(recipes) != wanted:
        raise ConfigError(
            f"{wanted} models and {len(recipes)} recipes: pass one recipe for all, or "
            "one per model"
        )
    largest = max((how.batch_size for how in recipes), default=0)
    if len(images.labels) < largest:
        raise ConfigError(
            f"{len(images.labels)} images do not fill a batch of {largest}: pass a "
            "smaller batch_size"
        )
    precisions: set[Precision] = {how.precision for how in recipes} or {"float32"}
    if len(precisions) > 1:
        raise ConfigError(
            f"recipes of precisions {', '.join(sorted(precisions))} were given: train "
            "those of one precision at a time"
        )
    if not images.inputs.is_cuda and precisions != {"float32"}:
        raise ConfigError(
            f"precision {min(precisions)!r} was asked for on {images.inputs.device}: "
            "it wants CUDA; pass 'float32'"
        )
    return precisions.pop()


def _take_turns(runs: list[Run], at_once: int, in_time: Callable[[], bool]) -> None:
    waiting, active = list(reversed(runs)), list[Run]()
    while (waiting or active) and in_time():
        while waiting and len(active) < max(1, at_once):
            run = waiting.pop()
            active += [run] if run.start() else []
        for run in list(active):
            if not run.advance_once():
                active.remove(run)
                run.release()
    for run in active:
        run.release()
