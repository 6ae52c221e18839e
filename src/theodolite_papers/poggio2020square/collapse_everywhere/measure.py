"""Measure the collapse of trained classifiers, and their test errors over time."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import ClassifierBlueprint, Row, Rows, named_rows

from ..shared.rows import known, rank_correlation
from ..shared.split_classes import SplitClasses, flipped, split_classes
from .config import FLIPPED, Config, Run, runs

if TYPE_CHECKING:
    from theodolite.networks import ClassifierNetwork
    from theodolite.training import TrainedClassifier

GOOD = 1.1  # times the least error of the worse


def stopping_gain(first: Sequence[float], second: Sequence[float]) -> float:
    """Return how much lower a run's error is at its best epoch than at its end.

    When to stop is chosen on one half of the samples and the gain read on the other,
    both ways round, so that chance gains nothing. Errors are in order of time.

    Example:
        >>> stopping_gain([0.5, 0.1, 0.3], [0.6, 0.2, 0.3])
        0.15
    """
    gains = [
        there[-1] - there[int(np.argmin(here))]
        for here, there in ((first, second), (second, first))
    ]
    return round(float(np.mean(gains)), 12)


def sooner(one: Mapping[int, float], other: Mapping[int, float]) -> tuple[float, float]:
    """Return by how many decades one training reaches a good error before another.

    Errors are by epoch. An error is good within a tenth of the least error of the worse
    run, so that both runs reach it and chance matters less. The error of the result is
    the gap between the epochs that were read.

    Example:
        >>> decades, error = sooner({1: 0.5, 10: 0.2}, {1: 0.5, 10: 0.4, 100: 0.2})
        >>> round(decades, 3), round(error, 3)
        (1.0, 2.0)
    """
    good = GOOD * max(min(one.values()), min(other.values()))
    times, late = zip(*(_first(errors, good) for errors in (one, other)), strict=True)
    return math.log10(times[1] / times[0]), sum(late)


def _first(errors: Mapping[int, float], good: float) -> tuple[float, float]:
    """Return the first epoch that is good, and how late it may be, in decades."""
    epochs = sorted(errors)
    place = next(i for i, epoch in enumerate(epochs) if errors[epoch] <= good)
    time = max(epochs[place], 1)
    before = max(epochs[place - 1], 1) if place else time
    return float(time), math.log10(time / before)


EPS = 1e-4  # of networks in single precision, relative
AT_ONCE = 12  # runs per stack on the CPU; the networks are small
# Numbers of a collapse, under the names of the four properties.
PROPERTIES = {
    "nc1": "nc1_variability",
    "nc2": "nc2_mean_simplex",
    "nc3": "nc3_duality",
    "nc4": "nc4_disagreement",
}


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train the networks of a cell and read them at the end."""
    (task,) = [task for task in config.tasks if len(task) == cell["classes"]]
    trial = cell["trial"]
    split = split_classes(
        config.dataset,
        task,
        each=config.each(task),
        coarse=config.coarse,
        trial=trial,
        held=config.held,
    )
    labels = split.labels
    if cell["labels"] == FLIPPED:
        labels = flipped(labels, config.wrong, trial=trial)
    trained = _trained(config, cell, split, labels)
    rows = _ends(trained)
    rows += [
        _row("test_error", run, record.test_error, 0.0, epoch=record.epoch)
        for run, network in trained.items()
        for record in network.records
    ]
    if cell["classes"] == config.compared:
        for run, network in trained.items():
            rows.append(_row("stopping_gain", run, _gain(network), 0.0))
            other = trained.get(("cross_entropy", *run[1:]))
            if run[0] == "square" and other is not None:
                rows.append(_row("sooner", run, *_sooner(network, other)))
    if cell["labels"] != FLIPPED:
        rows += _collapse(config, cell, split, trained)
    return Rows({**cell, **row} for row in rows)


def plan_of(config: Config, split: SplitClasses) -> ClassifierBlueprint:
    """Return the shape of the networks."""
    return ClassifierBlueprint(
        inputs=split.inputs.shape[1:], width=config.width, outputs=split.classes
    )


def _trained(
    config: Config, cell: Mapping[str, Any], split: SplitClasses, labels: np.ndarray
) -> "dict[Run, TrainedClassifier]":
    from theodolite.training import (
        ClassifierRecipe,
        LabelledSamples,
        log_epochs,
        train_classifiers,
    )

    wanted = runs(config, dict(cell))
    plan = plan_of(config, split)
    compared = cell["classes"] == config.compared
    networks = train_classifiers(
        [plan.with_(start_norm=start) for _, _, start in wanted],
        LabelledSamples(split.inputs, labels, split.test_inputs, split.test_labels),
        recipe=[
            ClassifierRecipe(
                epochs=config.epochs,
                batch_size=config.batch_size,
                rate=config.rate,
                weight_decay=decay,
                loss=loss,
            )
            for loss, decay, _ in wanted
        ],
        seeds=[cell["trial"]] * len(wanted),
        record_epochs=log_epochs(config.epochs, 18) if compared else (config.epochs,),
        at_once=AT_ONCE if config.device == "cpu" else None,
        device=config.device,
    )
    return dict(zip(wanted, networks, strict=True))


def _ends(trained: "Mapping[Run, TrainedClassifier]") -> list[Row]:
    """Return norms, losses and errors at the end; runs that diverged have none."""
    rows: list[Row] = []
    for run, network in trained.items():
        rho = last = loss = error = math.nan
        if network.status != "diverged":
            end = network.last
            rho, last = end.rho, float(end.layer_norms[-1])
            loss, error = end.train_loss, end.train_error
        rows += [
            _row("norm", run, rho, EPS * rho, reading="product"),
            _row("norm", run, last, EPS * last, reading="last"),
            _row("train_loss", run, loss, EPS * loss),
            _row("train_error", run, error, 0.0),
        ]
    return rows


def _gain(network: "TrainedClassifier") -> float:
    if network.status == "diverged":
        return math.nan
    wrong = [record.test_wrong for record in network.records]
    even, odd = ([float(w[place::2].mean()) for w in wrong] for place in (0, 1))
    return stopping_gain(even, odd)


def _sooner(*networks: "TrainedClassifier") -> tuple[float, float]:
    if any(network.status == "diverged" for network in networks):
        return math.nan, 0.0
    one, other = (
        {record.epoch: record.test_error for record in network.records}
        for network in networks
    )
    return sooner(one, other)


def _collapse(
    config: Config,
    cell: Mapping[str, Any],
    split: SplitClasses,
    trained: "Mapping[Run, TrainedClassifier]",
) -> list[Row]:
    """Return NC1 to NC4 before and after training, and NC1's rank correlation."""
    from theodolite.networks import build

    plan = plan_of(config, split)
    before = build(plan, seed=cell["trial"], device=config.device)
    rows = _properties(before, split, "batch", stage="untrained")
    variability: dict[Run, float] = {}
    for run, network in trained.items():
        if network.status == "diverged":
            rows += [_row(name, run, math.nan, 0.0, stage="end") for name in PROPERTIES]
            continue
        labels = _labels(run)
        new = _properties(network.network(), split, "eval", stage="end", **labels)
        rows += new
        if run[0] == "square":
            variability[run] = Rows(new).value(quantity="nc1")
    norms = [trained[run].last.rho for run in variability]
    value = known(rank_correlation(norms, list(variability.values())))
    return [
        *rows,
        {"quantity": "rank", "of": "nc1", "runs": len(variability), "value": value,
         "error": 0.0},
    ]  # fmt: skip


def _properties(
    network: "ClassifierNetwork", split: SplitClasses, norm_mode: str, **labels: Any
) -> list[Row]:
    """Return the numbers of a network whose head's rows are centred, as means are.

    No decision changes: the same is taken off every output. How far the head as it is
    lies from the means follows from its angle with the centred one.
    """
    import torch

    from theodolite import instruments

    weight = network.head.weight
    batch = (
        torch.tensor(split.inputs, dtype=weight.dtype, device=weight.device),
        torch.tensor(split.labels, device=weight.device),
    )
    with torch.no_grad():
        whole = float(weight.double().norm())
        weight -= weight.mean(dim=0)
        kept = float(weight.double().norm()) / whole
    reading = instruments.collapse(network, batch, norm_mode=norm_mode)
    numbers = {
        name: (getattr(reading, field), getattr(reading, reading.error_of[field]))
        for name, field in PROPERTIES.items()
    }
    # Means are centred, so only the centred part of the head has an angle with them.
    away, error = numbers["nc3"]
    numbers["raw_duality"] = 2 - kept * (2 - away), error + EPS
    return named_rows(numbers, norm_mode=str(reading.norm_mode), **labels)  # fmt: skip


def _row(quantity: str, run: Run, value: float, error: float, **more: Any) -> Row:
    return {
        "quantity": quantity,
        **_labels(run),
        **more,
        "value": known(float(value)),
        "error": 0.0 if math.isnan(value) else float(error),
    }


def _labels(run: Run) -> dict[str, Any]:
    return dict(zip(("loss", "decay", "start"), run, strict=True))
