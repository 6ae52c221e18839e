"""Train classifiers at every decay, start and noise, and read them at some epochs."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import ClassifierBlueprint, ConfigError, Row, Rows

from ..shared.rows import known, rank_correlation
from ..shared.split_classes import split_classes
from .config import FITTED, LARGE_START, LEARNT, LEVELS, Config, runs

if TYPE_CHECKING:
    from theodolite.training import ClassifierRecord, TrainedClassifier


def memory(ends: Mapping[float, float]) -> float:
    """Return the power of the initial norm by which the final value grows.

    Example:
        >>> round(memory({0.1: 1.0, 1.0: 10.0, 10.0: 100.0}), 12)
        1.0
    """
    starts, last = (np.log10(list(part)) for part in (ends, ends.values()))
    if not np.isfinite(last).all():
        return math.nan
    return float(np.polyfit(starts, last, 1)[0])


def threshold(memories: Mapping[float, float], level: float) -> tuple[float, bool]:
    """Return the decay at which memory falls to a share of that without decay.

    The logarithm of the decay is interpolated between the decays that were tried.

    Args:
        memories: Memory by decay, 0 among them.
        level: The share.

    Returns:
        The decay, and whether it lies on the edge of what was tried.

    Example:
        >>> decay, edge = threshold({0: 2.0, 0.01: 1.5, 0.1: 0.5, 1.0: 0.0}, 0.5)
        >>> round(decay, 4), edge
        (0.0316, False)
    """
    wanted = level * memories[0]
    decays = sorted(decay for decay in memories if decay > 0)
    if any(math.isnan(value) for value in memories.values()):
        return math.nan, False
    if not memories[decays[0]] > wanted:
        return decays[0], True
    for low, high in pairwise(decays):
        above, below = memories[low], memories[high]
        if below <= wanted:
            share = (above - wanted) / (above - below)
            return low * (high / low) ** share, False
    return decays[-1], True


EPS = 1e-4  # of networks in single precision, relative
AT_ONCE = 15  # runs per stack on the CPU; the networks are small
COUNTED = ("test_error", "train_error")
READINGS = ("product", "last")
BY_NORM = ("norm", "mean_margin", "least_margin")
NUMBERS = (
    *(f"{name}/{reading}" for name in BY_NORM for reading in READINGS),
    *COUNTED,
    "train_loss",
    "norm_times_margin",
)
Run = tuple[float, float, float]  # decay, start, noise


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train the networks of a trial and compare their ends."""
    (rows,) = measure_trials(config, (cell["trial"],))
    return rows


def measure_trials(config: Config, trials: Sequence[int]) -> list[Rows]:
    """Return the rows of each trial; several are trained in one stack.

    Several trials need the same samples: ``each`` is 0.
    """
    trained = _trained(config, trials)
    return [
        _compared(config, trial, {run: trained[trial, run] for run in runs(config)})
        for trial in trials
    ]


def _compared(
    config: Config, trial: int, trained: "Mapping[Run, TrainedClassifier]"
) -> Rows:
    """Return the rows of one trial."""
    ends = {
        (run, length): _end(network, length)
        for run, network in trained.items()
        for length in config.lengths
    }
    rows = [
        *_ends(config, ends),
        *_spreads(trained),
        *_ranks(config, trained),
        *_memories(config, ends),
        *_curves(config, trained),
    ]
    numbers = ("value", "error")
    return Rows(
        {**row, **{name: known(row[name]) for name in numbers}, "trial": trial}
        for row in rows
    )


def _trained(
    config: Config, trials: Sequence[int]
) -> "dict[tuple[int, Run], TrainedClassifier]":
    from theodolite.training import ClassifierRecipe, LabelledSamples, train_classifiers

    split = split_classes(
        config.dataset,
        config.classes,
        each=config.each,
        coarse=config.coarse,
        trial=trials[0],
    )
    if config.each and len(trials) > 1:
        raise ConfigError(
            f"each is {config.each}, so that trials have samples of their own: train "
            "one trial at a time, or pass each=0"
        )
    samples = LabelledSamples(
        split.inputs,
        2.0 * split.labels - 1,
        split.test_inputs,
        2.0 * split.test_labels - 1,
    )
    wanted = [(trial, run) for trial in trials for run in runs(config)]
    plan = ClassifierBlueprint(inputs=split.inputs.shape[1:], width=config.width)
    networks = train_classifiers(
        [plan.with_(start_norm=start) for _, (_, start, _) in wanted],
        samples,
        recipe=[
            ClassifierRecipe(
                epochs=config.epochs,
                batch_size=config.batch_size,
                rate=config.rate,
                weight_decay=decay,
                label_noise=noise,
            )
            for _, (decay, _, noise) in wanted
        ],
        seeds=[trial for trial, _ in wanted],
        record_epochs=config.epochs_seen,
        at_once=AT_ONCE if config.device == "cpu" else None,
        device=config.device,
    )
    return dict(zip(wanted, networks, strict=True))


def _end(network: "TrainedClassifier", length: int) -> dict[str, float]:
    """Return the results of a run stopped at a length, averaged over its last fifth.

    Norms keep swinging where decay balances the gradient, hence the average; that of
    norms is geometric. Those of a network that diverged are NaN.
    """
    tail = _tail(network, length)
    if network.status == "diverged" or not tail:
        return dict.fromkeys(NUMBERS, math.nan)
    return _averaged(tail)


def _tail(network: "TrainedClassifier", length: int) -> "list[ClassifierRecord]":
    return [r for r in network.records if 0.8 * length - 1 <= r.epoch <= length]


def _averaged(tail: "list[ClassifierRecord]") -> dict[str, float]:
    last = [float(record.layer_norms[-1]) for record in tail]
    product = [record.rho for record in tail]
    margins = [record.output_margins for record in tail]
    norms = {"product": product, "last": last}
    numbers = {
        f"norm/{name}": float(np.exp(np.mean(np.log(values))))
        for name, values in norms.items()
    }
    for name, values in norms.items():
        pairs = list(zip(margins, values, strict=True))
        numbers[f"mean_margin/{name}"] = float(
            np.mean([m.mean() / v for m, v in pairs])
        )
        numbers[f"least_margin/{name}"] = float(
            np.mean([m.min() / v for m, v in pairs])
        )
    for name in ("test_error", "train_error", "train_loss"):
        numbers[name] = float(np.mean([getattr(record, name) for record in tail]))
    numbers["norm_times_margin"] = float(np.mean([m.mean() for m in margins]))
    return numbers


def _ends(config: Config, ends: Mapping[Any, dict[str, float]]) -> list[Row]:
    """Return the ends of all trainings, and norms at shorter lengths."""
    rows: list[Row] = []
    for (run, length), numbers in ends.items():
        for name, value in numbers.items():
            quantity, _, reading = name.partition("/")
            if length < config.epochs and quantity != "norm":
                continue
            labels = {"reading": reading} if reading else {}
            rows.append(
                {"quantity": quantity, **labels, **_labels(run), "epoch": length,
                 "stage": _stage(config, length), "value": value,
                 "error": 0.0 if quantity in COUNTED else EPS * abs(value)}
            )  # fmt: skip
    return rows


def _spreads(trained: "Mapping[Run, TrainedClassifier]") -> list[Row]:
    """Return the relative spread of margins, after the first epoch and at the end."""
    rows: list[Row] = []
    for run, network in trained.items():
        for stage, records in (
            ("early", network.records[:1]),
            ("end", network.records[-3:]),
        ):
            outputs = [record.output_margins for record in records]
            # Early means may be of either sign: deviations over the root mean square.
            each = [m.std() / np.sqrt(np.mean(m**2)) for m in outputs]
            lost = network.status == "diverged" or not each
            value = math.nan if lost else float(np.mean(each))
            rows.append(
                {"quantity": "margin_spread", "stage": stage, **_labels(run),
                 "value": value, "error": EPS}
            )  # fmt: skip
    return rows


def _ranks(config: Config, trained: "Mapping[Run, TrainedClassifier]") -> list[Row]:
    """Return rank correlations of the norm with margins and errors on new samples.

    Runs that are dead do not count. Training near the largest stable rate amplifies
    rounding: the error is how far single readings of the last fifth are from their
    average.
    """
    # Of each run the average, then its readings one by one.
    ends = {
        run: [average, *(_averaged([r]) for r in _tail(network, config.epochs))]
        for run, network in trained.items()
        if not run[2]
        and (average := _end(network, config.epochs))["train_loss"] < LEARNT
    }
    groups = {
        "all": {r: e for r, e in ends.items() if e[0]["train_loss"] < FITTED},
        "decays": {r: e for r, e in ends.items() if r[1] == LARGE_START},
        "starts": {r: e for r, e in ends.items() if r[0] == 0},
    }
    rows: list[Row] = []
    for over, group in groups.items():
        for reading in READINGS:
            for of in ("mean_margin", "least_margin", "test_error"):
                key = of if of == "test_error" else f"{of}/{reading}"
                ranks = [
                    rank_correlation(
                        [numbers[f"norm/{reading}"] for numbers in at],
                        [numbers[key] for numbers in at],
                    )
                    for at in zip(*group.values(), strict=True)
                ] or [math.nan]
                away = max(abs(one - ranks[0]) for one in ranks)
                rows.append(
                    {"quantity": "rank", "of": of, "over": over, "reading": reading,
                     "runs": len(group), "value": ranks[0], "error": away}
                )  # fmt: skip
    return rows


def _memories(config: Config, trained: Mapping[Any, dict[str, float]]) -> list[Row]:
    """Return how final values depend on starts, and decays at which this falls."""
    wanted = runs(config)
    kinds = list(dict.fromkeys((decay, noise) for decay, _, noise in wanted))
    rows: list[Row] = []
    for length in config.lengths:
        for reading in READINGS:
            kept: dict[tuple[float, float], float] = {}
            for decay, noise in kinds:
                ends = {
                    start: trained[run, length][f"norm/{reading}"]
                    for run in wanted
                    for start in (run[1],)
                    if (run[0], run[2]) == (decay, noise)
                }
                value = memory(ends)
                kept[decay, noise] = value
                rows.append(
                    {"quantity": "memory", "reading": reading, "epoch": length,
                     "stage": _stage(config, length), "decay": decay,
                     "noise": noise, "value": value, "error": EPS}
                )  # fmt: skip
            quiet = {d: m for (d, n), m in kept.items() if not n}
            for level in LEVELS:
                value, edge = threshold(quiet, level)
                rows.append(
                    {"quantity": "threshold", "level": level, "reading": reading,
                     "epoch": length, "value": value, "error": EPS * value,
                     "edge": edge}
                )  # fmt: skip
    return rows


def _curves(config: Config, trained: "Mapping[Run, TrainedClassifier]") -> list[Row]:
    """Return losses, errors, three readings of the norm and mean margins by epoch."""
    rows: list[Row] = []
    for run, network in trained.items():
        for record in network.records:
            if record.epoch not in config.curve_epochs:
                continue
            numbers: dict[tuple[str, str], float] = {
                ("norm_at", "product"): record.rho,
                ("norm_at", "folded"): record.folded_rho,
                ("norm_at", "last"): float(record.layer_norms[-1]),
                ("train_loss_at", ""): record.train_loss,
                ("test_error_at", ""): record.test_error,
                ("output_margin_at", ""): float(record.output_margins.mean()),
            }
            for (quantity, reading), value in numbers.items():
                labels = {"reading": reading} if reading else {}
                error = 0.0 if quantity == "test_error_at" else EPS * abs(value)
                rows.append(
                    {"quantity": quantity, **labels, **_labels(run),
                     "epoch": record.epoch, "value": value, "error": error}
                )  # fmt: skip
    return rows


def _stage(config: Config, length: int) -> str:
    return "end" if length == config.epochs else "shorter"


def _labels(run: Run) -> dict[str, float]:
    return dict(zip(("decay", "start", "noise"), run, strict=True))
