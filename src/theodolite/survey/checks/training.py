"""What the trial steps show: rates, and whether the network learns at all."""

import math
from functools import partial

from torch import nn

from .check import Sign, check
from .reach import warming
from .seen import LOSSES, STUCK, Seen

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
    "evaluation-fails",
    "warning",
    "What is learned in train mode is lost in eval mode",
    source="the loss after a hundred steps, in both modes; the levels are ours",
    repaired_by="Make layers compute the same in eval mode, up to statistics",
    kind="mode",
)
def evaluation_fails(seen: Seen) -> Sign | None:
    """After the trial steps the loss is low in train mode, and on the same batches in
    eval mode it is above that of an answer that ignores the inputs: running statistics
    are not those of the data, or a layer does something else in eval mode.
    """
    kept = [m for m in seen.model.modules() if _of_own(m)]
    pace = [getattr(m, "momentum", None) for m in seen.model.modules()]
    if any(isinstance(m, float) and (1 - m) ** seen.long > 0.1 for m in pace):
        return None  # statistics take longer by intention
    if not kept or seen.chance is None or not seen.data_known:
        return None
    if seen.course.error or not seen.course.gain > 0:
        return None
    if seen.trained.looked is None or not seen.below_chance(seen.trained) > LEARNED:
        return None
    after = seen.trained.looked[0]
    lost = (after - seen.trained.after) / max(abs(seen.chance), 1e-12)
    if after < seen.chance or not lost > 2 * LEARNED:
        return None
    detail = (
        f"It is {seen.trained.after:.3g} in train mode and {after:.3g} in eval mode."
    )
    return Sign(lost, 2 * LEARNED, detail=detail)


def _of_own(module: nn.Module) -> bool:
    """Return whether a layer that torch has not written may differ between modes."""
    kind = type(module)
    if kind.__module__.startswith("torch."):
        return False
    names = getattr(getattr(kind.forward, "__code__", None), "co_names", ())
    held = any(b.is_floating_point() for b in module.buffers(recurse=False))
    return held or "training" in names


@of_trials(
    "targets-without-effect",
    "warning",
    "The loss becomes low whatever the targets",
    source="the loss after a hundred steps, and with targets exchanged between samples",
    repaired_by="Look at which terms of the loss compare outputs with targets",
    about="labels",
)
def targets_without_effect(seen: Seen) -> Sign | None:
    """It falls far, and is as low when the samples exchange their targets, which
    differ: an answer that is the same for all samples satisfies it. A term is missing,
    as that of the other class, or a mask leaves out what counts.
    """
    last, target = seen.value_call, seen.target
    if last is None or target is None or not target.numel() or seen.stuck:
        return None
    if "target" not in seen.trace.origins(last) or seen.longer is not seen.trained:
        return None
    if seen.trained.looked is None or not seen.trained.gain > 0.5:
        return None
    if seen.chance is None or seen.chance >= 0.01 * seen.trained.before:
        return None  # a constant answer leaves something to learn
    apart = abs(seen.trained.looked[2] - seen.trained.after) / abs(seen.trained.before)
    if not apart < 0.01 or len(target.unique()) < 2:
        return None
    return Sign(apart, 0.01, above=False)


@of_trials(
    "another-term-outweighs",
    "warning",
    "Another term of the loss outweighs the one that compares outputs and targets",
    source="both terms before and after a hundred steps; the levels are ours",
    repaired_by="Give the other term a smaller factor, and check its sign",
)
def another_term_outweighs(seen: Seen) -> Sign | None:
    """Training lowers the sum, and the part that compares outputs with targets gets no
    lower than constant outputs would make it: a penalty is too strong, or has the wrong
    sign, so that it falls without end.
    """
    call, judged = seen.loss_call, seen.judged
    if call is None or judged is None or not seen.data_known:
        return None
    part = float(call.outputs[0].detach().mean())
    other = seen.value - part
    small = abs(other) < 1e-3 * abs(part)
    if small or len(seen.trace.named(*LOSSES)) > 1 or not math.isfinite(seen.value):
        return None
    if call.outputs[0].ndim or seen.trained.error or seen.trained.looked is None:
        return None
    after = seen.trained.looked[1]
    fell = seen.trained.before - seen.trained.after
    if not fell > LEARNED * max(abs(seen.trained.before), abs(part)):
        return None
    if not after > 0.98 * part or not abs(part) > 0:
        return None
    detail = (
        f"The sum falls by {fell:.3g}, that part goes from {part:.3g} to {after:.3g}."
    )
    return Sign(after / part, 0.98, detail=detail)


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
