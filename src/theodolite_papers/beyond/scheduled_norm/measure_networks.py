"""Train networks of four layers, with decay or on spheres, and read their ends."""

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from theodolite import data
from theodolite.core import Cell, MeasurementError, stream
from theodolite.instruments import classifier_norms
from theodolite.training import ConstantNorm, LogisticNorm, SphereSGD, sphere_groups

from .config import (
    BATCH,
    BATCH_NORMED,
    COURSE,
    GROWTH,
    LAYERS,
    MOMENTUM,
    PAIR,
    TASKS,
    Config,
)

Part = tuple[Tensor, Tensor]  # inputs and targets


@dataclass(frozen=True, kw_only=True)
class Split:
    """Samples for training, for the choice of settings, and held out for the test."""

    train: Part
    choose: Part
    held: Part


@dataclass(frozen=True, kw_only=True, eq=False)
class End:
    """Readings of a network at the end of its training."""

    numbers: dict[str, float]  # by quantity
    errors: dict[str, float]  # of those that are not counts
    decisions: np.ndarray  # class of each held-out sample
    course: list[float]  # norm over its end at parts of the training time


@lru_cache(maxsize=4)
def _pool(name: str, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all samples of a dataset, as unit vectors, and targets."""
    pool = data.load(name, "train")
    if classes == 2:
        pool = data.two_classes(pool, *PAIR)
    images = pool.images.astype(np.float64)
    if name != "digits":  # 28 x 28 pixels are averaged to 14 x 14
        images = images.reshape(len(images), 14, 2, 14, 2).mean(axis=(2, 4))
    inputs = data.unit_norm(images.reshape(len(images), -1))
    if classes == 2:
        return inputs, pool.signs()[:, None]
    return inputs, data.one_hot(pool.labels, classes)


def split_of(task: str, trial: int, seed: int) -> Split:
    """Draw a split of a task's samples, the same for all methods."""
    name, classes, samples = TASKS[task]
    inputs, targets = _pool(name, classes)
    order = stream(seed, "scheduled norm", task, trial).permutation(len(inputs))

    def part(chosen: np.ndarray) -> Part:
        x, y = (torch.tensor(t[chosen], dtype=torch.float32) for t in (inputs, targets))
        return x, y

    train, choose, held = map(part, np.split(order, [samples, 2 * samples]))
    return Split(train=train, choose=choose, held=held)


def trained(
    config: Config, cell: Cell, split: Split, setting: tuple[float, float], start: float
) -> End:
    """Train one network and read it."""
    method, trial = cell["method"], cell["trial"]
    draw = stream(config.seed, "scheduled norm", cell["task"], trial, f"{start}")
    model = _network(config, split, method, draw, start)
    optim = _optimizer(config, method, model, setting)
    course = _descend(config, model, optim, split.train, draw)
    end = setting[1] if method == "grown" else 1.0
    return _read(model, split, [norm / end for norm in course])


def _network(
    config: Config, split: Split, method: str, draw: np.random.Generator, norm: float
) -> nn.Sequential:
    sizes = [split.train[0].shape[1], *(config.width,) * (LAYERS - 1)]
    sizes.append(split.train[1].shape[1])
    modules: list[nn.Module] = []
    for place, (a, b) in enumerate(itertools.pairwise(sizes)):
        layer = nn.Linear(a, b, bias=False)
        weight = draw.normal(size=(b, a))
        weight *= norm / np.linalg.norm(weight)
        layer.weight = nn.Parameter(torch.tensor(weight, dtype=torch.float32))
        modules.append(layer)
        if place < LAYERS - 1:
            if method in BATCH_NORMED:
                # One pass over all training samples sets the running statistics.
                modules.append(nn.BatchNorm1d(b, affine=False, momentum=1.0))
            modules.append(nn.ReLU())
    return nn.Sequential(*modules)


def _optimizer(
    config: Config, method: str, model: nn.Module, setting: tuple[float, float]
) -> torch.optim.Optimizer:
    rate, knob = setting
    if method == "decay":
        return torch.optim.SGD(
            model.parameters(), lr=rate, momentum=MOMENTUM, weight_decay=knob
        )
    rho = ConstantNorm(rho=knob)
    if method != "held":
        rho = LogisticNorm(start=knob / GROWTH, end=knob, steps=config.steps / 2)
    free = [name for name, _ in model.named_parameters()][:-1]
    groups = sphere_groups(
        model, rho=rho, invariant=free if method in BATCH_NORMED else ()
    )
    for _, parameter in groups[1]["params"] if len(groups) > 1 else ():
        # Rows get norm one: before a batch norm their scale has no effect, except
        # through epsilon.
        with torch.no_grad():
            parameter.mul_(len(parameter) ** 0.5 / parameter.norm())
    return SphereSGD(groups, lr=rate, momentum=MOMENTUM)


def _descend(
    config: Config,
    model: nn.Module,
    optim: torch.optim.Optimizer,
    part: Part,
    draw: np.random.Generator,
) -> list[float]:
    """Train by mini-batches in a new order each epoch; return norms during training."""
    x, y = part
    looks = {round(share * config.steps) for share in COURSE}
    course: list[float] = []
    order = torch.zeros(0, dtype=torch.int64)
    for step in range(config.steps + 1):
        if step in looks:
            norm = optim.norms()[0] if isinstance(optim, SphereSGD) else None
            course.append(float("nan") if norm is None else norm)
        if step == config.steps:
            break
        if len(order) < BATCH:
            order = torch.as_tensor(draw.permutation(len(x)))
        chosen, order = order[:BATCH], order[BATCH:]
        optim.zero_grad()
        (model(x[chosen]) - y[chosen]).square().sum(1).mean().backward()
        try:
            optim.step()
        except MeasurementError:  # a gradient that is not finite: it stays so
            course += [float("nan")] * (len(looks) - len(course))
            break
    return course


def _read(model: nn.Sequential, split: Split, course: list[float]) -> End:
    x, y = split.train
    with torch.no_grad():
        model.train()
        model(x)
        model.eval()
        outputs = {name: model(part[0]) for name, part in vars(split).items()}
    wrong = {
        name: _decided(outputs[name]) != _decided(part[1])
        for name, part in vars(split).items()
    }
    lost = not all(bool(part.isfinite().all()) for part in outputs.values())
    losses = {
        name: float((outputs[name] - part[1]).square().sum(1).mean())
        for name, part in vars(split).items()
    }
    share = {k: 1.0 if lost else float(np.mean(wrong[k])) for k in wrong}
    numbers = {
        "held_error": share["held"],
        "choice_error": share["choose"],
        "choice_loss": losses["choose"],
        "train_error": share["train"],
        "train_loss": losses["train"],
        **dict.fromkeys(("rho", "mean_margin", "least_margin"), float("nan")),
    }
    errors = {name: 1e-6 * abs(numbers[name]) for name in ("choice_loss", "train_loss")}
    if not lost:
        reading = classifier_norms(
            model, (x, torch.as_tensor(_decided(y))), norm_mode="eval", scales=False
        )
        numbers["rho"], errors["rho"] = reading.rho, reading.rho_error
        for name in ("mean_margin", "least_margin"):
            numbers[name], errors[name] = getattr(reading, name), reading.f_error
    decisions = _decided(outputs["held"])
    return End(numbers=numbers, errors=errors, decisions=decisions, course=course)


def _decided(outputs: Tensor) -> np.ndarray:
    if outputs.shape[1] == 1:
        return (outputs[:, 0] > 0).long().numpy()
    return outputs.argmax(1).numpy()
