"""Train networks and read their curvature in two to six ways at some moments."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite import instruments, networks, training
from theodolite.core import Cell, NormMode, Row, Rows, RunError, derive, stream
from theodolite_papers.macdonald2023skip.shared.image_training import images_of

from .config import (
    BATCHES,
    DESCENT,
    FROZEN,
    FROZEN_BATCHES,
    RUNNING,
    TOGETHER,
    WHOLE,
    Config,
)

if TYPE_CHECKING:
    import torch
    from torch import nn

    Pair = tuple[torch.Tensor, torch.Tensor]

# Networks whose weights at all moments one process caches, some MB each.
_KEPT = 16


def measure(config: Config, cell: Cell) -> Rows:
    """Read a network at its moments; train it first unless its weights are cached."""
    rule, trial = cell["rule"], cell["trial"]
    course = trained(config, rule, trial)
    rows: list[Row] = []
    for moment in [cell["moment"]] if "moment" in cell else config.moments_of(rule):
        state = course.states.get(steps_of(config, rule, moment))
        if state is None or not all(bool(t.isfinite().all()) for t in state.values()):
            continue  # it had diverged
        model = model_of(config, state)
        here = {"moment": moment, "status": course.status}
        rows += [{**here, **row} for row in readings(config, cell, moment, model)]
    return Rows(rows)


@dataclass(frozen=True)
class Course:
    """A network's weights by number of updates, and the status of its training."""

    states: dict[int, dict[str, Any]]
    status: str


@lru_cache(maxsize=_KEPT)
def trained(config: Config, rule: str, trial: int) -> Course:
    """Train one network and keep its weights at the moments of its rule."""
    _check_gpu_memory(config, rule)
    seed = derive(trial, f"whole-set curvature, {rule}")
    images = images_of(config.dataset, config.samples_of(rule), config.device)
    states: list[dict[str, Any]] = []
    steps = {steps_of(config, rule, moment) for moment in config.moments_of(rule)}

    def keep(model: "nn.Module") -> dict[str, float]:
        states.append(deepcopy(model.state_dict()))
        return {}

    (run,) = training.train_many(
        [partial(networks.build, config.plan, seed=seed, dtype=_precision(config))],
        images,
        recipe=recipe_of(config, rule, len(images.labels)),
        seeds=[seed],
        probe=keep,
        probe_steps=steps,
    )
    if run.status == "failed" or run.retired:
        raise RunError(
            f"the network of {rule}, trial {trial}, could not be trained ({run.error}"
            f"{run.retired.get('probe', '')}): check the device's memory, or pass "
            "--device cpu"
        )
    return Course(dict(zip(sorted(steps), states, strict=False)), run.status)


def _check_gpu_memory(config: Config, rule: str) -> None:
    """Raise before training if the whole set does not fit into GPU memory.

    The memory that a reading needs does not depend on the weights.
    """
    if _on_gpu(config):
        model = model_of(config, networks.build(config.plan, seed=0).state_dict())
        _operator(config, model, samples_of(config, rule), "full").close()


def recipe_of(config: Config, rule: str, count: int) -> "training.Recipe":
    """Return the training recipe of a rule: a constant rate and no weight decay."""
    descent = rule == DESCENT
    epochs = config.steps if descent else config.epochs
    return training.Recipe(
        epochs=epochs,
        batch_size=count if descent else config.batch_size,
        rate=config.descent_rate if descent else config.rate,
        momentum=0.0 if descent else config.momentum,
        weight_decay=0.0,
        nesterov=False,
        milestones=(),
        precision=config.precision if _on_gpu(config) else "float32",
        test_every=epochs,
    )


def steps_of(config: Config, rule: str, moment: float) -> int:
    """Return the number of updates made at a moment."""
    if rule == DESCENT:
        return round(moment * config.steps)
    count = len(images_of(config.dataset, config.samples, config.device).labels)
    return round(moment * config.epochs * (count // config.batch_size))


def model_of(config: Config, state: Mapping[str, Any]) -> "nn.Module":
    """Return the network with given weights, in the precision of the readings."""
    model = networks.build(config.plan, seed=0, device=config.device)
    model.load_state_dict(state)
    model.to(_precision(config))
    return model.to(memory_format=_layout(config))  # pyright: ignore


def readings(
    config: Config, cell: Cell, moment: float, model: "nn.Module"
) -> list[Row]:
    """Return the largest eigenvalue in every reading that a moment has.

    Readings of all batches together, and with constant statistics, are only made for
    full-batch descent, whose whole set is smaller.
    """
    rule, trial = cell["rule"], cell["trial"]
    data = samples_of(config, rule)
    parts = partition_of(config, data, trial=trial)
    single = parts[: config.read_batches]
    meter = _Meter(config, derive(trial, "directions"))
    rows = [
        meter.over(BATCHES, model, single, "batch"),
        meter.of(WHOLE, model, data, "full"),
    ]
    if moment in config.corners:
        rows.append(meter.of(RUNNING, model, data, "eval"))
    if moment in config.corners and rule == DESCENT:
        rows.append(meter.of(TOGETHER, model, parts, "batch"))
        with instruments.preserve(model):
            # From here on running statistics are those of the whole set.
            instruments.apply_norm_mode(model, NormMode.FROZEN, lambda: model(data[0]))
            rows.append(meter.of(FROZEN, model, data, "eval"))
            rows.append(meter.over(FROZEN_BATCHES, model, single, "eval"))
    return rows


class _Meter:
    """Reads largest eigenvalues; measures the rounding error once, on one batch."""

    def __init__(self, config: Config, seed: int) -> None:
        self._config, self._seed = config, seed
        self._rounding: float | None = None

    def of(self, reading: str, model: "nn.Module", data: Any, mode: str) -> Row:
        """Return the row of the largest eigenvalue over all of some data."""
        return _row(reading, mode, [self._top(model, data, mode)])

    def over(
        self, reading: str, model: "nn.Module", batches: "Sequence[Pair]", mode: str
    ) -> Row:
        """Return the row of the mean of the largest eigenvalues of batches."""
        return _row(reading, mode, [self._top(model, one, mode) for one in batches])

    def _top(self, model: "nn.Module", data: Any, mode: str) -> Any:
        with (
            _arithmetic(self._config),
            _operator(self._config, model, data, mode) as operator,
        ):
            reading = instruments.extreme_eigenvalues(
                operator,
                ends="largest",
                stop="value",
                tol=self._config.tol,
                max_matvecs=self._config.products,
                method="products",
                seed=self._seed,
                graph_error=self._rounding,
            )
        if self._rounding is None:
            self._rounding = reading.graph_error
        return reading


def _operator(
    config: Config, model: "nn.Module", data: Any, mode: str
) -> "instruments.Hessian":
    """Return the Hessian over some data, in chunks if the data are large."""
    from torch.nn import CrossEntropyLoss

    wide = isinstance(data, tuple) and len(data[1]) > config.one_graph
    return instruments.Hessian(
        model,
        data,
        loss=CrossEntropyLoss(),
        norm_mode=mode,
        micro_batch=config.chunk if wide and config.chunk else None,
    )


def _row(reading: str, mode: str, all_read: Sequence[Any]) -> Row:
    """Return the mean of readings; its error is the mean of their error bounds."""
    return {
        "quantity": "sharpness",
        "reading": reading,
        "value": float(np.mean([one.eigenvalues[0] for one in all_read])),
        "error": float(np.mean([one.sharp_errors[0] for one in all_read])),
        "residual": float(np.max([one.residuals[0] for one in all_read])),
        "batches": len(all_read),
        "norm_mode": "frozen" if reading in (FROZEN, FROZEN_BATCHES) else mode,
        "products": int(sum(one.cost.passes for one in all_read)),
    }


def samples_of(config: Config, rule: str) -> "Pair":
    """Return the whole set of a rule as the network sees it."""
    images = images_of(config.dataset, config.samples_of(rule), config.device)
    centre, scale = (t.reshape(1, -1, 1, 1) for t in (images.centre, images.scale))
    inputs = (images.inputs.float() - centre) / scale
    inputs = inputs.to(_precision(config), memory_format=_layout(config))
    return inputs, images.labels


def _precision(config: Config) -> "torch.dtype":
    import torch

    return torch.float64 if config.double else torch.float32


def _layout(config: Config) -> Any:
    """Return the memory format of images: channels last on a GPU.

    On an H200 a product of 5,000 images then takes three fifths of the time. Chunks of
    2,500 are worse: cuDNN then chooses an algorithm that launches 2,000 kernels.
    """
    import torch

    return torch.channels_last if _on_gpu(config) else torch.preserve_format


def _on_gpu(config: Config) -> bool:
    return config.device.startswith("cuda")


@contextmanager
def _arithmetic(config: Config) -> Iterator[None]:
    """Let convolutions use TF32 inside this context, if the config says so."""
    from torch.backends import cudnn

    before = cudnn.allow_tf32
    cudnn.allow_tf32 = config.coarse
    try:
        yield
    finally:
        cudnn.allow_tf32 = before


def partition_of(config: Config, data: "Pair", *, trial: int) -> "list[Pair]":
    """Return the set cut into random batches; an incomplete last batch is dropped."""
    import torch

    inputs, labels = data
    drawn = stream(derive(trial, "partition")).permutation(len(labels))
    full = len(labels) // config.batch_size * config.batch_size
    order = torch.as_tensor(drawn[:full]).to(labels.device)
    # Indexing keeps the memory format of the images.
    return [(inputs[part], labels[part]) for part in order.split(config.batch_size)]
