"""Train the classifiers of all conditions and read them."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite import data
from theodolite.core import Row, Rows, derive

from ..shared.rows import known
from .config import CONDITIONS, LATE, MEDIUM, Config, runs

if TYPE_CHECKING:
    from theodolite.training import ClassifierRecord, LabelledSamples, TrainedClassifier

EPS = 1e-5  # outputs and norms in single precision, over sums of many samples
SHARES = tuple(np.linspace(0, 1, 11).round(2).tolist())
EARLY = 10  # epochs after which margins are compared with those at the end


def measure(config: Config, cell: Mapping[str, Any]) -> Rows:
    """Train the networks of a family and seed under every condition."""
    trained = train(config, cell["family"], (cell["trial"],))
    return Rows(row for rows in trained.values() for row in rows)


def train(
    config: Config, family: str, trials: tuple[int, ...], **settings: Any
) -> dict[tuple[str, float, int], list[Row]]:
    """Train the networks of a family and some seeds; return the rows of each.

    Further settings are those of ``training.train_classifiers``.
    """
    from theodolite.training import ClassifierRecipe, log_epochs, train_classifiers

    samples, shape = load_samples(config.dataset, config.classes)
    kinds = [(name, start, trial) for trial in trials for name, start in runs(family)]
    epochs = config.epochs_of(family)
    stages = even_epochs(epochs, config.stages)
    trained = train_classifiers(
        [config.blueprint(family, name, start, shape) for name, start, _ in kinds],
        samples,
        recipe=[
            ClassifierRecipe(
                epochs=epochs,
                batch_size=config.batch_size,
                rate=CONDITIONS[name].rate,
                weight_decay=CONDITIONS[name].decay,
            )
            for name, _, _ in kinds
        ],
        seeds=[derive(trial, "trained_norms") for *_, trial in kinds],
        record_epochs=reading_epochs(
            epochs,
            stages
            if family in MEDIUM
            else (*stages, *log_epochs(epochs, config.readings)),
        ),
        device=config.device,
        **settings,
    )
    return {
        kind: rows_of(
            run, kind, family=family, whole=kind[2] < config.drawn, stages=stages
        )
        for kind, run in zip(kinds, trained, strict=True)
    }


def reading_epochs(epochs: int, spread: Sequence[int]) -> tuple[int, ...]:
    """Return epochs to read at: those given, an early one and all of the last ones."""
    late = range(epochs - LATE + 1, epochs + 1)
    return tuple(sorted({1, min(EARLY, epochs - LATE), *spread, *late}))


def even_epochs(epochs: int, stages: int) -> tuple[int, ...]:
    """Return the start and the ends of equal parts of training."""
    return tuple(round(epochs * k / stages) for k in range(stages + 1))


@lru_cache(maxsize=2)
def load_samples(
    dataset: str, classes: tuple[int, int]
) -> "tuple[LabelledSamples, tuple[int, ...]]":
    """Return images of norm 1 with labels -1 and +1, and the shape of an image."""
    from theodolite.training import LabelledSamples

    parts: list[Any] = []
    for split in ("train", "test"):
        kept = data.two_classes(data.load(dataset, split), *classes)
        images = kept.images if kept.images.ndim == 4 else kept.images[..., None]
        planes = np.moveaxis(images, -1, 1)
        rows = data.unit_norm(planes.reshape(len(planes), -1)).astype(np.float32)
        parts += [rows, kept.signs()]
    return LabelledSamples(*parts), tuple(planes.shape[1:])


def rows_of(
    run: "TrainedClassifier",
    kind: tuple[str, float, int],
    *,
    family: str,
    whole: bool,
    stages: Sequence[int] = (),
) -> list[Row]:
    """Return numbers of a run at its start and end, and along training if requested.

    A run that diverged, or whose outputs are all zero, has no others. ``stages`` are
    epochs at which norms, loss and margins are kept.
    """
    condition, start, trial = kind
    labels = {
        "family": family, "condition": condition, "start": start, "trial": trial
    }  # fmt: skip
    if run.status == "stopped":
        return []
    alive = run.status == "finished" and bool(np.any(run.last.outputs))
    numbers: dict[str, float] = {"alive": float(alive), "train_loss": np.nan}
    if alive:
        numbers |= _summary(run, CONDITIONS[condition].decay)
    rows = [_row(name, value, **labels) for name, value in numbers.items()]
    rows += _stages(run, labels, stages)
    if whole:
        rows += _course(run, labels)
    if whole and alive:
        margins = np.quantile(run.last.margins, SHARES)
        rows += [
            _row("margin_level", v, share=s, **labels)
            for s, v in zip(SHARES, margins, strict=True)
        ]
    return rows


def _row(quantity: str, value: float, **labels: Any) -> Row:
    counted = quantity in ("alive", "test_error") or np.isnan(value)
    error = 0.0 if counted else EPS * abs(value)
    return {
        "quantity": quantity,
        **labels,
        "value": known(float(value)),
        "error": error,
    }


def _summary(run: "TrainedClassifier", decay: float) -> dict[str, float]:
    records = run.records
    late = [r for r in records if r.epoch > records[-1].epoch - LATE]
    early = next(r for r in records if r.epoch >= min(EARLY, late[0].epoch - 1))
    rho = np.array([r.rho for r in records])
    first = next(r for r in records if r.epoch == 1)

    def ending(read: Any) -> float:
        return float(np.mean([read(record) for record in late]))

    limit = ending(lambda r: 1 + decay_term(r, decay))
    ratio = ending(lambda r: r.equilibrium_ratio)
    return {
        "rho_start": rho[0],
        "rho_end": float(np.exp(ending(lambda r: np.log(r.rho)))),
        "rho_fall": float((1 - rho / np.maximum.accumulate(rho)).max()),
        "mean_abs_f": ending(lambda r: np.abs(r.f).mean()),
        "largest_f": ending(lambda r: np.abs(r.outputs).max() / r.folded_rho),
        "folded_rho": float(np.exp(ending(lambda r: np.log(r.folded_rho)))),
        "ratio": ratio,
        "ratio_limit": limit,
        "ratio_gap": ratio / limit - 1,
        "first_margin": float(first.output_margins.mean() / first.rho),
        "output_margin": ending(lambda r: r.output_margins.mean()),
        "early_spread": _spread(early),
        "late_spread": ending(_spread),
        "train_loss": ending(lambda r: r.train_loss),
        "test_error": ending(lambda r: r.test_error),
    }


def decay_term(record: "ClassifierRecord", decay: float) -> float:
    r"""Return $\lambda/\sum f_n^2$ with $\lambda = Nw/2$ and $f = g/\rho_L$.

    Layers below the last are normalised, so that the last norm is all of $\rho$ that
    the output feels.
    """
    square = float(np.square(record.outputs).mean())
    return decay / 2 * float(record.layer_norms[-1]) ** 2 / square if square else np.nan


def _spread(record: "ClassifierRecord") -> float:
    """Return the standard deviation of margins over their mean magnitude."""
    margins = record.output_margins
    size = np.abs(margins).mean()
    return float(margins.std() / size) if size else np.nan


def _stages(
    run: "TrainedClassifier", labels: Mapping[str, Any], stages: Sequence[int]
) -> list[Row]:
    """Return the three readings of the norm, the loss and the mean margin."""
    return [
        _row(name, value, **labels, epoch=record.epoch)
        for record in run.records
        if record.epoch in stages
        for name, value in (
            ("rho_stage", record.rho),
            ("folded_rho_stage", record.folded_rho),
            ("last_norm_stage", float(record.layer_norms[-1])),
            ("train_loss_stage", record.train_loss),
            ("output_margin_stage", float(record.output_margins.mean())),
        )
    ]


def _course(run: "TrainedClassifier", labels: Mapping[str, Any]) -> list[Row]:
    decay = CONDITIONS[labels["condition"]].decay
    rows: list[Row] = []
    last = run.records[-1].epoch
    for record in run.records:
        if last - LATE < record.epoch < last:
            continue
        numbers = {
            "train_loss_at": record.train_loss,
            "test_loss_at": record.test_loss,
            "rho_at": record.rho,
            "mean_abs_f_at": float(np.abs(record.f).mean()),
            "ratio_at": record.equilibrium_ratio,
        }
        if decay:
            numbers["ratio_limit_at"] = 1 + decay_term(record, decay)
        here = {**labels, "epoch": record.epoch}
        rows += [_row(k, v, **here) for k, v in numbers.items() if np.isfinite(v)]
        if labels["condition"] == "bn":
            levels = np.quantile(np.abs(record.f), (0.05, 0.25, 0.5, 0.75, 0.95))
            rows += [
                _row("abs_f_level", v, share=s, **here)
                for s, v in zip((0.05, 0.25, 0.5, 0.75, 0.95), levels, strict=True)
            ]
    return rows
