"""Train many image classifiers at once on one device, each as if it were alone.

On CUDA runs take turns, a step each; each has its own stream and its step is one graph,
so small networks share the card. On the CPU every thread that torch may use trains a
network of its own. A run that diverges or breaks is retired with the reason, and the
others go on.
"""

import time
from collections.abc import Callable, Collection, Sequence

import torch
from torch import nn

from theodolite.core import ConfigError
from theodolite.training.images.freed_memory import keep_freed_memory
from theodolite.training.images.recipe import Images, Precision, Recipe, Trained
from theodolite.training.images.run import Augment, Measure, Run, Tell
from theodolite.training.images.workers import train_side_by_side, wants_one_thread


def train_many(
    models: Sequence[nn.Module | Callable[[], nn.Module]],
    images: Images,
    *,
    recipe: Recipe | Sequence[Recipe],
    seeds: Sequence[int],
    augment: Augment | None = None,
    probe: Measure | None = None,
    probe_steps: Collection[int] | None = None,
    report: Tell | None = None,
    at_once: int = 4,
    limit_s: float = float("inf"),
) -> list[Trained]:
    """Train networks of any architecture, several at a time, in the order given.

    A seed names the order of the images and their augmentation, so runs of one seed
    see the same batches whatever their architecture. On the CPU it also names what a
    network draws for itself from torch, as for dropout; such networks take turns. One
    that draws from numpy or Python is repeated only with ``at_once=1``.

    Args:
        models: Networks, trained in place where ``images`` live, or functions that
            build them when their turn comes.
        images: What to train and test on.
        recipe: How; one for all, or one a network, of one precision.
        seeds: One a network.
        augment: Maps raw images and a CPU generator to changed images.
        probe: Reads numbers off a network, at the start and after every epoch; the
            network is left as found. Where it raises, it is retired.
        probe_steps: Numbers of updates after which the probe reads instead, 0 for the
            start; those within an epoch make readings of their own.
        report: Told of each reading, with the place of the network in ``models``;
            retired where it raises.
        at_once: Networks in training at any moment; on the CPU no more than the threads
            that torch may use, each then trained by one thread, and one where the
            caller set what other threads would not get: autocast, a default device, a
            mode of torch, hooks on saved tensors.
        limit_s: Seconds after which all that still runs is stopped.

    Returns:
        What became of each network, in the order given.
    """
    if len(models) != len(seeds):
        raise ConfigError(
            f"{len(models)} models and {len(seeds)} seeds: pass one seed a model"
        )
    recipes = [recipe] * len(models) if isinstance(recipe, Recipe) else list(recipe)
    precision = _check(recipes, len(models), images)
    told: set[str] = set()  # what was warned of, for all runs together
    runs = [
        Run(
            place,
            model,
            images,
            how,
            seed,
            augment,
            probe,
            report,
            told,
            probe_steps,
        )
        for place, (model, how, seed) in enumerate(
            zip(models, recipes, seeds, strict=True)
        )
    ]
    with torch.backends.cudnn.flags(
        enabled=True,
        benchmark=not torch.are_deterministic_algorithms_enabled(),
        deterministic=torch.are_deterministic_algorithms_enabled(),
        allow_tf32=precision == "tf32",
    ):
        deadline = time.monotonic() + limit_s
        if not images.inputs.is_cuda:
            keep_freed_memory()
            most = 1 if wants_one_thread() else torch.get_num_threads()
            at_once = max(1, min(at_once, most, len(runs)))
        alone = images.inputs.is_cuda or at_once == 1
        train = _take_turns if alone else train_side_by_side
        train(runs, at_once, lambda: time.monotonic() < deadline)
    return [run.result() for run in runs]


def _check(recipes: list[Recipe], wanted: int, images: Images) -> Precision:
    """Refuse recipes that these networks and images do not fit; return the precision.

    What decides on the arithmetic of a device is set for all runs together.
    """
    if len(recipes) != wanted:
        raise ConfigError(
            f"{wanted} models and {len(recipes)} recipes: pass one recipe for all, or "
            "one a model"
        )
    largest = max((how.batch_size for how in recipes), default=0)
    if len(images.labels) < largest:
        raise ConfigError(
            f"{len(images.labels)} images do not fill a batch of {largest}: pass a "
            "smaller batch_size"
        )
    found: set[Precision] = {how.precision for how in recipes} or {"float32"}
    if len(found) > 1:
        raise ConfigError(
            f"recipes of precisions {', '.join(sorted(found))} were given: train those "
            "of one precision at a time"
        )
    if not images.inputs.is_cuda and found != {"float32"}:
        raise ConfigError(
            f"precision {min(found)!r} was asked for on {images.inputs.device}: it "
            "wants CUDA; pass 'float32'"
        )
    return found.pop()


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
