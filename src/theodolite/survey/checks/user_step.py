"""What the user's own training step does, seen while it runs."""

from functools import partial

from .check import Sign, check
from .reach import listed
from .seen import Seen
from .step_record import FORESEEN, StepRecord

# Share of the updates that must show a fault, fall of a rate within twenty updates: our
# choice.
MOST, KILLED = 0.8, 5.0
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
    "step-learns-less",
    "warning",
    "The step does not lower the loss, plain updates do",
    source=_SEEN + ", compared with zero_grad, backward and step alone",
    repaired_by="Start from a plain step, and add one part at a time",
)
def step_learns_less(seen: Seen) -> Sign | None:
    """With the same optimiser, plain updates lower the loss on these batches, and the
    step does not: something in it undoes or hinders them. Look for backward() on what
    is detached, zero_grad() before step(), an optimiser of another model, clipping to
    nearly nothing, and gradients that are not unscaled.
    """
    record, own = _record(seen), seen.own_step
    if record is None or own is None or not seen.step_hinders:
        return None
    if record.updates and not record.simple:
        return None  # which may lower another loss
    detail = f"It changes the loss from {own.before:.3g} to {own.after:.3g}."
    if not record.moves:
        detail = f"No weight of the model changes in {record.calls} calls of it."
    return Sign(own.gain, 0.1, above=False, detail=detail)
