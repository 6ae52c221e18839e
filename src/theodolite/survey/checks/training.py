"""What the trial steps show: rates, and whether the network learns at all."""

import math
from functools import partial

from .check import Sign, check
from .reach import warming
from .seen import Seen

# Shares that count as falling, as moving and as slow: our choice.
FALLEN, MOVED, SLOW = 0.003, 1e-4, 5e-3
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
    """At the rate in use the loss rises in the trial steps, and at a tenth of it the
    loss falls.
    """
    if seen.optimizer is None or not seen.diverges:
        return None
    groups, less = seen.optimizer.param_groups, seen.courses[0.1]
    rates = [float(g.get(key) or 0) for g in groups for key in ("lr", "initial_lr")]
    rate = max(rates, default=0.0)
    detail = (
        f"At {rate:g} the loss goes from {seen.course.before:.3g} to "
        f"{seen.course.after:.3g}, at {rate / 10:g} to {less.after:.3g}."
    )
    ratio = seen.course.after / max(abs(seen.course.before), 1e-12)
    return Sign(ratio, 1.0, detail=detail)


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
