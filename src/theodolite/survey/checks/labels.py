"""Labels and targets: what the network is to learn."""

import torch
from torch import Tensor

from ..measures.context import targets_in
from .check import Sign, check
from .seen import SQUARES, Seen

# Share of the most frequent class, size of targets over that of outputs, share of the
# variance of labels between batches: our choice.
ONE_CLASS, LARGE, TINY, SORTED = 0.98, 100.0, 1e-3, 0.75
# Ratio of the widths of two columns of the targets: our choice.
UNEVEN = 50.0


@check(
    "labels-constant",
    "sick",
    "Nearly all targets are the same",
    source="counted over the batches given; the level of 0.98 is ours",
    repaired_by="Look at how the targets are made; balance or weight the classes",
    about="labels",
)
def labels_constant(seen: Seen) -> Sign | None:
    """A network that always gives this answer, whatever its inputs, is right nearly
    always, so that the loss says little about anything else.
    """
    parts = [targets_in(seen.batches[n]) for n in range(min(len(seen.batches), 16))]
    if not all(isinstance(p, Tensor) and p.numel() for p in parts):
        return None
    labels = torch.cat([p.detach().reshape(-1).double() for p in parts])
    labels = labels[labels >= 0] if seen.classes is not None else labels
    if len(labels) < 8 or not seen.loss_name or "binary" in seen.loss_name:
        return None
    kinds, counts = labels.unique(return_counts=True)
    share = float(counts.max()) / len(labels)
    if share < 1 and (share <= ONE_CLASS or len(labels) < 64 or seen.classes is None):
        return None
    detail = f"Of {len(labels)}, {share:.1%} are {float(kinds[counts.argmax()]):g}."
    severity = "warning" if share < 1 else None
    return Sign(share, ONE_CLASS, detail=detail, severity=severity)


@check(
    "square-loss-on-classes",
    "note",
    "A square loss compares one output with class numbers",
    source="class numbers have no order and no distance",
    repaired_by="Use one output per class and cross_entropy",
    kind="surgery",
    confidence="rule of thumb",
    about="labels",
)
def square_loss_on_classes(seen: Seen) -> Sign | None:
    """The targets are class numbers. A square loss treats class 2 as twice class 1,
    and an answer between two classes as half right, which suits grades and counts.
    """
    target = seen.target
    if target is None or target.is_floating_point() or seen.loss_name not in SQUARES:
        return None
    if seen.judged is None or seen.judged[0].numel() != target.numel():
        return None
    if not torch.equal(seen.judged[1].double().flatten(), target.double().flatten()):
        return None  # another part of the batch is compared
    kinds = len(target.unique())
    if kinds < 3 or target.dtype == torch.uint8:
        return None
    return Sign(float(kinds), 2.0, detail=f"There are {kinds} classes.")


@check(
    "labels-shifted-twice",
    "sick",
    "Targets are two positions ahead of the inputs",
    source="tokens compared: the next token is one position ahead",
    repaired_by="Shift the labels once: in the data or in the model",
    about="labels",
)
def labels_shifted_twice(seen: Seen) -> Sign | None:
    """The loss compares each position with the token after the next. The labels are
    shifted in the data and again in the model.
    """
    tokens = [t for t in seen.inputs if t.ndim == 2 and not t.is_floating_point()]
    if not tokens or seen.classes is None or tokens[0].shape[1] < 5:
        return None
    labels, given = seen.classes[1], tokens[0]
    length = len(labels) // len(given)
    if length * len(given) != len(labels) or length > given.shape[1]:
        return None
    rows = labels.reshape(len(given), length)
    agree = [
        float((rows[:, :n] == given[:, ahead : ahead + n]).double().mean())
        if length >= n
        else 0.0
        for ahead, n in ((1, given.shape[1] - 2), (2, given.shape[1] - 3))
    ]
    if agree[1] < 0.99 or agree[0] > 0.9:
        return None
    return Sign(2.0, 1.0)


@check(
    "targets-unscaled",
    "warning",
    "The targets are far larger or smaller than the outputs",
    source="sizes compared, and ten trial steps; the level is ours",
    repaired_by="Standardise the targets",
    confidence="rule of thumb",
    about="labels",
)
def targets_unscaled(seen: Seen) -> Sign | None:
    """A network puts out numbers near 1, and its rates are made for these. It takes
    very many steps to reach targets that are far away. Subtract their mean, divide by
    their standard deviation, and undo that in predictions.
    """
    if seen.loss_name not in SQUARES or seen.judged is None:
        return None
    outputs, targets = (t.double() for t in seen.judged)
    if not bool(targets.isfinite().all()) or not targets.numel():
        return None
    if targets.ndim == 2 and 1 < targets.shape[1] <= 64 and len(targets) > 8:
        spread = targets.std(0)
        least = float(spread[spread > 0].min()) if bool(spread.any()) else 1.0
        uneven = float(spread.max()) / least
        if uneven > UNEVEN and seen.targets and not seen.copies_inputs:
            detail = (
                f"One column of the targets is {uneven:.3g} times as wide as another."
            )
            return Sign(uneven, UNEVEN, detail=detail)
    size = float(targets.square().mean().sqrt())
    made = float(outputs.square().mean().sqrt())
    if 0 < size < TINY < made:
        detail = f"Their size is {size:.3g}, that of the outputs {made:.3g}."
        return Sign(size, TINY, above=False, detail=detail)
    ratio = size / max(1.0, made)
    if not ratio > LARGE or seen.course.gain > 0.5:
        return None
    detail = f"Their size is {size:.3g}, {ratio:.3g} times that of the outputs."
    return Sign(ratio, LARGE, detail=detail)


@check(
    "batches-sorted",
    "warning",
    "Batches are sorted by their labels",
    source="variance of labels between and within batches; the level is ours",
    repaired_by="Shuffle the samples: DataLoader(shuffle=True)",
    confidence="rule of thumb",
    about="labels",
)
def batches_sorted(seen: Seen) -> Sign | None:
    """Each batch holds samples of nearly one label, and other batches hold others, so
    that each update unlearns what the last one taught.
    """
    parts = [targets_in(seen.batches[n]) for n in range(min(len(seen.batches), 16))]
    if len(parts) < 4 or not all(isinstance(p, Tensor) and p.ndim == 1 for p in parts):
        return None
    if any(p.is_floating_point() for p in parts):  # values may follow in time
        return None
    read = {id(t) for call in seen.trace.calls for t in call.inputs}
    if min(len(p) for p in parts) < 8 or id(parts[0]) not in read:
        return None
    rows = [p.double() for p in parts]
    within = sum(float(row.var(unbiased=False)) for row in rows) / len(rows)
    whole = float(torch.cat(rows).var(unbiased=False))
    share = 1 - within / whole if whole else 0.0
    return Sign(share, SORTED) if share > SORTED else None
