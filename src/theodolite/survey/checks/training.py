"""What the trial steps show: rates, and whether the network learns at all."""

import math
from functools import partial

from .check import Sign, check
from .reach import warming
from .seen import STUCK, Seen

# Shares that count as falling, as moving and as slow: our choice.
FALLEN, MOVED, SLOW = 0.003, 1e-4, 5e-3
# Share of the loss of a guess that a smaller rate removes clearly: our choice.
CLEAR = 0.15
# Share of that loss that training removes if it learns: our choice.
LEARNED = 0.2
# Multiples of a rate at which nothing moves that are tried: our choice.
LARGER = (10, 100, 1000, 10000)
_TRIED = "ten steps, undone afterwards, at the rate in use, a tenth and ten times of it"
of_trials = partial(check, source=_TRIED, confidence="measured")


@of_trials(
    "rate-too-large",
    "sick",
    "The learning rate is too large",
    repaired_by="Use a tenth of the rate",
    kind="rate",
)
def rate_too_large(seen: Seen) -> Sign | None:
    """At the rate in use the loss rises in the trial steps, or stays where an answer
    that ignores the inputs is, and at a tenth of it or less the loss falls.
    """
    if seen.optimizer is None or not (seen.diverges or seen.stuck):
        return None
    course, less = seen.course, seen.courses[0.1]
    if not seen.diverges:
        course = seen.longer
        tried = [seen.trainer.run(factor, steps=seen.long) for factor in (0.1, 0.01)]
        less = max(tried, key=seen.below_chance)
        if not seen.below_chance(less) > CLEAR:
            return None
    groups = seen.optimizer.param_groups
    rates = [float(g.get(key) or 0) for g in groups for key in ("lr", "initial_lr")]
    rate = max(rates, default=0.0)
    detail = (
        f"At {rate:g} the loss goes from {course.before:.3g} to "
        f"{course.after:.3g}, at {less.factor * rate:g} to {less.after:.3g}."
    )
    ratio = course.after / max(abs(course.before), 1e-12)
    return Sign(ratio, min(1.0, 0.9 * ratio), detail=detail)


@of_trials(
    "nothing-moves",
    "sick",
    "The trial steps hardly change the weights",
    source=_TRIED + "; the levels are ours",
    repaired_by="Use a rate ten times as large",
    kind="rate",
)
def nothing_moves(seen: Seen) -> Sign | None:
    """Ten steps hardly change the weights, and the loss falls only at a hundred times
    the rate, if at all. The rate is far too small, or gradients are (clipping, a large
    eps, a loss that is divided twice).
    """
    course, more = seen.course, seen.courses[10.0]
    if seen.optimizer is None or course.error or not course.reached:
        return None
    if seen.step_hinders or any(map(warming, seen.optimizer.param_groups)):
        return None
    still = course.moved <= MOVED and max(more.gain, course.gain) <= 0.02
    if not still and (course.moved > SLOW or course.gain > 0.02):
        return None
    tried = {factor: seen.trainer.run(factor).gain for factor in LARGER}
    best = max(tried, key=lambda each: tried[each])
    if not still and (best < 100 or tried[best] < 0.2):
        return None
    detail = f"They move by {course.moved:.2g} of their length."
    if tried[best] > 0:
        detail += f" At {best} times the rate they lower the loss by {tried[best]:.0%}."
    limit, severity = (MOVED, None) if still else (SLOW, "warning")
    return Sign(course.moved, limit, above=False, detail=detail, severity=severity)


@of_trials(
    "not-finite-in-training",
    "sick",
    "The loss becomes NaN or infinite in the trial steps",
    repaired_by="Use a tenth of the rate",
    kind="rate",
)
def not_finite_in_training(seen: Seen) -> Sign | None:
    """A step makes the loss NaN or infinite, also at a tenth of the rate: look for
    logarithms and divisions of zero, and for overflow.
    """
    course = seen.course
    if course.error or math.isfinite(course.after) or not math.isfinite(seen.value):
        return None
    return None if seen.diverges else Sign(math.inf, 1.0)


@of_trials(
    "loss-does-not-fall",
    "warning",
    "The loss falls at none of the rates tried",
    source=_TRIED + ", and on one repeated batch",
)
def loss_does_not_fall(seen: Seen) -> Sign | None:
    """Neither at the rate in use, nor at a tenth or ten times of it, nor on one batch
    repeated twenty times. A network that cannot fit one batch has something wrong.
    """
    courses = [*seen.courses.values(), seen.repeated]
    courses += [seen.own_step] if seen.own_step is not None else []
    if any(course.error for course in courses) or not math.isfinite(seen.value):
        return None
    best = max(course.gain for course in courses)
    if best > FALLEN:
        return None
    return Sign(
        best,
        FALLEN,
        above=False,
        detail=f"The best trial lowers it by {max(best, 0):.2%}.",
    )


@of_trials(
    "stays-at-chance",
    "warning",
    "The network does no better than an answer that ignores its inputs",
    source="up to 300 steps at three rates, and the best constant outputs",
)
def stays_at_chance(seen: Seen) -> Sign | None:
    """The outputs were replaced by learned constants, the same for every sample, and
    the loss of the network is not below theirs, at any rate tried. Either something
    keeps it from learning, or the targets do not follow from the inputs.
    """
    if not seen.data_known or not seen.stuck:
        return None
    others = [seen.trainer.run(factor, steps=seen.long) for factor in (0.1, 10.0)]
    best = max(map(seen.below_chance, (seen.longer, seen.longest, *others)))
    if not best < 2 * STUCK:
        return None
    detail = f"Constant outputs reach {seen.chance:.3g}, the network "
    detail += f"{min(c.after for c in (seen.longer, *others)):.3g}."
    return Sign(best, 2 * STUCK, above=False, detail=detail)


@of_trials(
    "rate-too-small",
    "warning",
    "The learning rate is far too small",
    source="a hundred steps at the rate in use and at larger ones; the level is ours",
    repaired_by="Use a rate ten times as large",
    kind="rate",
)
def rate_too_small(seen: Seen) -> Sign | None:
    """Three hundred steps lead no lower than an answer that ignores the inputs, and a
    hundred at ten or a hundred times the rate do.
    """
    if seen.optimizer is None or not seen.stuck or nothing_moves(seen) is not None:
        return None
    tried = [seen.trainer.run(factor, steps=seen.long) for factor in (10.0, 100.0)]
    best = max(tried, key=seen.below_chance)
    if not seen.below_chance(best) > LEARNED:
        return None
    if not seen.below_chance(seen.longest) < 2 * STUCK:
        return None
    detail = f"At {best.factor:g} times the rate the loss is {best.after:.3g}, and "
    detail += f"{seen.longest.after:.3g} at the rate in use."
    return Sign(seen.below_chance(best), LEARNED, detail=detail)


@of_trials(
    "training-fails",
    "sick",
    "A training step raises an error",
    source="a step that is undone",
)
def training_fails(seen: Seen) -> Sign | None:
    """The network can be run, but not trained as given."""
    error = seen.own_step.error if seen.own_step else ""
    error = error or seen.course.error
    if not error or error == "no parameter requires a gradient":
        return None
    return Sign(1.0, detail=f"It says: {error}.")


@of_trials(
    "does-not-run",
    "sick",
    "The model or its loss raises an error",
    source="a pass of the first batch in the mode of training",
)
def does_not_run(seen: Seen) -> Sign | None:
    """In the mode in which it is trained, the model does not run on the first batch, or
    the loss does not take its outputs.
    """
    return Sign(1.0, detail=f"It says: {seen.fails}.") if seen.fails else None
