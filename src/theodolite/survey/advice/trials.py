"""Trials of advice: train with and without it, from equal seeds and batches."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from theodolite.core import ConfigError, TheodoliteError
from theodolite.instruments import preserve_process, reseed

from ..checks.trial_steps import Trainer, undone
from ..records.finding import Advice, Trial
from .applying import Guard, Treated, apply_advice, check_written, copied, runs
from .samples import Pool

# Share of the loss that counts as help, and as harm.
WORTH = 0.1
# Seeds of a trial; with fewer steps it shows nothing: our choice.
SEEDS, LEAST_STEPS = 3, 10
# Losses are cut at this multiple of the untrained network's loss: our choice.
CEILING = 10.0
# Added to seeds, so that weights are not drawn again as the user drew them.
OTHER = 1_000_003
# Repairs that no trial can judge: without what gives the answer away the loss is
# larger, equal units learn a little fast and then no more, trials shuffle in any case,
# and the user's own step cannot train a copy.
UNTRIED = frozenset({"target-in-inputs", "sees-the-future"}) | {
    "weights-all-equal",
    "batches-sorted",
    "gradients-not-cleared",
    "gradients-discarded",
    "schedule-ends-training",
}


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
    subject: Any,
    *,
    seeds: int = SEEDS,
    steps: int = 30,
    effort: float = math.inf,
) -> tuple[Advice, ...]:
    """Try each piece of advice on a copy; sort what helped first and what harmed last.

    For every seed the network as it is and each altered copy are trained on the same
    batches in the same order, in the modes in which their modules are. Then their
    losses are compared on the first of these batches. If the network as it is cannot be
    trained, its loss before training counts. The network itself is not changed.

    Not tried are advice that is a comment, advice on the user's own step, advice that
    changes the loss, whose numbers say nothing then, and advice against a leak of the
    target, without which the loss is larger.

    Args:
        advice: Advice from :func:`theodolite.survey.advise`.
        subject: Anything with ``model``, ``batches``, ``loss`` and ``optimizer``; if
            that is None, Adam is used.
        seeds: Number of pairs of trainings, at least 2.
        steps: Updates per training.
        effort: About how many updates the trials may make together: with few, there
            are fewer steps, but 10 at least, and the last advice is not tried.

    Returns:
        The advice with its trials: first what helped, last what did harm.

    Raises:
        ConfigError: The code of a piece of advice was not written here, or the model
            cannot be copied.
    """
    if seeds < 2 or steps < 1:
        raise ConfigError(
            f"{seeds} seeds of {steps} steps were asked for, wanted are at least 2 of "
            "1: give for instance seeds=3, steps=30"
        )
    for each in advice:
        check_written(each)
    arms = [_Arm(each) for each in advice if runs(each) and not untried(each)]
    pool, model, loss = Pool(subject.batches), subject.model, subject.loss
    with undone(model, subject.optimizer, loss):
        guard = Guard(model, subject.optimizer, loss, pool.batches[0])
        for arm in arms:
            try:
                treat([arm.advice], subject, pool, 0, guard)
            except TheodoliteError as refused:
                arm.refusal = str(refused)
        fit = [arm for arm in arms if not arm.refusal]
        least = min(LEAST_STEPS, steps)
        most = max(effort / seeds / least - 1, 1)
        fit = fit[: int(most) if most < len(fit) else None]
        steps = int(max(min(steps, effort / seeds / (len(fit) + 1)), least))
        for seed in range(seeds if fit else 0):
            _run_seed(fit, subject, pool, seed, steps, guard)
    tried = {a.advice.code: _judged(a, steps) for a in arms if a.refusal or a in fit}
    judged = [replace(each, trial=tried.get(each.code)) for each in advice]
    return tuple(sorted(judged, key=_place))


def treat(
    advice: Sequence[Advice], subject: Any, pool: Pool, seed: int, guard: Guard
) -> Treated:
    """Return a copy with pieces of advice applied, one after the other.

    Raises:
        ConfigError: The model cannot be copied, or the advice must not be given.
    """
    patient = copied(subject.model, subject.optimizer, subject.loss)
    try:
        for each in advice:
            with preserve_process():
                reseed(seed + OTHER)
                patient = apply_advice(each, patient, pool.some_inputs())
    except Exception as failed:  # of a user's forward, too
        said = (str(failed).splitlines() or [type(failed).__name__])[0]
        raise ConfigError(said) from failed
    if said := guard.refusal(patient):
        raise ConfigError(said)
    return patient


def _run_seed(
    arms: Sequence[_Arm], subject: Any, pool: Pool, seed: int, steps: int, guard: Guard
) -> None:
    """Train the network as it is once, and each altered copy once."""

    def ended(patient: Treated) -> tuple[float, float, str]:
        draws = pool.draws(seed, patient.batch_size)
        batches = [next(draws) for _ in range(steps)]
        trainer = Trainer(
            model=patient.model,
            batches=batches,
            loss=patient.loss,
            optimizer=patient.optimizer,
            seed=seed,
        )
        course = trainer.run(1.0, steps=steps)
        return course.before, course.after, course.error

    start, plain, untrained = ended(
        copied(subject.model, subject.optimizer, subject.loss)
    )
    ceiling = CEILING * max(abs(start), 1.0) if math.isfinite(start) else 1e6
    if untrained:  # as batch norm of one sample raises
        plain = start
    for arm in arms:
        arm.untrained = arm.untrained or untrained
        _, value, error = ended(treat([arm.advice], subject, pool, seed, guard))
        arm.refusal = arm.refusal or error
        arm.treated.append(value if value < ceiling else ceiling)
        arm.plain.append(plain if plain < ceiling else ceiling)


def _judged(arm: _Arm, steps: int) -> Trial:
    if arm.refusal or len(arm.plain) < 2:
        said = f"it cannot be applied here: {arm.refusal}"
        return Trial(n_seeds=0, steps=steps, helped="no", said=said)
    gaps = [a - b for a, b in zip(arm.treated, arm.plain, strict=True)]
    shares = [gap / max(abs(p), 1e-12) for gap, p in zip(gaps, arm.plain, strict=True)]
    mean = sum(shares) / len(shares)
    harm = mean >= WORTH and min(shares) >= WORTH / 2
    helped = "yes" if max(shares) <= -WORTH else "harm" if harm else "no"
    words = {
        "yes": "it helped",
        "no": "it made no difference of 10 %",
        "harm": "it did harm",
    }
    why = f"; as it is the network cannot be trained ({arm.untrained})"
    said = (
        f"after {steps} steps the loss differs by {mean:+.0%} "
        f"[{min(shares):+.0%}, {max(shares):+.0%}] over {len(gaps)} seeds: "
        f"{words[helped]}{why if arm.untrained else ''}"
    )
    return Trial(
        difference=sum(gaps) / len(gaps),
        low=min(gaps),
        high=max(gaps),
        n_seeds=len(gaps),
        steps=steps,
        helped=helped,
        said=said,
    )


def untried(advice: Advice) -> bool:
    """Return whether no trial can judge this advice."""
    return advice.rule in UNTRIED or advice.kind in ("loss", "step")


def withheld(advice: Advice) -> bool:
    """Return whether a trial says that advice must not be shown."""
    trial = advice.trial
    return trial is not None and (trial.helped == "harm" or not trial.n_seeds)


def _place(advice: Advice) -> tuple[int, bool, float]:
    """Sort advice: what helped first, then untried advice, then what did not help.

    Words come after code. Batches of another size change what the loss is taken of, so
    they come after others.
    """
    trial = advice.trial
    rank = 1 if trial is None else {"yes": 0, "no": 1, "harm": 2}[trial.helped]
    rank = 2 if withheld(advice) else rank
    gain = trial.difference if trial is not None and rank == 0 else 0.0
    return rank, advice.kind == "batch_size" or not runs(advice), gain
