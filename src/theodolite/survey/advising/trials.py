"""Trials of advice: train with and without it, from equal seeds and batches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import nn

from theodolite.core import ConfigError, sampled
from theodolite.instruments import Loss, evaluate, preserve_process

from ..records.finding import Advice, Trial
from .applying import Treated, apply_advice, check_written, copied
from .samples import Pool

# Level of the interval; gains below this share of the loss count as zero: our choice.
LEVEL = 0.05
WORTH = 0.02
# With fewer steps a trial shows nothing: our choice.
LEAST_STEPS = 5
# Losses are cut at this multiple of the untrained network's loss: our choice.
CEILING = 10.0


class Treatable(Protocol):
    """A model to try advice on, with its batches, loss and optimiser."""

    @property
    def model(self) -> nn.Module:
        """The network; it is not changed."""
        ...

    @property
    def batches(self) -> Any:
        """The training batches."""
        ...

    @property
    def loss(self) -> Loss:
        """The training loss."""
        ...

    @property
    def optimizer(self) -> torch.optim.Optimizer | None:
        """The optimiser."""
        ...


@dataclass
class _Arm:
    """Losses with a piece of advice, and without it from the same seeds."""

    advice: Advice
    treated: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    refusal: str = ""
    untrained: str = ""


@preserve_process()
def try_advice(
    advice: Sequence[Advice],
    subject: Treatable,
    *,
    seeds: int = 5,
    steps: int = 30,
    effort: float = math.inf,
) -> tuple[Advice, ...]:
    """Try each piece of advice on a copy; sort advice that does not help last.

    For every seed the network as it is and each altered copy are trained on the same
    batches in the same order. Then their losses are compared, in eval mode over all
    given samples. If the network as it is cannot be trained, its loss before training
    counts. The network itself is not changed.

    Args:
        advice: Advice from :func:`theodolite.survey.advise`.
        subject: Model, batches, loss and optimiser; without an optimiser, Adam.
        seeds: Number of pairs of trainings, at least 2.
        steps: Updates per training.
        effort: About how many updates the trials may make together: with few, there
            are fewer seeds, then fewer steps, but 2 seeds and 5 steps at least.

    Returns:
        The advice with its trials: first what helped, last what did not help.

    Raises:
        ConfigError: The code of a piece of advice was not written here.
    """
    if seeds < 2 or steps < 1:
        raise ConfigError(
            f"{seeds} seeds of {steps} steps were asked for, wanted are at least 2 of "
            "1: give for instance seeds=5, steps=30"
        )
    for each in advice:
        check_written(each)
    pool = Pool(subject.batches)
    each = effort / (len(advice) + 1)
    steps = max(int(min(steps, each / 2)), min(LEAST_STEPS, steps))
    seeds = max(int(min(seeds, each / steps)), 2)
    arms = [_Arm(each) for each in advice]
    start = pool.mean_loss(subject.model, subject.loss)
    ceiling = CEILING * max(start, 1.0) if math.isfinite(start) else 1e6
    for seed in range(seeds if arms else 0):
        _run_seed(arms, subject, pool, seed, steps, (start, ceiling))
    tried = [replace(arm.advice, trial=_judged(arm, steps)) for arm in arms]
    return tuple(sorted(tried, key=_place))


def _why(arm: _Arm) -> str:
    if not arm.untrained:
        return ""
    return f"; as it is the network cannot be trained ({arm.untrained})"


def _run_seed(
    arms: Sequence[_Arm],
    subject: Treatable,
    pool: Pool,
    seed: int,
    steps: int,
    bounds: tuple[float, float],
) -> None:
    """Train the network as it is once, and each altered copy once.

    The bounds are the loss before training and the value at which losses are cut.
    """
    start, ceiling = bounds

    def ended(patient: Treated) -> float:
        value = _loss_after(patient, pool, subject.loss, seed=seed, steps=steps)
        return value if value < ceiling else ceiling

    untrained = ""
    try:
        plain = ended(copied(subject.model, subject.optimizer))
    except (ValueError, RuntimeError) as error:  # as batch norm of one sample raises
        plain = min(start, ceiling) if math.isfinite(start) else ceiling
        untrained = (str(error) or type(error).__name__).splitlines()[0]
    for arm in arms:
        arm.untrained = arm.untrained or untrained
        if arm.refusal:
            continue
        patient = copied(subject.model, subject.optimizer)
        try:
            with pool.seeded(seed):
                patient = apply_advice(arm.advice, patient, pool.some_inputs())
            arm.treated.append(ended(patient))
            arm.plain.append(plain)
        except Exception as error:  # a user's forward may raise anything
            arm.refusal = str(error).splitlines()[0]


def _judged(arm: _Arm, steps: int) -> Trial:
    if arm.refusal or len(arm.plain) < 2:
        said = f"it cannot be applied here: {arm.refusal}"
        return Trial(
            difference=math.nan,
            low=math.nan,
            high=math.nan,
            n_seeds=len(arm.plain),
            steps=steps,
            helped="no",
            said=said,
        )
    gaps = [a - b for a, b in zip(arm.treated, arm.plain, strict=True)]
    interval = sampled("difference", gaps)
    low, high = interval.lower(LEVEL / 2), interval.upper(LEVEL / 2)
    # All seeds give equal losses, for example if all samples are one batch.
    alike = len(set(gaps)) == 1
    if alike:
        low = high = gaps[0]
    worth = WORTH * sum(arm.plain) / len(arm.plain)
    helped = "no" if low > -worth else "yes" if high < 0 else "open"
    word = "it did harm" if low > 0 else _WORDS[helped]
    said = (
        f"after {steps} steps the loss differs by {interval.value:+.3g} "
        f"[{low:+.3g}, {high:+.3g}] over {len(gaps)} seeds"
        f"{', which draw nothing here' if alike else ''}: {word}"
        f"{_why(arm)}"
    )
    return Trial(
        difference=interval.value,
        low=low,
        high=high,
        n_seeds=len(gaps),
        steps=steps,
        helped=helped,
        said=said,
    )


_WORDS = {
    "yes": "it helped",
    "no": "it did not help by 2 % of the loss",
    "open": "whether it helps is open",
}


def _place(advice: Advice) -> tuple[int, float]:
    """Sort advice: what helped first, then untried advice, then what did not help."""
    trial = advice.trial
    if trial is None:
        return 1, 0.0
    rank = {"yes": 0, "open": 1, "no": 2}[trial.helped]
    return rank, trial.difference if rank == 0 else 0.0


def _loss_after(
    patient: Treated, pool: Pool, loss: Loss, *, seed: int, steps: int
) -> float:
    """Train a copy and return its loss over all samples, infinite if it diverged.

    Args:
        patient: The copy; it is trained.
        pool: The training samples.
        loss: The training loss.
        seed: Seed of the batches and of the network's random numbers.
        steps: Updates.
    """
    with pool.seeded(seed):
        draws = pool.draws(seed, patient.batch_size)
        for _ in range(steps):
            patient.optimizer.zero_grad(set_to_none=True)
            value = evaluate(patient.model, next(draws), loss)
            if not math.isfinite(float(value.detach())):
                return math.inf
            value.backward()
            patient.optimizer.step()
        with torch.no_grad():
            return pool.mean_loss(patient.model, loss)
