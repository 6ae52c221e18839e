"""One plain loop: gradient descent on any module, with probes on a schedule."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import (
    ConfigError,
    DataError,
    MeasurementError,
    NormMode,
    Rows,
    Status,
    Stopwatch,
    TheodoliteError,
    stream,
)
from theodolite.instruments import (
    HalfSquareLoss,
    announced,
    as_loss,
    counted,
    preserve,
)
from theodolite.training.loop.descent import Descent
from theodolite.training.loop.trajectory import Trajectory
from theodolite.training.probes.probes import Board, Probe, Snapshot, is_when
from theodolite.training.probes.schedules import Every, When

Data = tuple[Any, Any]
Criterion = nn.Module | Callable[[Tensor, Tensor], Tensor]
Optimiser = Descent | Callable[[list[nn.Parameter]], torch.optim.Optimizer]

# A run whose loss is a million times its first is lost: gradient descent on these
# losses then grows faster than exponentially.
DIVERGENCE = 1e6


def train(
    model: nn.Module,
    data: Data,
    *,
    optimiser: Optimiser,
    steps: int,
    loss: Criterion | None = None,
    batch_size: int | None = None,
    augment: Callable[[Tensor, np.random.Generator], Tensor] | None = None,
    probes: Iterable[Probe] = (),
    record: When = Every(1),  # noqa: B008 (frozen)
    divergence: float = DIVERGENCE,
    seed: int = 0,
) -> Trajectory:
    """Train a model in place and return its losses and what the probes measured.

    Args:
        model: Any module with parameters; trained in place, in train mode.
        data: Inputs and targets, tensors or arrays with samples first; put on the
            model's device, floats in its precision.
        optimiser: A :class:`Descent`, or a function of the parameters that returns a
            torch optimiser.
        steps: Updates to make.
        loss: Module or function of outputs and targets; the half mean square by
            default.
        batch_size: Samples a step, drawn anew each epoch; all by default.
        augment: Changes a batch of inputs, given a generator.
        probes: Measurements on a schedule.
        record: Which losses to keep; each by default.
        divergence: A run is retired once its loss is not finite or above this
            multiple of its first.
        seed: Order of the samples, and the augmentation.

    Example:
        >>> model = nn.Linear(2, 1, dtype=torch.float64)
        >>> data = torch.eye(2, dtype=torch.float64), torch.ones(2, 1).double()
        >>> run = train(model, data, optimiser=Descent(lr=0.5), steps=200)
        >>> run.diverged, bool(run.final_loss < 1e-6), run.status.value
        (False, True, 'finished')
    """
    with announced("train", unit="steps", total=steps):
        return train_with(
            model,
            data,
            optimiser=optimiser,
            steps=steps,
            board=Board(probes),
            loss=loss,
            batch_size=batch_size,
            augment=augment,
            record=record,
            divergence=divergence,
            seed=seed,
        )


def train_with(
    model: nn.Module,
    data: Data,
    *,
    optimiser: Optimiser,
    steps: int,
    board: Board,
    loss: Criterion | None = None,
    batch_size: int | None = None,
    augment: Callable[[Tensor, np.random.Generator], Tensor] | None = None,
    record: When = Every(1),  # noqa: B008 (frozen)
    divergence: float = DIVERGENCE,
    seed: int = 0,
    labels: Mapping[str, Any] | None = None,
) -> Trajectory:
    """Train as :func:`train` does, with a board of probes that is already there."""
    watch = Stopwatch()
    parameters = _check(model, steps, divergence)
    check_record(record)
    criterion = HalfSquareLoss() if loss is None else as_loss(loss)
    x, y = place_data(model, data)
    optim, rates = _optimiser(optimiser, parameters, steps)
    kept, ceiling = _Kept(record), math.inf
    batches = _batches(x, y, batch_size, augment, seed)
    model.train()
    diverged_at, step, value = None, 0, math.nan
    for step in range(steps + 1):
        inputs, targets = next(batches)
        optim.zero_grad()
        # The last loss is only looked at: running statistics stay as they are.
        with preserve(model) if step == steps else nullcontext():
            objective = _objective(model, criterion, inputs, targets, first=step == 0)
        value = float(objective.detach())
        if step == 0:
            ceiling = divergence * abs(value) or math.inf
        if not (math.isfinite(value) and value <= ceiling):
            diverged_at = step
            break
        kept.add(step, value)
        if step < steps:
            objective.backward()
        # After the backward pass, whose graph a probe could otherwise invalidate.
        if board.due(step) or value <= board.floor:
            snapshot = Snapshot(
                step=step,
                loss=value,
                model=lambda: model,
                data=(inputs.clone(), targets.clone()),  # a probe's own
                criterion=criterion,
                labels=labels,
            )
            with preserve(model):
                board.visit(snapshot)
        if step < steps:
            _set_rate(optim, rates, step)
            optim.step()
            counted(unit="steps")
    kept.add(step, value, last=True)
    return Trajectory(
        steps=np.array(kept.steps),
        loss=np.array(kept.losses),
        loss_error=_rounding(kept.losses, x.dtype, y.dtype),
        diverged_at=diverged_at,
        probe_rows=Rows(board.rows),
        retired=board.retired,
        status=Status.FINISHED if diverged_at is None else Status.DIVERGED,
        norm_mode=NormMode.BATCH,
        seed=seed,
        cost=watch.read(passes=step),
        method="plain loop",
    )


def place_data(model: nn.Module, data: Data) -> tuple[Tensor, Tensor]:
    """Return inputs and targets where the model is, or say what is wrong with them."""
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
            f"{len(x)} inputs and {len(y)} targets: pass one target a sample, and at "
            "least one sample"
        )
    like = next(model.parameters())
    for name, part in (("inputs", x), ("targets", y)):
        if part.is_floating_point() and not torch.isfinite(part).all():
            bad = int((~torch.isfinite(part)).sum())
            raise DataError(
                f"{bad} of the {part.numel()} numbers of the {name} are NaN or "
                "infinite: clean the data first"
            )
    return _placed(x, like), _placed(y, like)


def _tensor(part: Any) -> Tensor:
    # torch warns of arrays that cannot be written to, as datasets are.
    fixed = isinstance(part, np.ndarray) and not part.flags.writeable
    return torch.as_tensor(part.copy() if fixed else part)


def _placed(part: Tensor, like: Tensor) -> Tensor:
    dtype = like.dtype if part.is_floating_point() else part.dtype
    return part.to(device=like.device, dtype=dtype)


class _Kept:
    """The losses to keep, with the last one whatever the schedule says."""

    def __init__(self, when: When) -> None:
        self._when = when
        self.steps: list[int] = []
        self.losses: list[float] = []

    def add(self, step: int, value: float, *, last: bool = False) -> None:
        new = not self.steps or self.steps[-1] != step
        if new and (last or self._when.due(step)):
            self.steps.append(step)
            self.losses.append(value)


def _check(model: nn.Module, steps: int, divergence: float) -> list[nn.Parameter]:
    check_steps(steps, divergence)
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise MeasurementError(
            f"{type(model).__name__} has no parameter that requires a gradient: there "
            "is nothing to train; pass a model with free weights"
        )
    return parameters


def check_steps(steps: int, divergence: float) -> None:
    """Refuse a number of steps or a bound that means nothing."""
    whole = isinstance(steps, int | np.integer) and not isinstance(steps, bool)
    if not whole or steps < 0:
        raise ConfigError(f"steps is {steps!r}: pass a whole number from 0 up")
    if not (isinstance(divergence, int | float) and divergence > 1):
        raise ConfigError(f"divergence is {divergence!r}: pass a number above 1")


def check_record(record: When | None) -> None:
    """Refuse what is not a schedule by steps."""
    if record is not None and (not is_when(record) or record.levels):
        raise ConfigError(
            f"record is {record!r}: pass a schedule by steps, such as Every(10) or "
            "LogSpaced(10)"
        )


def _optimiser(
    given: Optimiser, parameters: list[nn.Parameter], steps: int
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
            f"optimiser is {given!r}: pass a Descent, or a function such as lambda p: "
            "torch.optim.Adam(p)"
        )
    made = given(parameters)
    if not isinstance(made, torch.optim.Optimizer):
        raise ConfigError(
            f"optimiser returned a {type(made).__name__}, wanted a torch optimiser: "
            "pass a Descent, or a function such as lambda p: torch.optim.Adam(p)"
        )
    return made, None


def _objective(
    model: nn.Module, criterion: Any, x: Tensor, y: Tensor, *, first: bool
) -> Tensor:
    """Return the loss of a batch; the first time, say what does not fit."""
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


def _set_rate(
    optim: torch.optim.Optimizer, rates: np.ndarray | None, step: int
) -> None:
    if rates is not None:
        for group in optim.param_groups:
            group["lr"] = float(rates[step])


def _batches(
    x: Tensor,
    y: Tensor,
    size: int | None,
    augment: Callable[[Tensor, np.random.Generator], Tensor] | None,
    seed: int,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches for ever: all samples, or a new order each epoch."""
    whole_number = isinstance(size, int) and not isinstance(size, bool)
    if size is not None and not (whole_number and 1 <= size <= len(x)):
        raise ConfigError(
            f"batch_size is {size!r} for {len(x)} samples: pass a whole number from 1 "
            "to that"
        )
    epoch, whole = 0, size is None or size == len(x)
    while True:
        rng = stream(seed, "epoch", epoch)
        order = None if whole else torch.as_tensor(rng.permutation(len(x)))
        for start in range(0, len(x), size or len(x)):
            if order is None:
                inputs, targets = x, y
            else:
                chosen = order[start : start + (size or len(x))].to(x.device)
                inputs, targets = x[chosen], y[chosen]
            yield (inputs if augment is None else augment(inputs, rng)), targets
        epoch += 1


def _rounding(losses: list[float], *dtypes: torch.dtype) -> np.ndarray:
    floats = [dtype for dtype in dtypes if dtype.is_floating_point]
    eps = max((torch.finfo(dtype).eps for dtype in floats), default=2.0**-52)
    return np.abs(np.array(losses)) * eps
