"""Measure the collapse of trained classifiers, and their test errors over time."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import ClassifierBlueprint, ConfigError, Row, Rows, named_rows

from ..shared.rows import known
from ..shared.split_classes import SplitClasses, flipped, split_classes
from .config import FLIPPED, GIVEN, Config, Run, runs

if TYPE_CHECKING:
    from theodolite.networks import ClassifierNetwork
    from theodolite.training import TrainedClassifier

GOOD = 1.1  # times the least error of the worse
FEW = 20  # samples of a class whose labels a solved head fits


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
    (rows,) = measure_cells(config, [cell])
    return rows


def measure_cells(config: Config, cells: Sequence[Mapping[str, Any]]) -> list[Rows]:
    """Return the rows of each cell; several are trained in one stack.

    Several cells differ in their trial alone, and trials share their samples.
    """
    first = cells[0]
    if len(cells) > 1 and not config.shared:
        raise ConfigError(
            "trials have samples of their own: train one cell at a time, or pass "
            "shared=True"
        )
    (task,) = [task for task in config.tasks if len(task) == first["classes"]]
    trial = 0 if config.shared else first["trial"]
    split = split_classes(
        config.dataset,
        task,
        each=config.each(task),
        coarse=config.coarse,
        trial=trial,
        held=config.held,
    )
    labels = split.labels
    if first["labels"] == FLIPPED:
        labels = flipped(labels, config.wrong, trial=trial)
    trained = _trained(config, cells, split, labels)
    return [
        _read(config, cell, split, networks)
        for cell, networks in zip(cells, trained, strict=True)
    ]


def _read(
    config: Config,
    cell: Mapping[str, Any],
    split: SplitClasses,
    trained: "Mapping[Run, TrainedClassifier]",
) -> Rows:
    """Return the rows of one cell."""
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
    if cell["labels"] == GIVEN:
        rows += _collapse(config, cell, split, trained)
    return Rows({**cell, **row} for row in rows)


def plan_of(config: Config, split: SplitClasses) -> ClassifierBlueprint:
    """Return the shape of the networks."""
    return ClassifierBlueprint(
        inputs=split.inputs.shape[1:], width=config.width, outputs=split.classes
    )


def _trained(
    config: Config,
    cells: Sequence[Mapping[str, Any]],
    split: SplitClasses,
    labels: np.ndarray,
) -> "list[dict[Run, TrainedClassifier]]":
    from theodolite.training import (
        ClassifierRecipe,
        LabelledSamples,
        log_epochs,
        train_classifiers,
    )

    each = runs(config, dict(cells[0]))
    wanted = each * len(cells)
    plan = plan_of(config, split)
    compared = cells[0]["classes"] == config.compared
    networks = train_classifiers(
        [plan.with_(start_norm=start) for _, _, start, _ in wanted],
        LabelledSamples(split.inputs, labels, split.test_inputs, split.test_labels),
        recipe=[
            ClassifierRecipe(
                epochs=config.epochs,
                batch_size=config.batch_size,
                rate=rate,
                weight_decay=decay,
                loss=loss,
            )
            for loss, decay, _, rate in wanted
        ],
        seeds=[cell["trial"] for cell in cells for _ in each],
        record_epochs=log_epochs(config.epochs, 18) if compared else (config.epochs,),
        at_once=AT_ONCE if config.device == "cpu" else None,
        device=config.device,
    )
    return [
        dict(zip(each, networks[k : k + len(each)], strict=True))
        for k in range(0, len(wanted), len(each))
    ]


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
    """Return NC1 to NC4 before and after training, and with a head solved for."""
    import torch

    from theodolite.networks import build

    plan = plan_of(config, split)
    before = build(plan, seed=cell["trial"], device=config.device)
    batch = (
        torch.tensor(split.inputs, dtype=before.head.weight.dtype).to(config.device),
        torch.tensor(split.labels, device=config.device),
    )
    rows = _properties(before, batch, "batch", stage="untrained")
    rows += _solved(split, cell["trial"])
    for run, network in trained.items():
        if network.status == "diverged":
            rows += [_row(name, run, math.nan, 0.0, stage="end") for name in PROPERTIES]
            continue
        labels = _labels(run)
        module = network.network().to(config.device)
        new = _properties(module, batch, "eval", stage="end", **labels)
        rows += new
    return rows


def _solved(split: SplitClasses, trial: int) -> list[Row]:
    """Return loss and collapse of an untrained network whose head is solved for.

    It has more units than samples, so that the head fits every label.
    """
    import torch

    from theodolite.networks import build

    chosen = np.concatenate(
        [np.flatnonzero(split.labels == c)[:FEW] for c in range(split.classes)]
    )
    plan = ClassifierBlueprint(
        inputs=split.inputs.shape[1:], width=2 * len(chosen), outputs=split.classes
    )
    network = build(plan, seed=trial).double()
    images = torch.tensor(split.inputs[chosen], dtype=torch.float64)
    labels = torch.tensor(split.labels[chosen])
    features: list[torch.Tensor] = []
    hook = network.head.register_forward_pre_hook(
        lambda _, inputs: features.append(inputs[0].detach().flatten(1))
    )
    wanted = torch.nn.functional.one_hot(labels, split.classes).double()
    network.train()
    with torch.no_grad():
        network(images)
        head = torch.linalg.lstsq(features[0], wanted, driver="gelsd").solution.T
        network.head.weight.copy_(head.reshape(network.head.weight.shape))
        loss = float(((network(images) - wanted) ** 2).mean())
    hook.remove()
    rows = _properties(network, (images, labels), "batch", stage="solved")
    return [*rows, {"quantity": "loss", "stage": "solved", "value": loss, "error": 0.0}]


def _properties(
    network: "ClassifierNetwork", batch: Any, norm_mode: str, **labels: Any
) -> list[Row]:
    """Return the numbers of a network whose head's rows are centred, as means are.

    No decision changes: the same is taken off every output. How far the head as it is
    lies from the means follows from its angle with the centred one.
    """
    import torch

    from theodolite import instruments

    weight = network.head.weight
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
    return dict(zip(("loss", "decay", "start", "rate"), run, strict=True))
