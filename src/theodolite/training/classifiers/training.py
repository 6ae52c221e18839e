"""Train many small classifiers and record their outputs on every sample."""

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from theodolite.core import (
    ClassifierBlueprint,
    ConfigError,
    as_integer,
)
from theodolite.instruments import preserve_process
from theodolite.networks import ClassifierNetwork, build

from .layers import Statistics
from .loops import (
    EpochCallback,
    MakeOptimizer,
    StackedStep,
    stacked,
    train_plain,
    train_stack,
)
from .recipe import ClassifierRecipe, LabelledSamples, log_epochs
from .records import ClassifierRecord, RecordMaker, TrainedClassifier

ClassifierWay = Literal["stacked", "plain"]
ReportRecord = Callable[[int, ClassifierRecord], None]
_ON_CPU = 8  # runs per stack: larger ones leave the cache and gain little


@preserve_process()
def train_classifiers(
    models: Sequence[ClassifierBlueprint | ClassifierNetwork],
    samples: LabelledSamples,
    *,
    recipe: ClassifierRecipe | Sequence[ClassifierRecipe],
    seeds: Sequence[int],
    record_epochs: Collection[int] | None = None,
    report: ReportRecord | None = None,
    way: ClassifierWay = "stacked",
    optimizer: MakeOptimizer | None = None,
    at_once: int | None = None,
    limit_s: float = float("inf"),
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> list[TrainedClassifier]:
    """Train classifiers by mini-batches, each as if it were alone.

    A seed sets the initial weights, where a blueprint was given, and the order of the
    samples, so runs of one seed see the same batches.

    Args:
        models: Blueprints, or networks built of one, which are trained in place.
        samples: What to train and test on.
        recipe: One recipe for all, or one per run.
        seeds: One per run.
        record_epochs: Epochs after which records are kept, 0 for the start; by default
            some 40 evenly spaced in logarithm. The last epoch is always kept.
        report: Called with the place of the run in ``models`` and every record.
        way: ``stacked``: runs of one shape in lockstep, by formula. ``plain``: one
            module at a time, by autograd and an optimiser of torch.
        optimizer: Makes another optimiser for a network; only with ``plain``.
        at_once: Runs per stack; by default all on CUDA and 8 on the CPU.
        limit_s: Seconds after which remaining runs are stopped.
        dtype: Of weights and samples.
        device: Where to train blueprints; networks stay where they are.

    Returns:
        The result of each run, in the order given.

    Example:
        >>> from theodolite import data
        >>> pair = data.two_classes(data.load("digits"), 3, 8)
        >>> samples = LabelledSamples(data.unit_norm(pair.flat()), pair.signs())
        >>> plan = ClassifierBlueprint(inputs=(64,), width=8, start_norm=5.0)
        >>> (run,) = train_classifiers(
        ...     [plan], samples, recipe=ClassifierRecipe(epochs=3), seeds=[0]
        ... )
        >>> [record.epoch for record in run.records], run.last.outputs.shape
        ([0, 1, 2, 3], (287,))
    """
    if at_once is not None:
        at_once = as_integer("at_once", at_once, 1)
    runs = _runs(models, recipe, seeds)
    if optimizer is not None and way != "plain":
        raise ConfigError(
            "an optimiser was given and stacks have their own: pass way='plain'"
        )
    _check(runs, samples)
    _check_home(dtype, device)
    recorder = _Recorder(samples, record_epochs, report, dtype, device)
    deadline = time.monotonic() + limit_s
    if way == "plain":
        for run in runs:
            _plain(run, recorder, deadline, optimizer)
    else:
        cuda = torch.device(device).type == "cuda"
        for group in _stacks(runs, at_once or (len(runs) if cuda else _ON_CPU)):
            _stacked(group, recorder, deadline)
    return [run.result() for run in runs]


@dataclass(eq=False)
class _Run:
    place: int
    model: ClassifierBlueprint | ClassifierNetwork
    recipe: ClassifierRecipe
    seed: int
    status: str = "stopped"
    seconds: float = 0.0
    records: list[ClassifierRecord] = field(default_factory=list)
    weights: list[Tensor] = field(default_factory=list)
    statistics: Statistics = field(default_factory=list)

    @property
    def blueprint(self) -> ClassifierBlueprint:
        model = self.model
        return model.blueprint if isinstance(model, ClassifierNetwork) else model

    @property
    def shape(self) -> tuple[Any, ...]:
        """What the runs of one stack share."""
        return self.blueprint.with_(start_norm=1.0), self.recipe.together

    def network(self, dtype: torch.dtype, device: torch.device | str) -> Any:
        """Return the network given, or build it."""
        if isinstance(self.model, ClassifierNetwork):
            return self.model
        return build(self.model, seed=self.seed, dtype=dtype, device=device)

    def result(self) -> TrainedClassifier:
        return TrainedClassifier(
            status=self.status,
            blueprint=self.blueprint,
            records=tuple(self.records),
            weights=tuple(self.weights),
            statistics=tuple(self.statistics),
            seconds=self.seconds,
        )


class _Recorder:
    """Keeps records of runs at the chosen epochs."""

    def __init__(
        self,
        samples: LabelledSamples,
        epochs: Collection[int] | None,
        report: ReportRecord | None,
        dtype: torch.dtype,
        device: torch.device | str,
    ) -> None:
        self.samples, self.epochs, self.report = samples, epochs, report
        self.dtype, self.device = dtype, device

    def record_epochs(self, recipe: ClassifierRecipe) -> set[int]:
        epochs = log_epochs(recipe.epochs) if self.epochs is None else self.epochs
        return {*epochs, recipe.epochs}

    def parts(self, outputs: int) -> tuple[Any, Any]:
        """Return samples and targets to train on, and those to test on."""
        data = self.samples

        def part(inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
            targets = data.targets(labels, outputs, self.dtype)
            return inputs.to(self.device, self.dtype), targets.to(self.device)

        held = part(data.test_inputs, data.test_labels) if data.tested else None
        return part(data.inputs, data.labels), held

    def keep(
        self, run: _Run, maker: RecordMaker, epoch: int, weights: list[Tensor]
    ) -> None:
        """Add a record to a run, unless its numbers are no longer finite."""
        if run.status == "diverged":
            return
        record, statistics = maker.read(weights, epoch)
        run.statistics = [(m.cpu(), v.cpu()) for m, v in statistics]
        finite = bool(torch.isfinite(torch.tensor(record.train_loss, device="cpu")))
        if not finite or not all(bool(torch.isfinite(w).all()) for w in weights):
            run.status = "diverged"
            return
        run.records.append(record)
        if self.report is not None:
            self.report(run.place, record)


def _plain(
    run: _Run, recorder: _Recorder, deadline: float, optimizer: MakeOptimizer | None
) -> None:
    began = time.monotonic()
    network = run.network(recorder.dtype, recorder.device)
    seen, held = recorder.parts(run.blueprint.outputs)
    maker = RecordMaker(run.blueprint, seen, held, run.recipe.loss)

    @torch.no_grad()
    def record(epoch: int, weights: list[Tensor]) -> bool:
        recorder.keep(run, maker, epoch, [w[0] for w in weights])
        return run.status != "diverged"

    after = EpochCallback(recorder.record_epochs(run.recipe), record, deadline)
    if 0 in after.epochs:
        record(0, stacked(network))
    whole = train_plain(network, seen, run.recipe, run.seed, after, optimizer)
    run.weights = [w[0].cpu().clone() for w in stacked(network)]
    _close([run], whole, began)


def _stacked(runs: list[_Run], recorder: _Recorder, deadline: float) -> None:
    began = time.monotonic()
    first = runs[0]
    seen, held = recorder.parts(first.blueprint.outputs)
    maker = RecordMaker(first.blueprint, seen, held, first.recipe.loss)
    networks = [run.network(recorder.dtype, recorder.device) for run in runs]
    layers = zip(*(stacked(network) for network in networks), strict=True)
    weights = [torch.cat(layer) for layer in layers]
    seeds = _shared([run.seed for run in runs])
    step = StackedStep(
        first.blueprint, weights, seen, [run.recipe for run in runs], len(seeds)
    )

    @torch.no_grad()
    def record(epoch: int, weights: list[Tensor]) -> bool:
        for place, run in enumerate(runs):
            recorder.keep(run, maker, epoch, [w[place] for w in weights])
        return any(run.status != "diverged" for run in runs)

    after = EpochCallback(recorder.record_epochs(first.recipe), record, deadline)
    if 0 in after.epochs:
        record(0, weights)
    whole = train_stack(step, first.recipe, seeds, after)
    for place, (run, network) in enumerate(zip(runs, networks, strict=True)):
        run.weights = [w[place].cpu().clone() for w in weights]
        network.set_weights(run.weights)
    _close(runs, whole, began)


def _close(runs: list[_Run], whole: bool, began: float) -> None:
    for run in runs:
        run.seconds = (time.monotonic() - began) / len(runs)
        if run.status != "diverged" and whole:
            run.status = "finished"


def _shared(seeds: list[int]) -> list[int]:
    """Return one seed per group of runs that share batches, in the order of runs."""
    kinds = sorted(set(seeds))
    each = len(seeds) // len(kinds)
    same = [seed for seed in kinds for _ in range(each)]
    return kinds if same == seeds else seeds


def _stacks(runs: list[_Run], at_once: int) -> list[list[_Run]]:
    """Return runs in stacks of one shape, runs of one seed next to each other."""
    shapes: dict[Any, list[_Run]] = {}
    for run in runs:
        shapes.setdefault(run.shape, []).append(run)
    stacks = []
    for group in shapes.values():
        ordered = sorted(group, key=lambda run: run.seed)
        stacks += [ordered[i : i + at_once] for i in range(0, len(group), at_once)]
    return stacks


def _runs(models: Any, recipe: Any, seeds: Sequence[int]) -> list[_Run]:
    models, seeds = _listed("models", models), _listed("seeds", seeds)
    each = isinstance(recipe, ClassifierRecipe)
    recipes = [recipe] * len(models) if each else _listed("recipe", recipe)
    if not len(models) == len(recipes) == len(seeds) or not models:
        raise ConfigError(
            f"{len(models)} models, {len(recipes)} recipes and {len(seeds)} seeds: "
            "pass one seed per model, and one recipe for all or one per model"
        )
    return [
        _Run(place, model, how, as_integer("seed", seed, 0))
        for place, (model, how, seed) in enumerate(
            zip(models, recipes, seeds, strict=True)
        )
    ]


def _listed(what: str, value: Any) -> list[Any]:
    if not isinstance(value, Iterable) or isinstance(value, str):
        raise ConfigError(f"{what} is {value!r}: pass a list of them, one per run")
    return list(value)


def _check_home(dtype: Any, device: Any) -> None:
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ConfigError(
            f"dtype is {dtype!r}: pass a floating type, such as torch.float32"
        )
    try:
        torch.empty(0, device=device)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise ConfigError(f"device {device!r} is not there: try 'cpu'") from error


def _check(runs: list[_Run], samples: LabelledSamples) -> None:
    for run in runs:
        size, plan = run.recipe.batch_size, run.blueprint
        if len(samples) < size:
            raise ConfigError(
                f"{len(samples)} samples do not fill a batch of {size}: pass a smaller "
                "batch_size"
            )
        if samples.inputs[0].numel() != math.prod(plan.inputs):
            raise ConfigError(
                f"samples of shape {tuple(samples.inputs.shape[1:])} do not go with a "
                f"blueprint of inputs {plan.inputs}: pass the shape of a sample"
            )
