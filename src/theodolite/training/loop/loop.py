"""One plain loop: gradient descent on any module, with probes on a schedule."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import (
    ConfigError,
    DataError,
    MeasurementError,
    NormMode,
    Reading,
    Rows,
    Status,
    Stopwatch,
    TheodoliteError,
    as_integer,
    stream,
)
from theodolite.instruments import (
    HalfSquareLoss,
    Problem,
    as_loss,
    counted,
    preserve,
    preserve_process,
    show_progress,
)

from ..optimizers.descent import Descent
from ..probes.probe import Probe, ProbeRunner, Snapshot, is_schedule
from ..probes.schedules import Every, Schedule


@dataclass(frozen=True, kw_only=True, eq=False)
class Trajectory(Reading):
    """Losses along one training run.

    Attributes:
        steps: Steps at which the loss was recorded.
        loss: Loss before the update of each of these steps; the last is that of the
            final weights.
        loss_error: Rounding error of each loss as evaluated (the batch's sum in the
            model's precision), without the effect of rounding on the weights.
        diverged_at: Step at which the run was retired, None if it finished.
        probe_rows: Rows of the probes.
        retired: Probes that raised, by name, with the reason.
    """

    dims: ClassVar = {"loss": ("step",), "loss_error": ("step",)}
    error_of: ClassVar = {"loss": "loss_error"}

    steps: np.ndarray
    loss: np.ndarray
    loss_error: np.ndarray
    diverged_at: int | None = None
    probe_rows: Rows = field(default_factory=Rows)
    retired: dict[str, str] = field(default_factory=dict)

    def coordinates(self) -> dict[str, list[Any]]:
        """Label losses by their step."""
        return {"step": self.steps.tolist()}

    @property
    def diverged(self) -> bool:
        """Whether the run was retired."""
        return self.diverged_at is not None

    @property
    def final_loss(self) -> float:
        """Loss of the final weights; NaN for a diverged run."""
        return float("nan") if self.diverged else float(self.loss[-1])


Data = tuple[Any, Any]
Criterion = nn.Module | Callable[[Tensor, Tensor], Tensor]
Optimizer = Descent | Callable[[list[nn.Parameter]], torch.optim.Optimizer]

# A run whose loss is a million times its first has diverged: gradient descent on these
# losses then grows faster than exponentially.
DIVERGENCE = 1e6


def train(
    model: nn.Module,
    data: Data,
    *,
    optimizer: Optimizer,
    steps: int,
    loss: Criterion | None = None,
    batch_size: int | None = None,
    probes: Iterable[Probe] | ProbeRunner = (),
    record: Schedule = Every(1),  # noqa: B008 (frozen)
    divergence: float = DIVERGENCE,
    seed: int = 0,
) -> Trajectory:
    """Train a model in place; return its losses and the rows of its probes.

    Args:
        model: Any module with parameters; trained in place, in train mode.
        data: Inputs and targets, tensors or arrays with samples first; moved to the
            model's device, floats to its precision.
        optimizer: A :class:`Descent`, or a function of the parameters that returns a
            torch optimiser.
        steps: Updates to make.
        loss: Module or function of outputs and targets; the half mean square by
            default.
        batch_size: Samples per step, in a new order each epoch; all by default.
        probes: Measurements on a schedule, or a :class:`ProbeRunner` of them.
        record: Which losses to keep; each by default.
        divergence: A run is retired once its loss is not finite or above this
            multiple of its first.
        seed: Order of the samples.

    Example:
        >>> model = nn.Linear(2, 1, dtype=torch.float64)
        >>> data = torch.eye(2, dtype=torch.float64), torch.ones(2, 1).double()
        >>> run = train(model, data, optimizer=Descent(lr=0.5), steps=200)
        >>> run.diverged, bool(run.final_loss < 1e-6), run.status.value
        (False, True, 'finished')
    """
    watch = Stopwatch()
    check_steps(steps, divergence)
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise MeasurementError(
            f"{type(model).__name__} has no parameter that requires a gradient: there "
            "is nothing to train; pass a model with free weights"
        )
    check_record(record)
    runner = probes if isinstance(probes, ProbeRunner) else ProbeRunner(probes)
    criterion = HalfSquareLoss() if loss is None else as_loss(loss)
    x, y = place_data(model, data)
    optim, rates = _optimizer(optimizer, parameters, steps)
    kept: dict[int, float] = {}  # step to loss
    ceiling = math.inf
    batches = _batches(x, y, batch_size, seed)
    model.train()
    diverged_at, step, value = None, 0, math.nan
    # Random numbers are drawn as a plain loop draws them.
    progress = show_progress("train", unit="steps", total=steps)
    with preserve_process(draws=False), progress:
        for step in range(steps + 1):
            inputs, targets = next(batches)
            optim.zero_grad()
            # The last loss is only read: running statistics must not change.
            with preserve(model) if step == steps else nullcontext():
                first = step == 0
                objective = _objective(model, criterion, inputs, targets, first=first)
            value = float(objective.detach())
            if step == 0:
                ceiling = divergence * abs(value) or math.inf
            if not (math.isfinite(value) and value <= ceiling):
                diverged_at = step
                break
            if record.due(step):
                kept[step] = value
            if step < steps:
                objective.backward()
            # After the backward pass, whose graph a probe could invalidate.
            if runner.due(step) or value <= runner.floor:
                snapshot = Snapshot(
                    step=step,
                    loss=value,
                    problem=Problem(
                        model,
                        (inputs.clone(), targets.clone()),  # a probe may change them
                        loss=criterion,
                        norm_mode="as_is",
                    ),
                    optimizer=optim,
                    labels=runner.labels,
                )
                with preserve(model):
                    runner.visit(snapshot)
            if step < steps:
                if rates is not None:
                    for group in optim.param_groups:
                        group["lr"] = float(rates[step])
                optim.step()
                counted(unit="steps")
    kept[step] = value
    losses = np.array(list(kept.values()))
    floats = [part.dtype for part in (x, y) if part.is_floating_point()]
    eps = max((torch.finfo(dtype).eps for dtype in floats), default=2.0**-52)
    return Trajectory(
        steps=np.array(list(kept)),
        loss=losses,
        loss_error=np.abs(losses) * eps,
        diverged_at=diverged_at,
        probe_rows=Rows(runner.rows),
        retired=runner.retired,
        status=Status.FINISHED if diverged_at is None else Status.DIVERGED,
        norm_mode=NormMode.BATCH,
        seed=seed,
        cost=watch.read(passes=step),
        method="plain loop",
    )


def place_data(model: nn.Module, data: Data) -> tuple[Tensor, Tensor]:
    """Return inputs and targets on the model's device, in its precision."""
    try:
        x, y = (_tensor(part) for part in data)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(
            f"the data is not a pair of arrays ({error}): pass (inputs, targets)"
        ) from error
    if not x.ndim or not y.ndim:
        raise DataError("the data is a pair of numbers: pass arrays, samples first")
    if len(x) != len(y) or not len(x):
        raise DataError(
            f"{len(x)} inputs and {len(y)} targets: pass one target per sample, and at "
            "least one sample"
        )
    for name, part in (("inputs", x), ("targets", y)):
        if part.is_floating_point() and not torch.isfinite(part).all():
            bad = int((~torch.isfinite(part)).sum())
            raise DataError(
                f"{bad} of the {part.numel()} numbers of the {name} are NaN or "
                "infinite: clean the data first"
            )
    like = next(model.parameters())
    x, y = (part.to(like) if part.is_floating_point() else part for part in (x, y))
    return x.to(like.device), y.to(like.device)


def _tensor(part: Any) -> Tensor:
    # torch warns of read-only arrays, which datasets often are.
    fixed = isinstance(part, np.ndarray) and not part.flags.writeable
    part = part.copy() if fixed else part
    return part if isinstance(part, Tensor) else torch.as_tensor(part, device="cpu")


def check_steps(steps: int, divergence: float) -> None:
    """Refuse a negative number of steps, or a bound not above 1."""
    as_integer("steps", steps, 0)
    if not (isinstance(divergence, int | float) and divergence > 1):
        raise ConfigError(f"divergence is {divergence!r}: pass a number above 1")


def check_record(record: Schedule | None) -> None:
    """Refuse a record that is no schedule by steps."""
    if record is not None and (not is_schedule(record) or record.levels):
        raise ConfigError(
            f"record is {record!r}: pass a schedule by steps, such as Every(10) or "
            "LogSpaced(10)"
        )


def _optimizer(
    given: Optimizer, parameters: list[nn.Parameter], steps: int
) -> tuple[torch.optim.Optimizer, np.ndarray | None]:
    if isinstance(given, Descent):
        made = torch.optim.SGD(
            parameters,
            lr=given.lr,
            momentum=given.momentum,
            weight_decay=given.weight_decay,
        )
        return made, given.rates(0, steps)
    if not callable(given):
        raise ConfigError(
            f"optimizer is {given!r}: pass a Descent, or a function such as lambda p: "
            "torch.optim.Adam(p)"
        )
    made = given(parameters)
    if not isinstance(made, torch.optim.Optimizer):
        raise ConfigError(
            f"optimizer returned a {type(made).__name__}, wanted a torch optimiser: "
            "pass a Descent, or a function such as lambda p: torch.optim.Adam(p)"
        )
    return made, None


def _objective(
    model: nn.Module, criterion: Any, x: Tensor, y: Tensor, *, first: bool
) -> Tensor:
    """Return the loss of a batch; for the first batch, explain a failure."""
    if not first:
        return criterion(model(x), y)
    try:
        objective = criterion(model(x), y)
        float(objective.detach())
    except TheodoliteError:
        raise
    except (RuntimeError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise DataError(
            f"{type(model).__name__} and the loss gave no number on inputs of shape "
            f"{tuple(x.shape)} and targets of shape {tuple(y.shape)} ({error}): pass "
            "data of the model's shape and a loss that returns one number"
        ) from error
    return objective


def _batches(
    x: Tensor, y: Tensor, size: int | None, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches without end: all samples, or a new order each epoch."""
    whole_number = isinstance(size, int) and not isinstance(size, bool)
    if size is not None and not (whole_number and 1 <= size <= len(x)):
        raise ConfigError(
            f"batch_size is {size!r} for {len(x)} samples: pass a whole number from 1 "
            "to that"
        )
    size = size or len(x)
    for epoch in itertools.count():
        rng = stream(seed, "epoch", epoch)
        if size == len(x):
            yield x, y
            continue
        order = torch.from_numpy(rng.permutation(len(x))).to(x.device)
        yield from ((x[part], y[part]) for part in order.split(size))
