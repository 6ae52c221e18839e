"""Targets and outputs: what the loss is given."""

import math

import torch
from torch import Tensor

from .check import Sign, check
from .seen import LOSSES, SQUARES, Seen
from .trace import Call

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
                float(math.prod(made)),
                float(outputs.numel()),
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
            return Sign(1.0, 2.0, above=False, where=call.module, repair=repair)
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
            return Sign(0.0, where=call.module)
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
    return Sign(1.0, where=where, detail=f"Here the last function is {last}().")


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
    if call is not None and name in ("clamp", "clip"):
        ends = call.given(1, "min"), call.given(2, "max")
        low, high = (
            float(end) if isinstance(end, int | float) else other
            for end, other in zip(ends, (low, high), strict=True)
        )
    if name == "softmax" and targets.ndim == 2 and targets.shape[1] > 1:
        several = float(((targets.sum(1) - 1).abs() > 0.05).double().mean())
        if several > UNREACHED and bool((targets >= 0).all()):
            detail = f"A softmax sums to one, and {several:.0%} of the targets do not."
            return Sign(several, UNREACHED, detail=detail)
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
    return Sign(float(outside), UNREACHED, detail=detail)
