"""Modes and settings of dropout and of the optimiser."""

from typing import Any

import torch
from torch import nn

from theodolite.instruments import preserve, reseed

from .check import Sign, check
from .reach import listed
from .seen import Seen
from .trace import Trace

_BatchNorm = nn.modules.batchnorm._BatchNorm
# Share that several dropouts in a row remove: our choice.
COMPOUND = 0.94
_DROPOUTS = nn.modules.dropout._DropoutNd
# Levels of settings that hardly any recipe goes beyond: our choice.
DROPPED, EPSILON, MOMENTUM, DECAYED = 0.8, 5e-3, 0.98, 1.0


@check(
    "training-in-eval-mode",
    "warning",
    "The model is trained in eval mode",
    source="batch norm in eval mode uses running statistics, at first 0 and 1",
    repaired_by="Switch to train mode",
    kind="mode",
)
def in_eval_mode(seen: Seen) -> Sign | None:
    """Batch norms that have seen no data keep the running statistics of a new layer, so
    that they normalise nothing, and dropout does nothing. Call model.train().
    """
    idle = [
        name
        for name, m in seen.model.named_modules()
        if isinstance(m, _BatchNorm) and not m.training and name in seen.trace.visits
        if m.running_mean is not None and m.running_var is not None
        if not m.running_mean.any() and bool((m.running_var == 1).all())
    ]
    quiet = [
        name
        for name, m in seen.model.named_modules()
        if isinstance(m, _DROPOUTS) and m.p > 0 and not seen.model.training
    ]
    if not idle and not quiet:
        return None
    severity, where = None if idle else "note", idle + quiet
    return Sign(len(where), where=where, repair="model.train()\n", severity=severity)


@check(
    "dropout-too-strong",
    "sick",
    "Dropout removes nearly everything",
    source="Srivastava et al. (2014): 0.2 to 0.5; the level of 0.8 is ours",
    repaired_by="Use dropout of 0.2",
    kind="mode",
)
def dropout_too_strong(seen: Seen) -> Sign | None:
    """So few units survive that hardly any signal passes: p is the share that is
    dropped, not the share that is kept.
    """
    strong = {
        n: m.p
        for n, m in seen.model.named_modules()
        if isinstance(m, _DROPOUTS) and m.p >= DROPPED and m.training
    }
    repair = f"for path in {list(strong)!r}:\n    model.get_submodule(path).p = 0.2\n"
    for call in seen.trace.named("dropout"):  # as functions
        p = call.given(1, "p", 0.5)
        if call.given(2, "training", True) and p >= DROPPED and not strong:
            strong, repair = {call.module: p}, ""
    if not strong:
        return _dropped_again(seen)
    most = max(strong.values())
    detail = f"Here p is {most:g}."
    return Sign(most, DROPPED, where=strong, detail=detail, repair=repair)


def _dropped_again(seen: Seen) -> Sign | None:
    """Return the same of several dropouts one after the other, on the best way."""
    kept, where = dict[int, float](), list[str]()
    for call in seen.trace.calls:
        if call.name == "dropout" and call.given(2, "training", True):
            where += [call.module]
        p = float(call.given(1, "p", 0.5)) if call.module in where[-1:] else 0.0
        p = p if call.name == "dropout" else 0.0
        best = max((kept[s] for s in call.sources if s >= 0), default=1.0)
        kept[call.index] = best * (1 - p)
    last = seen.output_call
    share = 1 - kept[last.index] if last is not None else 0.0
    if share < COMPOUND or len(where) < 2:
        return None
    detail = f"Here {len(where)} dropouts follow each other and keep {1 - share:.0%}."
    repair = f"for path in {where!r}:\n    model.get_submodule(path).p = 0.1\n"
    return Sign(share, COMPOUND, where=where, detail=detail, repair=repair)


@check(
    "dropout-in-evaluation",
    "warning",
    "Dropout stays on in eval mode",
    source="a pass in eval mode; functional.dropout has training=True by default",
    repaired_by="Pass training=self.training to the function",
    kind="mode",
)
def dropout_in_evaluation(seen: Seen) -> Sign | None:
    """Dropout is called as a function that does not know the mode of the model, so that
    predictions in eval mode are random. Use nn.Dropout, or training=self.training.
    """
    where = dict[str, float]()
    for call in _evaluation(seen).calls if seen.trace.called else ():
        if call.name.endswith("dropout") or call.name.startswith("dropout"):
            on, p = call.given(2, "training", True), call.given(1, "p", 0.5)
            where |= {call.module: float(p)} if on and p else {}
        elif call.name == "scaled_dot_product_attention":
            p = float(call.given(4, "dropout_p", 0.0) or 0.0)
            where |= {call.module: p} if p else {}
    if not where:
        return None
    most = max(where.values())
    return Sign(most, where=where, detail=f"Here p is {most:g}.")


def _evaluation(seen: Seen) -> Trace:
    """Return one pass of the model on the first batch in eval mode."""
    trace = Trace(seen.model, seen.inputs, seen.targets)
    with preserve(seen.model), torch.no_grad():
        seen.model.eval()
        reseed(seen.seed)
        with trace:
            seen.call()
    return trace


@check(
    "odd-optimizer-setting",
    "warning",
    "The optimiser has a setting far from all common ones",
    source="defaults of torch; the levels are ours",
    repaired_by="Set common values",
    confidence="rule of thumb",
)
def odd_optimizer_setting(seen: Seen) -> Sign | None:
    """Momentum or β₁ near 1 averages over hundreds of steps, a small β₂ makes steps
    noise, and a large eps of Adam replaces its scaling by a much smaller rate.
    """
    odd: dict[str, tuple[str, float]] = {}
    for group in seen.optimizer.param_groups if seen.optimizer else ():
        betas = group.get("betas") or (0.9, 0.999)
        if float(group.get("momentum") or 0.0) > MOMENTUM:
            odd["momentum"] = f"momentum {group['momentum']:g}", 0.9
        if float(betas[0]) > MOMENTUM or float(betas[1]) < 0.8:
            odd["betas"] = f"betas {tuple(map(float, betas))}", 0.0
        if float(group.get("eps") or 0.0) > EPSILON and "betas" in group:
            odd["eps"] = f"eps {group['eps']:g}", 1e-8
        if float(group.get("dampening") or 0.0) > 0.9 and group.get("momentum"):
            odd["dampening"] = f"dampening {group['dampening']:g}", 0.0
        if group.get("maximize"):
            odd["maximize"] = "maximize=True", 0.0
    if not odd:
        return None
    values: dict[str, Any] = {"betas": (0.9, 0.999), "maximize": False}
    lines = [f'    group["{k}"] = {values.get(k, v)!r}\n' for k, (_, v) in odd.items()]
    return Sign(
        len(odd),
        detail=f"Here: {listed(said for said, _ in odd.values())}.",
        repair="for group in optimizer.param_groups:\n" + "".join(lines),
    )


@check(
    "decay-too-strong",
    "warning",
    "Weight decay is stronger than the gradient",
    source="lengths of the two terms of a step, compared",
    repaired_by="Use a weight decay of 1e-4",
)
def decay_too_strong(seen: Seen) -> Sign | None:
    """The step is made of the gradient and of the decay, and the decay is longer, so
    that the weights shrink towards zero before anything is learned.
    """
    if seen.optimizer is None:
        return None
    names = {id(p): n for n, p in seen.model.named_parameters()}
    decoupled = type(seen.optimizer).__name__ in ("AdamW", "Lion", "NAdamW")
    pull = push = 0.0
    for group in seen.optimizer.param_groups:
        decay = float(group.get("weight_decay") or 0.0)
        for p in group["params"]:
            grad = seen.gradients.get(names.get(id(p), ""))
            if grad is not None and decay:
                pull += (decay * float(p.detach().double().norm())) ** 2
                push += p.numel() if decoupled else float(grad.double().norm()) ** 2
    ratio = (pull / push) ** 0.5 if push else 0.0
    if ratio <= DECAYED:
        return None
    repair = 'for group in optimizer.param_groups:\n    group["weight_decay"] = 1e-4\n'
    detail = f"Here it is {ratio:.3g} times as long."
    return Sign(ratio, DECAYED, detail=detail, repair=repair)
