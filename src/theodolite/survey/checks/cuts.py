"""Places at which the gradient is cut: detached terms, samples and choices."""

from collections.abc import Iterable

from .check import Sign, check
from .seen import LAYERS, LOSSES, Seen
from .trace import Call


@check(
    "loss-term-without-gradient",
    "warning",
    "A term of the loss has no gradient",
    source="autograd: what is detached has no derivative",
    repaired_by="Remove detach() from the outputs that this term compares",
)
def loss_term_without_gradient(seen: Seen) -> Sign | None:
    """A loss compares outputs of the network that were detached, so that this term
    changes the value of the loss and nothing else.
    """
    for call in seen.trace.named(*LOSSES):
        if not call.after_model or not call.grad_enabled:
            continue
        if "weight" in seen.trace.origins(call) and not call.outputs[0].requires_grad:
            if seen.trace.readers(call):
                return Sign(1.0, detail=f"Here it is {call.name}().")
    last = seen.value_call.index if seen.value_call else -1
    for call in seen.trace.named("grad"):  # by the inputs, as in a residual
        later = seen.trace.after(call)
        if call.outputs[0].requires_grad or len(call.inputs) < 2:
            continue
        by = seen.trace.kinds(call.inputs[1], call.sources[1])
        if by != {"input"} or "weight" not in seen.trace.origins(call):
            continue
        if last in {c.index for c in later} and not _in_layers(later):
            detail = "Here grad() is called without create_graph=True."
            return Sign(1.0, detail=detail)
    return None


def _in_layers(calls: Iterable[Call]) -> bool:
    return any(c.name in LAYERS and c.grad_enabled for c in calls)


@check(
    "sampled-without-gradient",
    "warning",
    "A random sample cuts the gradient between two parts of the network",
    source="Kingma & Welling (2014), section 2.4: mean + deviation * noise",
    repaired_by="Use rsample() in place of sample()",
)
def sampled_without_gradient(seen: Seen) -> Sign | None:
    """A sample is drawn from a distribution that the network computes, and layers that
    follow read it, but no gradient passes back through sample().
    """
    for call in seen.trace.named("normal"):
        given = [seen.trace.calls[s] for s in call.sources if s >= 0]
        if call.grad_enabled or not any(
            "weight" in seen.trace.origins(c) for c in given
        ):
            continue
        scored = any(  # by its likelihood, as policies are
            c.name in ("sub", "rsub") and any(t.requires_grad for t in c.inputs)
            for c in seen.trace.readers(call)
        )
        if not scored and _in_layers(seen.trace.after(call)):
            return Sign(1.0, where=call.module)
    return None


@check(
    "choice-without-gradient",
    "warning",
    "A choice or detach() cuts the gradient between two parts of the network",
    source="van den Oord et al. (2017), section 3.2: the gradient is copied past it",
    repaired_by="Copy the gradient: z + (code - z).detach(), or use a softmax",
)
def choice_without_gradient(seen: Seen) -> Sign | None:
    """Layers that follow read what an index by argmin or argmax picks, or a signal that
    is detached, and no other way leads from them
    back to the layers before the choice, which get no gradient from the outputs.
    """
    output = seen.output_call
    names = ("argmin", "argmax", "multinomial", "min", "max", "detach", "data")
    for call in seen.trace.named(*names) if output is not None else ():
        index = call.outputs[-1]
        cut = call.name in ("detach", "data")
        if call.after_model or index.is_floating_point() != cut or index.ndim == 0:
            continue
        if not {"input", "weight"} <= seen.trace.origins(call):
            continue
        before = _ancestors(seen, call, any_way=True)
        before = {n for n in before if {"input", "weight"} <= _origins(seen, n)}
        later = [c.index for c in seen.trace.after(call)]
        read = [seen.trace.calls[n] for n in later]
        layered = any("weight" in _leaves(seen, c) and c.name != "embedding"
                      for c in read if not c.after_model)  # fmt: skip
        trained = any(
            t.requires_grad for n in before for t in seen.trace.calls[n].outputs
        )
        if output.index in later and layered and trained:  # pyright: ignore
            if not before & _ancestors(seen, output, any_way=False):  # pyright: ignore
                return Sign(1.0, where=call.module, detail=f"Here it is {call.name}().")
    return None


def _leaves(seen: Seen, call: Call) -> set[str]:
    """Return the kinds of the arguments of a call that no other call computed."""
    pairs = zip(call.inputs, call.sources, strict=True)
    return {kind for t, s in pairs if s < 0 for kind in seen.trace.kinds(t, s)}


def _origins(seen: Seen, index: int) -> set[str]:
    return seen.trace.origins(seen.trace.calls[index])


def _ancestors(seen: Seen, call: Call, *, any_way: bool) -> set[int]:
    """Return the calls that a call depends on, on any way or with a gradient."""
    found, waiting = set[int](), [call.index]
    while waiting:
        each = seen.trace.calls[waiting.pop()]
        for tensor, source in zip(each.inputs, each.sources, strict=True):
            if (
                source >= 0
                and source not in found
                and (any_way or tensor.requires_grad)
            ):
                found.add(source)
                waiting.append(source)
    return found
