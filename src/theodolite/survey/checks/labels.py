"""Labels and targets: what the network is to learn."""

import torch
from torch import Tensor

from theodolite.instruments import tensors_in

from ..measures.context import targets_in
from .check import Sign, check
from .seen import SQUARES, Seen

# Share of the most frequent class, smoothing of labels, size of targets over that of
# outputs, share of the variance of labels between batches: our choice.
ONE_CLASS, SMOOTHED, LARGE, TINY, SORTED = 0.98, 0.5, 100.0, 1e-3, 0.75
# Logarithm of a ratio of class weights, and correlation with counts: our choice.
UNEQUAL, ALIKE = 1.0, 0.8
# Ratio of the widths of two columns of the targets: our choice.
UNEVEN = 50.0
_SIGNED = ("soft_margin_loss", "hinge_embedding_loss", "cosine_embedding_loss")
_SIGNED += ("margin_ranking_loss",)


def _all_labels(seen: Seen) -> Tensor | None:
    """Return the targets of all batches as one column, where they are numbers."""
    parts = [targets_in(seen.batches[n]) for n in range(min(len(seen.batches), 16))]
    if not all(isinstance(p, Tensor) and p.numel() for p in parts):
        return None
    return torch.cat([p.detach().reshape(-1).double() for p in parts])


@check(
    "labels-constant",
    "sick",
    "All targets are the same",
    source="counted over the batches given",
    repaired_by="Look at how the targets are made",
    about="labels",
)
def labels_constant(seen: Seen) -> Sign | None:
    """A network that ignores its inputs fits these targets."""
    labels = _all_labels(seen)
    if labels is None or len(labels) < 8 or "binary" in seen.loss_name:
        return None
    if not seen.loss_name or bool((labels != labels[0]).any()):
        return None
    return Sign(1.0, detail=f"All {len(labels)} are {float(labels[0]):g}.")


@check(
    "one-class-dominates",
    "warning",
    "Nearly all labels are of one class",
    source="counted; the level of 0.98 is ours",
    repaired_by="Balance the classes, or weight them in the loss",
    confidence="rule of thumb",
    about="labels",
)
def one_class_dominates(seen: Seen) -> Sign | None:
    """Always answering this class is right nearly always, so that the loss says
    little about the other classes.
    """
    labels = _all_labels(seen)
    if labels is None or len(labels) < 64 or seen.classes is None:
        return None
    kept = labels[labels >= 0]
    counts = kept.unique(return_counts=True)[1].double()
    share = float(counts.max() / counts.sum()) if len(counts) > 1 else 0.0
    if share <= ONE_CLASS:
        return None
    return Sign(share, ONE_CLASS, detail=f"Its share is {share:.1%}.")


@check(
    "labels-ignored",
    "sick",
    "The loss ignores all labels",
    source="ignore_index of cross_entropy",
    repaired_by="Use -100 for padding alone",
    about="labels",
)
def labels_ignored(seen: Seen) -> Sign | None:
    """Every label equals ignore_index, so that the loss has no term."""
    if seen.classes is None or seen.judged is None or len(seen.classes[1]):
        return None
    return Sign(1.0)


@check(
    "square-loss-on-classes",
    "warning",
    "A square loss compares one output with class numbers",
    source="class numbers have no order and no distance",
    repaired_by="Use one output per class and cross_entropy",
    kind="surgery",
    confidence="rule of thumb",
    about="labels",
)
def square_loss_on_classes(seen: Seen) -> Sign | None:
    """The targets are class numbers. A square loss treats class 2 as twice class 1,
    and an answer between two classes as half right.
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
    "targets-no-distribution",
    "warning",
    "Targets of the cross-entropy do not sum to one",
    source="cross_entropy with float targets wants class probabilities",
    repaired_by="Use BCEWithLogitsLoss for several labels per sample",
    kind="surgery",
    about="labels",
)
def targets_no_distribution(seen: Seen) -> Sign | None:
    """With float targets the cross-entropy takes them for probabilities of classes.
    Several labels per sample want a sigmoid and binary cross-entropy.
    """
    if seen.loss_name != "cross_entropy" or not seen.judged:
        return None
    targets = seen.judged[1]
    if not targets.is_floating_point() or targets.ndim < 2:
        return None
    off = float((targets.double().sum(1) - 1).abs().mean())
    return Sign(off, 0.05) if off > 0.05 else None


@check(
    "target-is-input",
    "sick",
    "The network is given the target as an input",
    source="compared number by number",
    repaired_by="Shift the decoder's inputs right behind a start token",
    about="labels",
)
def target_is_input(seen: Seen) -> Sign | None:
    """One of several inputs equals the targets, so that the network copies it and
    fails where the target is not known.
    """
    target = seen.target
    if target is None or target.is_floating_point() or len(seen.inputs) < 2:
        return None
    if target.ndim < 2 or not any(torch.equal(t, target) for t in seen.inputs):
        return None
    return Sign(1.0, repair="# decoder_in = cat([start, target[:, :-1]], dim=1)\n")


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
        float(
            (
                rows[:, : given.shape[1] - ahead - 1]
                == given[:, ahead:][:, :length][:, : given.shape[1] - ahead - 1]
            )
            .double()
            .mean()
        )
        if length >= given.shape[1] - ahead - 1
        else 0.0
        for ahead in (1, 2)
    ]
    if agree[1] < 0.99 or agree[0] > 0.9:
        return None
    return Sign(2.0, 1.0)


@check(
    "class-weights-inverted",
    "warning",
    "The loss gives the rarest classes the smallest weights",
    source="Japkowicz & Stephen (2002): weights go against frequency; levels are ours",
    repaired_by="Use weights of one over the frequency of the class",
    confidence="rule of thumb",
    about="labels",
)
def class_weights_inverted(seen: Seen) -> Sign | None:
    """Weights of classes grow with their frequency, so that the loss ignores what it
    sees seldom. Balancing wants the opposite.
    """
    call, labels = seen.loss_call, _all_labels(seen)
    weight = call.kwargs.get("weight") if call is not None else None
    if seen.classes is None or labels is None or not isinstance(weight, Tensor):
        return None
    counts = torch.bincount(labels[labels >= 0].long(), minlength=len(weight)).double()
    if len(counts) != len(weight) or bool((counts == 0).any() | (weight <= 0).any()):
        return None
    logs = torch.stack([counts.log(), weight.detach().double().log()])
    ranges = logs.amax(1) - logs.amin(1)
    related = float(torch.corrcoef(logs)[0, 1])
    if float(ranges.min()) < UNEQUAL or related < ALIKE:
        return None
    detail = f"Their logarithms have a correlation of {related:.2f} with the counts."
    return Sign(related, ALIKE, detail=detail)


@check(
    "labels-smoothed-away",
    "warning",
    "Labels are smoothed until little is left of them",
    source="Szegedy et al. (2016): 0.1; the level of 0.5 is ours",
    repaired_by="Use a label smoothing of 0.1",
    confidence="rule of thumb",
)
def labels_smoothed_away(seen: Seen) -> Sign | None:
    """More than half of each label is spread evenly over all classes."""
    call = seen.loss_call
    amount = float(call.kwargs.get("label_smoothing") or 0.0) if call else 0.0
    return Sign(amount, SMOOTHED) if amount > SMOOTHED else None


@check(
    "targets-want-signs",
    "sick",
    "The loss expects targets of -1 and 1, and gets 0 and 1",
    source="definitions of torch: these losses multiply by the target",
    repaired_by="Use 2 * targets - 1",
    about="labels",
)
def targets_want_signs(seen: Seen) -> Sign | None:
    """Samples with target 0 have a constant loss, and nothing is learned from them."""
    call = seen.loss_call
    if seen.loss_name not in _SIGNED or call is None:
        return _hinge_of_own(seen)
    place = 1 if seen.loss_name in _SIGNED[:2] else 2
    targets = call.given(place, "target")
    if not isinstance(targets, Tensor) or not bool((targets == 0).any()):
        return None
    share = float((targets == 0).double().mean())
    return Sign(share, repair="# loss(outputs, 2 * targets - 1)\n")


def _hinge_of_own(seen: Seen) -> Sign | None:
    """Return the same of a margin that is written by hand: relu(1 - y * output)."""
    target = seen.target
    if target is None or set(target.unique().tolist()) != {0, 1}:
        return None
    for call in seen.trace.named("mul"):
        if not call.after_model or len(call.inputs) != 2:
            continue
        kinds = [
            seen.trace.kinds(t, s)
            for t, s in zip(call.inputs, call.sources, strict=True)
        ]
        if {"target"} not in kinds or not any("weight" in kind for kind in kinds):
            continue
        for one in seen.trace.readers(call):
            cut = {c.name for c in seen.trace.readers(one)}
            if one.name in ("sub", "rsub") and cut & {"relu", "clamp", "clamp_min"}:
                plain = [
                    t
                    for t, kind in zip(call.inputs, kinds, strict=True)
                    if kind == {"target"}
                ]
                if bool((plain[0] == 0).any()):
                    share = float((target == 0).double().mean())
                    return Sign(share, repair="# 2 * targets - 1\n")
    return None


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


@check(
    "target-is-noisy-input",
    "sick",
    "The target of the loss is the input of the network",
    source="tensors of the traced pass, compared",
    repaired_by="Compare the outputs with the noise, or with the clean input",
)
def target_is_noisy_input(seen: Seen) -> Sign | None:
    """Noise is added to the input, or the batch holds another tensor of the same shape
    that nothing reads, and the loss compares the outputs with the input itself: the
    network learns to copy it.
    """
    call = seen.loss_call
    target = call.given(1, "target") if call is not None else None
    given = [args for path, _, args in seen.trace.entered if not path]
    if call is None or not isinstance(target, Tensor) or len(call.inputs) < 2:
        return None
    inputs = [t for args in given for t in tensors_in(args)]
    if not any(t is target for t in inputs):
        return None
    kinds = seen.trace.kinds(call.inputs[1], call.sources[1])
    read = {id(t) for each in seen.trace.calls for t in each.inputs}
    unused = [t for t in tensors_in(seen.batch) if id(t) not in read]
    left_out = any(t.shape == target.shape and t.is_floating_point() for t in unused)
    return Sign(1.0) if "noise" in kinds or left_out else None
