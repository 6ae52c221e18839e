"""What the user's own training step does, seen while it runs."""

import math
from functools import partial

from .check import Sign, check
from .reach import listed
from .seen import Seen
from .step_record import FORESEEN, StepRecord

# Share of the updates that must show a fault, share of the loss's gradient that reaches
# the optimiser, fall of a rate within twenty updates: our choice.
MOST, SHRUNK, KILLED = 0.8, 0.01, 5.0
# The same within sixty updates: our choice.
GONE = 100.0
_SEEN = "twenty calls of the step, undone afterwards"
of_step = partial(check, source=_SEEN, confidence="measured")


def _record(seen: Seen) -> StepRecord | None:
    """Return what the step did, if it ran without an error."""
    course = seen.own_step
    return None if course is None or course.error else course.record


@of_step(
    "gradients-not-cleared",
    "sick",
    "Gradients are not cleared between updates",
    source=_SEEN + "; backward() adds to what is in .grad",
    repaired_by="Call optimizer.zero_grad() before backward()",
)
def gradients_not_cleared(seen: Seen) -> Sign | None:
    """Each update uses the sum of all gradients so far, so that steps grow and point
    to where the network was long ago.
    """
    record = _record(seen)
    if record is None or len(record.updates) < 3:
        return None
    share = record.reused / (len(record.updates) - 1)
    if share < MOST:
        return None
    return Sign(share, MOST)


@of_step(
    "cleared-before-update",
    "sick",
    "The optimiser finds no gradient",
    repaired_by="Call zero_grad() before backward(), and step() after it",
)
def cleared_before_update(seen: Seen) -> Sign | None:
    """The step goes backward and updates, but at the update every gradient is zero or
    missing: zero_grad() is called between the two, or step() before backward().
    """
    record = _record(seen)
    if record is None or len(record.updates) < 3 or not record.arrived:
        return None
    share = record.emptied / len(record.updates)
    if share < MOST:
        return None
    return Sign(share, MOST)


@of_step(
    "step-without-gradient",
    "sick",
    "No gradient reaches the model in your training step",
    repaired_by="Call backward() on the loss itself",
)
def step_without_gradient(seen: Seen) -> Sign | None:
    """The loss that was given has a gradient, but no parameter gets one while the step
    runs: backward() is missing, or is called on a value that is detached or comes from
    another model.
    """
    record = _record(seen)
    if record is None or record.arrived or record.moves:
        return None
    if not seen.reached:
        return None  # which has checks of its own
    return Sign(0.0, above=False, detail=f"No gradient in {record.calls} calls.")


@of_step(
    "no-update",
    "sick",
    "The step never updates the model",
    repaired_by="Call optimizer.step() after backward()",
)
def no_update(seen: Seen) -> Sign | None:
    """Gradients arrive, but no optimiser that holds parameters of the model makes an
    update: step() is not called, or the optimiser belongs to another model.
    """
    record = _record(seen)
    if record is None or record.updates or record.moves or not record.arrived:
        return None
    detail = f"There is none in {record.calls} calls."
    if record.others:
        detail += " The optimiser that steps holds parameters of another model."
    return Sign(0.0, 1.0, above=False, detail=detail)


@of_step(
    "gradients-discarded",
    "warning",
    "Gradients are cleared before they are used",
    repaired_by="Clear gradients after an update, not at each batch",
)
def gradients_discarded(seen: Seen) -> Sign | None:
    """Gradients are to be accumulated over several batches, but are cleared at each, so
    that an update uses the last batch alone.
    """
    record = _record(seen)
    if record is None or not record.updates or record.calls < 4:
        return None
    share = len(record.wasted) / record.calls
    if share < 0.3:
        return None
    detail = f"The gradients of {share:.0%} of the batches are never used."
    return Sign(share, 0.3, detail=detail)


@of_step(
    "gradients-shrunk",
    "sick",
    "The optimiser gets a tiny part of the gradient",
    source=_SEEN + "; compared with the gradient of the loss; the level is ours",
    repaired_by="Clip at a length that gradients really have, such as 1",
    kind="rate",
)
def gradients_shrunk(seen: Seen) -> Sign | None:
    """Between backward() and the update gradients become far smaller, so that nothing
    moves: they are clipped to nearly nothing, clipped before they are unscaled, or the
    loss is divided more than once.
    """
    record = _record(seen)
    if record is None or not record.simple or not record.lengths[0]:
        return None
    grads = [g for g in seen.gradients.values() if g is not None]
    whole = math.hypot(*(float(g.double().norm()) for g in grads))
    share = record.lengths[0] / whole if whole else 1.0
    if share > SHRUNK or not seen.step_hinders:
        return None
    detail = f"Of a gradient of length {whole:.3g} it gets {record.lengths[0]:.3g}."
    return Sign(share, SHRUNK, above=False, detail=detail)


@of_step(
    "gradients-not-unscaled",
    "sick",
    "The optimiser gets gradients of a scaled loss",
    source="torch.amp.GradScaler: scaler.step(optimizer) divides by the scale",
    repaired_by="Call scaler.step(optimizer) and scaler.update()",
    kind="rate",
)
def gradients_not_unscaled(seen: Seen) -> Sign | None:
    """The loss is multiplied by the scale of a GradScaler, and the optimiser gets
    gradients that were not divided by it.
    """
    record, own = _record(seen), seen.own_step
    if record is None or not record.simple or own is None:
        return None
    grads = [g for g in seen.gradients.values() if g is not None]
    whole = math.hypot(*(float(g.double().norm()) for g in grads))
    grown = record.lengths[0] / whole if whole else 1.0
    if grown < 1e3 or not math.isfinite(grown):
        return None
    return Sign(grown, 1e3, detail=f"They are {grown:.3g} times longer.")


@of_step(
    "schedule-ends-training",
    "sick",
    "The schedule makes the learning rate zero",
    source=_SEEN + "; the level is ours",
    repaired_by="Step the schedule once per epoch, or over more steps",
    kind="rate",
)
def schedule_ends_training(seen: Seen) -> Sign | None:
    """Within the first updates the rate is zero, or falls so fast that nothing moves
    soon: a schedule for epochs is stepped at each batch, its factor is rounded down to
    0, or the schedule of a warm-up is never stepped.
    """
    record = _record(seen)
    if record is None or len(record.rates) < 3 or not record.simple:
        return None
    first, last = max(record.rates), record.rates[-1]
    if not first:
        detail = f"It is 0 in all of the first {len(record.rates)} updates."
        return Sign(0.0, 1e-12, above=False, detail=detail)
    later = record.later[-1] if record.later else last
    if later <= first / GONE and later == min(record.later):
        detail = f"It goes from {first:.3g} to {later:.3g} in {FORESEEN} updates."
        return Sign(first / max(later, 1e-300), GONE, detail=detail)
    if last > first / KILLED or last > min(record.rates):
        return None
    detail = f"It goes from {first:.3g} to {last:.3g} in {len(record.rates)} updates."
    return Sign(first / max(last, 1e-300), KILLED, detail=detail)


@of_step(
    "step-in-eval-mode",
    "warning",
    "The step trains the model in eval mode",
    repaired_by="Call model.train() at the start of the step",
    kind="mode",
)
def step_in_eval_mode(seen: Seen) -> Sign | None:
    """The model was given in train mode, and the step runs its norm or dropout layers
    in eval mode: eval() is called, and train() is not called after it.
    """
    record = _record(seen)
    if record is None or not record.eval_only or record.calls < 2:
        return None
    return Sign(
        float(len(record.eval_only)),
        where=tuple(record.eval_only),
        detail=f"Here: {listed(record.eval_only)}.",
        repair="# model.train()\n",
    )


@of_step(
    "step-ignores-batch",
    "sick",
    "The step trains on the same inputs at every call",
    repaired_by="Use the batch that the step is given",
)
def step_ignores_batch(seen: Seen) -> Sign | None:
    """The model gets the same inputs for different batches, so that it
    memorises one batch.
    """
    record = _record(seen)
    if record is None or not record.repeated_input:
        return None
    return Sign(1.0)


@of_step(
    "optimizer-made-again",
    "warning",
    "The step makes a new optimiser at each call",
    repaired_by="Make the optimiser once, before the loop",
)
def optimizer_made_again(seen: Seen) -> Sign | None:
    """Momentum and the averages of Adam start again at each update."""
    record = _record(seen)
    if record is None or len(record.updates) < 4:
        return None
    if len(record.optimizers) < len(record.updates):
        return None
    return Sign(float(len(record.optimizers)), 1.0)


@of_step(
    "step-learns-less",
    "warning",
    "The step does not lower the loss, plain updates do",
    source=_SEEN + ", compared with zero_grad, backward and step alone",
    repaired_by="Start from a plain step, and add one part at a time",
)
def step_learns_less(seen: Seen) -> Sign | None:
    """With the same optimiser, plain updates lower the loss on these batches, and the
    step does not: something in it undoes or hinders them.
    """
    record, own = _record(seen), seen.own_step
    if record is None or own is None or not record.simple or not seen.step_hinders:
        return None
    detail = f"It changes the loss from {own.before:.3g} to {own.after:.3g}."
    return Sign(own.gain, 0.1, above=False, detail=detail)
