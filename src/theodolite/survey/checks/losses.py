"""Losses: their sign, their scale and what they are given."""

import math

from .check import Sign, check
from .seen import LOSSES, RESHAPING, SQUARES, Seen

# Price of one nat of the prior over the most that a reconstruction can gain: our
# choice. Above 1 the best code is none.
PRICE = 2.0
# Loss at the start over that of a guess: our choice.
HIGH = 10.0
# Spread of the outputs over that of the targets: our choice.
WIDER = 20.0
_LINEAR = RESHAPING | frozenset("mean sum gather take_along_dim index_select".split())


@check(
    "not-log-probabilities",
    "sick",
    "The loss expects log-probabilities and gets something else",
    source="nll_loss reads log-probabilities, whose exponentials sum to one",
    repaired_by="Use cross_entropy, or log_softmax before nll_loss",
    kind="surgery",
)
def not_log_probabilities(seen: Seen) -> Sign | None:
    """The negative log-likelihood picks the output of the true class, and kl_div takes
    the outputs for logarithms. Without a log-softmax such a loss has no lower bound, or
    another minimum.
    """
    if not seen.judged or seen.judged[0].ndim < 2:
        return None
    outputs = seen.judged[0].double()
    if seen.loss_name == "kl_div":
        # Any function of one sign may be a log-density; probabilities are none.
        off = float((outputs >= 0).double().mean()) if bool((outputs >= 0).all()) else 0
        logs = bool(seen.loss_call and seen.loss_call.kwargs.get("log_target"))
        off = max(off, float((seen.judged[1] < 0).double().mean()) * (not logs))
    elif seen.loss_name == "nll_loss":
        off = float((outputs.exp().sum(1) - 1).abs().max())
    else:
        return None
    if off < 1e-3:
        return None
    return Sign(off, 1e-3, repair="# loss = nn.CrossEntropyLoss()\n")


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
    if not seen.loss_name and seen.value < 0 and _is_log_likelihood(seen):
        detail = "It is the mean of logarithms of probabilities, without the minus."
        return Sign(seen.value, above=False, detail=detail, repair="# -loss\n")
    known = seen.loss_name not in (
        "",
        "gaussian_nll_loss",
        "poisson_nll_loss",
        "kl_div",
        "nll_loss",
    )
    if not known or not seen.value < 0 or len(seen.trace.named(*LOSSES)) > 1:
        return None
    return Sign(seen.value, above=False, detail=f"It is {seen.value:.3g}.")


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
    return Sign(seen.samples)


def _is_log_likelihood(seen: Seen) -> bool:
    """Return whether the loss is a mean of entries of a log-softmax."""
    call = seen.value_call
    while call is not None and call.name in _LINEAR and call.sources[0] >= 0:
        call = seen.trace.calls[call.sources[0]]
    return call is not None and call.name in ("log_softmax", "logsigmoid")


@check(
    "prior-outweighs",
    "warning",
    "The prior of the code outweighs the reconstruction",
    source="Bowman et al. (2016), Generating sentences, section 3; the level is ours",
    repaired_by="Sum the reconstruction over the entries of a sample, or lower beta",
    confidence="rule of thumb",
)
def prior_outweighs(seen: Seen) -> Sign | None:
    """One nat of code costs more than all that a reconstruction can gain, so that the
    best code is none and the outputs ignore the inputs. Usually the reconstruction is a
    mean over entries and the divergence a sum.
    """
    call, judged, spread = seen.loss_call, seen.judged, _divergence(seen)
    if call is None or judged is None or not spread:
        return None
    if call.kwargs.get("reduction", "mean") != "mean" or "weight" not in (
        seen.trace.origins(call)
    ):
        return None
    targets = judged[1].double()
    if call.name == "mse_loss":
        gain = float((targets - targets.mean(0)).square().mean())
    elif call.name.startswith("binary_cross_entropy"):
        mean = targets.mean(0).clamp(1e-6, 1 - 1e-6)
        gain = float(-(mean * mean.log() + (1 - mean) * (1 - mean).log()).mean())
    else:
        return None
    weight = (seen.value - float(call.outputs[0].detach())) / spread
    if not gain or weight <= PRICE * gain:
        return None
    detail = f"One nat costs {weight:.2g}, and there is {gain:.2g} to gain."
    return Sign(weight / gain, PRICE, detail=detail)


def _divergence(seen: Seen) -> float:
    """Return the divergence of normal codes from the standard one, per sample."""
    squares = [c for c in seen.trace.named("pow", "square") if c.inputs[0].ndim > 1]
    for call in seen.trace.named("exp"):
        logs = call.inputs[0].detach().double()
        if logs.ndim < 2 or len(logs) != seen.samples:
            continue
        if "weight" not in seen.trace.origins(call):
            continue
        for square in squares:
            mean = square.inputs[0].detach().double()
            if mean.shape != logs.shape or square.inputs[0] is call.inputs[0]:
                continue
            both = {c.index for c in seen.trace.after(call)}
            joined = [c for c in seen.trace.after(square) if c.index in both]
            if joined and joined[0].outputs[0].shape == logs.shape:
                each = mean.square() + logs.exp() - 1 - logs
                return float(0.5 * each.flatten(1).sum(1).mean())
    return 0.0


@check(
    "loss-starts-high",
    "warning",
    "The loss starts far above that of a guess",
    source="Karpathy (2019), A recipe for training: verify the loss at init; ours",
    repaired_by="Start the last layer with a standard deviation of 0.02",
    kind="initialisation",
    confidence="rule of thumb",
)
def loss_starts_high(seen: Seen) -> Sign | None:
    """The network is sure of wrong answers: its outputs are far too large, so that a
    softmax is saturated, and the first updates only make them smaller.
    """
    call, judged = seen.loss_call, seen.judged
    if seen.loss_name in SQUARES and judged is not None and seen.data_known:
        sizes = [float(t.double().std()) if t.numel() > 1 else 0.0 for t in judged]
        if sizes[0] > WIDER * sizes[1] > 0 and sizes[0] > 1:
            detail = f"The outputs have a deviation of {sizes[0]:.3g}, "
            detail += f"the targets of {sizes[1]:.3g}."
            return Sign(sizes[0] / sizes[1], WIDER, detail=detail)
    if seen.loss_name != "cross_entropy" or call is None or judged is None:
        return None
    if judged[0].ndim < 2 or call.kwargs.get("reduction", "mean") != "mean":
        return None
    chance = math.log(max(judged[0].shape[1], 2))
    value = float(call.outputs[0].detach())
    if not HIGH * chance < value < math.inf:
        return None
    detail = f"It is {value:.3g}, that of a guess {chance:.3g}."
    last, repair = seen.output_call, ""
    if last is not None and last.name == "linear" and last.module:
        size = float(last.inputs[1].detach().double().square().mean().sqrt())
        tables = [c.inputs[-1] for c in seen.trace.named("embedding")]
        tied = any(table is last.inputs[1] for table in tables)
        shared = ", which is the table of the embedding too," if tied else ""
        detail += f" The weights of the last layer{shared} are of size {size:.2g}."
        weight = f"model.get_submodule({last.module!r}).weight"
        repair = f"import torch\ntorch.nn.init.normal_({weight}, std=0.02)\n"
    return Sign(value / chance, HIGH, detail=detail, repair=repair)
