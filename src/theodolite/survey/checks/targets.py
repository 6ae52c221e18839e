"""Targets and outputs: what the loss is given."""

import math

import torch
from torch import Tensor

from .check import Sign, check
from .seen import LOSSES, SQUARES, Seen
from .trace import Call

# Share of the most frequent class: our choice.
ONE_CLASS = 0.98
# Share of targets out of reach: our choice.
UNREACHED = 0.05
_RANGES = {
    "sigmoid": (0.0, 1.0),
    "softmax": (0.0, 1.0),
    "hardsigmoid": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
    "hardtanh": (-1.0, 1.0),
    "relu": (0.0, math.inf),
    "relu6": (0.0, 6.0),
    "softplus": (0.0, math.inf),
    "exp": (0.0, math.inf),
    "log_softmax": (-math.inf, 0.0),
    "logsigmoid": (-math.inf, 0.0),
}


@check(
    "shapes-broadcast",
    "sick",
    "Outputs and targets have different shapes and are broadcast",
    source="broadcasting: (N, 1) against (N,) gives (N, N)",
    repaired_by="Give outputs and targets the same shape",
    kind="surgery",
    about="labels",
)
def shapes_broadcast(seen: Seen) -> Sign | None:
    """Every output is compared with the targets of all samples, so that the best
    answer is their mean. Squeeze the outputs or unsqueeze the targets.
    """
    for call in seen.trace.calls:
        pair = _compared(seen, call)
        if pair is None or not call.outputs:
            continue
        outputs, targets = pair
        made = torch.broadcast_shapes(outputs.shape, targets.shape)
        if math.prod(made) > max(outputs.numel(), targets.numel()) > 1 or (
            call.name in SQUARES and outputs.shape != targets.shape
        ):
            shapes = f"{tuple(outputs.shape)} and {tuple(targets.shape)}"
            line = "loss(outputs.squeeze(-1), targets)"
            if targets.ndim > outputs.ndim:
                line = "loss(outputs, targets.squeeze(-1))"
            return Sign(
                value=float(math.prod(made)),
                threshold=float(outputs.numel()),
                detail=f"Here shapes {shapes} become {tuple(made)} in {call.name}().",
                repair=f"# {line}\n",
            )
    return None


def _compared(seen: Seen, call: Call) -> tuple[Tensor, Tensor] | None:
    """Return outputs and targets that a call combines entry by entry."""
    names = (*SQUARES, "binary_cross_entropy", "binary_cross_entropy_with_logits")
    if call.name not in (*names, "sub", "mul", "pow") or len(call.inputs) < 2:
        return None
    kinds = [
        seen.trace.kinds(t, s)
        for t, s in zip(call.inputs[:2], call.sources[:2], strict=True)
    ]
    for place in (0, 1):
        if kinds[place] == {"target"} and "weight" in kinds[1 - place]:
            pair = call.inputs[1 - place], call.inputs[place]
            try:
                torch.broadcast_shapes(pair[0].shape, pair[1].shape)
            except RuntimeError:
                return None
            return pair
    return None


@check(
    "softmax-of-one",
    "sick",
    "A softmax is taken over one unit",
    source="the softmax of one number is 1",
    repaired_by="Use a sigmoid with binary cross-entropy, or one unit per class",
    kind="surgery",
)
def softmax_of_one(seen: Seen) -> Sign | None:
    """Its value is 1 whatever the input, and every gradient behind it is zero."""
    for call in seen.trace.named("softmax", "log_softmax", "cross_entropy"):
        tensor = call.inputs[0]
        axis = call.given(1, "dim") if call.name != "cross_entropy" else 1
        if tensor.ndim < 2 or "weight" not in seen.trace.origins(call):
            continue
        if isinstance(axis, int) and tensor.shape[axis] == 1:
            repair = "# nn.BCEWithLogitsLoss()(outputs.squeeze(1), targets.float())\n"
            return Sign(
                value=1.0,
                above=False,
                threshold=2.0,
                where=(call.module,),
                repair=repair,
            )
    return None


@check(
    "softmax-over-batch",
    "sick",
    "A softmax is taken over the samples of the batch",
    source="probabilities of a sample sum to one over classes",
    repaired_by="Take the softmax over the classes: dim=1",
    kind="surgery",
)
def softmax_over_batch(seen: Seen) -> Sign | None:
    """Axis 0 holds the samples: each class then gets a total of 1 over the batch, and
    the answer for a sample depends on the others.
    """
    for call in seen.trace.named("softmax", "log_softmax"):
        tensor, axis = call.inputs[0], call.given(1, "dim")
        if axis is None:
            axis = 0 if tensor.ndim in (0, 1, 3) else 1
        first = axis in (0, -tensor.ndim) and tensor.ndim > 1
        ours = "weight" in seen.trace.origins(call) and call is seen.output_call
        if first and ours and tensor.shape[0] == seen.samples > 1:
            return Sign(value=0.0, where=(call.module,), repair="# softmax(dim=1)\n")
    return None


@check(
    "probabilities-as-logits",
    "sick",
    "The loss applies softmax or sigmoid to what is a probability already",
    source="the least cross-entropy of scores within [0, 1]: log(1 + (C − 1)/e)",
    repaired_by="Give the loss the outputs before the softmax or sigmoid",
    kind="surgery",
    about="network",
)
def probabilities_as_logits(seen: Seen) -> Sign | None:
    """The loss takes scores and turns them into probabilities itself. Given
    probabilities it cannot become small, and gradients are small. Remove the last
    softmax or sigmoid, or use the loss of probabilities.
    """
    if not LOSSES.get(seen.loss_name) or not seen.judged:
        return None
    outputs, call = seen.judged[0], seen.output_call
    last = call.name if call is not None else ""
    if seen.loss_name == "cross_entropy" and outputs.ndim > 1 and outputs.shape[1] > 1:
        sums = outputs.double().sum(1)
        likely = bool((outputs >= 0).all()) and bool(((sums - 1).abs() < 1e-4).all())
    else:
        likely = False
    if not likely and last not in ("softmax", "sigmoid"):
        return None
    where = (call.module,) if call is not None and call.module else ()
    return Sign(value=1.0, where=where, detail=f"Here the last function is {last}().")


@check(
    "not-log-probabilities",
    "sick",
    "The loss wants log-probabilities and gets something else",
    source="nll_loss reads log-probabilities, whose exponentials sum to one",
    repaired_by="Use cross_entropy, or log_softmax before nll_loss",
    kind="surgery",
)
def not_log_probabilities(seen: Seen) -> Sign | None:
    """The negative log-likelihood picks the output of the true class. Without a
    log-softmax it has no lower bound, and its gradient ignores the other classes.
    """
    if seen.loss_name != "nll_loss" or not seen.judged or seen.judged[0].ndim < 2:
        return None
    sums = seen.judged[0].double().exp().sum(1)
    off = float((sums - 1).abs().max())
    if off < 1e-3:
        return None
    return Sign(value=off, threshold=1e-3, repair="# loss = nn.CrossEntropyLoss()\n")


@check(
    "activation-before-loss",
    "sick",
    "The scores pass a rectifier before the loss",
    source="a rectifier removes negative scores and their gradient",
    repaired_by="Remove the activation behind the last layer",
    kind="surgery",
)
def activation_before_loss(seen: Seen) -> Sign | None:
    """The loss of classes takes scores of either sign. Behind a rectifier none is
    negative, and a score that is shut gets no gradient.
    """
    call = seen.output_call
    if not LOSSES.get(seen.loss_name) or call is None:
        return None
    if call.name not in ("relu", "relu6", "hardtanh", "threshold", "clamp"):
        return None
    return Sign(value=1.0, where=(call.module,), detail=f"Here it is {call.name}().")


@check(
    "targets-out-of-reach",
    "sick",
    "The last activation cannot give the values of the targets",
    source="ranges of the activations of torch",
    repaired_by="Remove the last activation, or scale the targets into its range",
    kind="surgery",
    about="labels",
)
def targets_out_of_reach(seen: Seen) -> Sign | None:
    """Outputs are limited by the last activation, and targets lie outside. A
    regression ends with a linear layer.
    """
    call, judged = seen.output_call, seen.judged
    if judged is None or seen.loss_name not in (
        *SQUARES,
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
    ):
        return None
    targets = judged[1].double()
    name = call.name if call is not None else ""
    low, high = _RANGES.get(name, (-math.inf, math.inf))
    if seen.loss_name not in SQUARES:
        low, high, name = 0.0, 1.0, seen.loss_name
    slack = 0.02 * (high - low) if math.isfinite(high - low) else 1e-6
    outside = ((targets < low - slack) | (targets > high + slack)).double().mean()
    if float(outside) <= UNREACHED:
        return None
    detail = (
        f"Here {float(outside):.0%} of the targets are outside of [{low:g}, {high:g}], "
        f"the range of {name}; they go from {float(targets.min()):.3g} to "
        f"{float(targets.max()):.3g}."
    )
    return Sign(value=float(outside), threshold=UNREACHED, detail=detail)


def _all_labels(seen: Seen) -> Tensor | None:
    """Return the targets of all batches as one column, where they are numbers."""
    from ..measures.site import targets_in

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
    return Sign(value=1.0, detail=f"All {len(labels)} are {float(labels[0]):g}.")


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
    return Sign(value=share, threshold=ONE_CLASS, detail=f"Its share is {share:.1%}.")


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
    return Sign(value=1.0)


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
    kinds = len(target.unique())
    if kinds < 3 or target.dtype == torch.uint8:
        return None
    return Sign(value=float(kinds), threshold=2.0, detail=f"There are {kinds} classes.")


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
    return Sign(value=off, threshold=0.05) if off > 0.05 else None


@check(
    "loss-below-zero",
    "sick",
    "The loss is below zero",
    source="cross-entropies and square losses are never negative",
    repaired_by="Check the sign of the loss and the range of the targets",
)
def loss_below_zero(seen: Seen) -> Sign | None:
    """Losses of this kind are never negative: the sign is wrong, or targets are not
    what the loss wants, so that training makes the network worse without end.
    """
    known = seen.loss_name not in (
        "",
        "gaussian_nll_loss",
        "poisson_nll_loss",
        "kl_div",
        "nll_loss",
    )
    if not known or not seen.value < 0 or len(seen.trace.named(*LOSSES)) > 1:
        return None
    return Sign(value=seen.value, above=False, detail=f"It is {seen.value:.3g}.")


@check(
    "summed-loss",
    "sick",
    "The loss is a sum over the batch, and the rate is made for a mean",
    source="the gradient of a sum is that of a mean times the batch size",
    repaired_by="Use reduction='mean'",
    kind="rate",
)
def summed_loss(seen: Seen) -> Sign | None:
    """The gradient grows with the number of samples, and the trial steps diverge at
    the rate in use and not at a smaller one.
    """
    call = seen.loss_call
    if call is None or call.kwargs.get("reduction") != "sum" or seen.samples < 2:
        return None
    value = float(call.outputs[0].detach())
    if not value or abs(seen.value) < 0.9 * abs(value) or not seen.diverges:
        return None
    return Sign(value=float(seen.samples), repair='# loss = Loss(reduction="mean")\n')
