"""Gradient reach: every trained parameter gets a gradient and is moved by it."""

from collections.abc import Iterable

from torch import nn

from .check import Sign, check
from .seen import Seen
from .trace import Call

# Functions whose derivative is zero, or that leave autograd.
FLAT = frozenset("round sign floor ceil trunc heaviside".split())
CUTS = frozenset("detach data item tolist numpy argmax argmin multinomial".split())
CUTS |= frozenset("tensor bincount one_hot eq gt lt ge le ne".split())
# Number of names that a sentence lists.
_NAMED = 6
# Share of weights without effect that a network that learns may have: our choice.
UNUSED = 0.15
_COUNTED = "counted in one pass, and again in the trial steps"


def listed(names: Iterable[str]) -> str:
    """Return names for a sentence, the first few of many."""
    known = list(names)
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    return ", ".join(known[:_NAMED]) + more


def _held(seen: Seen) -> set[int] | None:
    """Return the identities of the parameters of the optimisers in use."""
    used = [] if seen.optimizer is None else [seen.optimizer]
    if seen.own_step is not None and seen.own_step.record is not None:
        used += seen.own_step.record.optimizers
    if not used:
        return None
    return {
        id(p) for each in used for group in each.param_groups for p in group["params"]
    }


def wanted(seen: Seen) -> dict[str, nn.Parameter]:
    """Return the parameters that are meant to be trained."""
    held = _held(seen)
    return {
        name: p
        for name, p in seen.model.named_parameters()
        if p.requires_grad and p.numel() and (held is None or id(p) in held)
    }


def _cut(seen: Seen) -> Call | None:
    """Return the last call at which what depends on weights loses its gradient."""
    cuts = [
        call
        for call in seen.trace.calls
        if "weight" in seen.trace.origins(call)
        and any(t.requires_grad for t in call.inputs)
        and not any(t.requires_grad for t in call.outputs)
        and (call.name in CUTS or not call.grad_enabled)
    ]
    return cuts[-1] if cuts else None


def _why_cut(seen: Seen) -> str:
    call = _cut(seen)
    if call is None:
        quiet = [
            c for c in seen.trace.calls if not c.grad_enabled and not c.after_model
        ]
        return f"{quiet[0].module or 'The model'} runs under no_grad." if quiet else ""
    place = "the loss" if call.after_model else call.module or "the model"
    if not call.grad_enabled:
        return f"The gradient stops in {place}, which runs under torch.no_grad()."
    return f"The gradient stops at {call.name}() in {place}."


@check(
    "loss-without-gradient",
    "sick",
    "No parameter gets a gradient from the loss",
    source="autograd: what is detached has no derivative",
    repaired_by="Keep the path from the parameters to the loss differentiable",
)
def loss_without_gradient(seen: Seen) -> Sign | None:
    """Nothing can be learned: no parameter is connected with the loss.

    Look for detach(), .data, .item(), argmax(), torch.no_grad(), tensors made again
    by torch.tensor(), and parameters that do not require a gradient.
    """
    trained = [p for p in seen.model.parameters() if p.requires_grad]
    if any(grad is not None for grad in seen.gradients.values()):
        return None
    if not list(seen.model.parameters()):
        return None
    detail = _why_cut(seen) if trained else "No parameter requires a gradient."
    repair = "" if trained else "model.requires_grad_(True)\n"
    return Sign(len(trained), above=False, detail=detail, repair=repair)


@check(
    "every-gradient-zero",
    "sick",
    "Every gradient is exactly zero",
    source=_COUNTED,
    repaired_by="Re-initialise the layers",
    kind="initialisation",
)
def every_gradient_zero(seen: Seen) -> Sign | None:
    """The loss is connected with the parameters, but no step changes anything.

    The usual reasons are an output that is constant (a softmax of one unit, a clamp,
    rounding, a rectifier that is shut for every sample) and weights that are all zero.
    """
    grads = [g for g in seen.gradients.values() if g is not None]
    if not grads or seen.reached or seen.course.reached:
        return None
    flat = [c for c in seen.trace.calls if c.name in FLAT and c.inputs[0].requires_grad]
    detail = f"Here {flat[0].name}() has derivative 0 everywhere." if flat else ""
    zero = [n for n, p in seen.model.named_parameters() if p.ndim > 1 and not p.any()]
    if zero and not flat:
        detail = f"Here weights are all zero: {listed(zero)}."
    return Sign(0.0, above=False, detail=detail)


@check(
    "not-registered",
    "sick",
    "The model uses weights that are not registered as its parameters",
    source="nn.Module.parameters() lists attributes, ModuleList and ModuleDict only",
    repaired_by="Keep the layers in nn.ModuleList, and make the optimiser after",
)
def not_registered(seen: Seen) -> Sign | None:
    """Tensors that require a gradient are used in the forward pass and are no
    parameters of the model, so that no optimiser gets them. Layers in a plain list or
    dict are not registered; use nn.ModuleList, nn.ModuleDict or nn.Parameter.
    """
    held = _held(seen) or set()
    known = {id(p) for p in seen.model.parameters()} | held
    inner = {id(p) for m in seen.trace.unregistered for p in m.parameters()}
    plain = {id(v) for m in seen.model.modules() for v in vars(m).values()}
    hidden = {
        id(t): t
        for call in seen.trace.calls
        if not call.after_model
        for t, source in zip(call.inputs, call.sources, strict=True)
        if source < 0 and t.requires_grad and t.is_leaf and id(t) not in known
        if isinstance(t, nn.Parameter) or id(t) in inner | plain
    }
    inputs = {id(t) for t in (*seen.inputs, *seen.targets)}
    hidden = {key: t for key, t in hidden.items() if key not in inputs}
    if not hidden:
        return None
    kinds = dict.fromkeys(type(m).__name__ for m in seen.trace.unregistered)
    detail = f"Here {len(hidden)} tensors" + (f" of {listed(kinds)}." if kinds else ".")
    return Sign(len(hidden), detail=detail)


@check(
    "not-in-optimizer",
    "sick",
    "The optimiser was not given all parameters",
    source="counted",
    repaired_by="Give the optimiser the parameters that it lacks",
)
def not_in_optimizer(seen: Seen) -> Sign | None:
    """Some parameters get a gradient and are in none of the optimiser's groups, so
    that they never change. If they are meant to stay fixed, set
    requires_grad_(False).
    """
    held = _held(seen)
    if held is None:
        return None
    missing = [
        name
        for name, p in seen.model.named_parameters()
        if p.requires_grad and id(p) not in held and name in seen.reached
    ]
    if not missing:
        return None
    own = {id(p) for p in seen.model.parameters()}
    detail = f"It lacks {listed(missing)}."
    if not held & own:
        detail = "It holds no parameter of this model, but those of another one."
    elif held - own:
        detail += " It holds parameters that are no longer in the model."
    repair = (
        'known = {id(p) for g in optimizer.param_groups for p in g["params"]}\n'
        "missing = [p for p in model.parameters() if id(p) not in known]\n"
        'optimizer.add_param_group({"params": missing})\n'
    )
    where = tuple(dict.fromkeys(name.rpartition(".")[0] for name in missing))
    return Sign(len(missing), where=where, detail=detail, repair=repair)


def warming(group: dict[str, object]) -> bool:
    """Return whether a schedule raises the rate of a group, which is low still."""
    return float(group.get("initial_lr", 0.0) or 0.0) > float(group["lr"])  # pyright: ignore


@check(
    "no-gradient",
    "warning",
    "Some trained parameters get no gradient",
    source=_COUNTED,
    repaired_by="Connect these parameters with the loss",
)
def no_gradient(seen: Seen) -> Sign | None:
    """The optimiser holds these parameters and no step moves them: the loss does not
    depend on them, or with a derivative that is zero for every sample.
    """
    trained, trace = wanted(seen), seen.trace
    if not seen.reached:
        return None  # which has checks of its own
    idle = [n for n in trained if n not in seen.reached]
    idle = [n for n in idle if n not in seen.course.reached]
    idle = [n for n in idle if trained[n].ndim > 1 or _alone(n, idle, trained)]
    if not idle:
        return None
    owners = dict.fromkeys(name.rpartition(".")[0] for name in idle)
    read = {id(t) for call in trace.calls for t in call.inputs}
    called = {n.rpartition(".")[0] for n in idle if id(trained[n]) in read}
    unused = [
        o for o in owners if o and o not in trace.visits and not _inside(o, trace)
    ]
    unused = [o for o in unused if o not in called]
    details = []
    if unused:
        details.append(f"Never called: {listed(unused)}.")
    if len(unused) < len(owners):
        rest = [o or "the model" for o in owners if o not in unused]
        none = any(seen.gradients.get(n) is None for n in idle)
        why = _why_cut(seen) if none else _why_flat(seen)
        details.append(f"{why} Without effect: {listed(rest)}.".strip())
    share = sum(trained[n].numel() for n in idle) / sum(
        p.numel() for p in trained.values()
    )
    severity = "note" if share < UNUSED and seen.learns else None
    return Sign(share, where=owners, detail=" ".join(details), severity=severity)


def _alone(name: str, idle: list[str], wanted: dict[str, nn.Parameter]) -> bool:
    """Return whether a vector is idle in a layer of which no matrix is there."""
    owner = name.rpartition(".")[0]
    own = [n for n in wanted if n.rpartition(".")[0] == owner]
    return all(n in idle for n in own) and all(wanted[n].ndim < 2 for n in own)


def _inside(owner: str, trace: object) -> bool:
    """Return whether a parent runs this module's function, as attention does."""
    visits = trace.visits  # pyright: ignore
    return any(
        path and owner.startswith(f"{path}.") and "attn" in path for path in visits
    )


def _why_flat(seen: Seen) -> str:
    flat = [c for c in seen.trace.calls if c.name in FLAT and c.inputs[0].requires_grad]
    zero = [n for n, p in seen.model.named_parameters() if p.ndim > 1 and not p.any()]
    if zero and not flat:
        return f"Weights are all zero: {listed(zero)}."
    return f"{flat[0].name}() has derivative 0." if flat else ""
