"""Ways written out as spans: calls, submodules, parameters, layout and factors."""

from theodolite.anatomy.graph import Graph
from theodolite.anatomy.joins import IDENTITY, LINEAR, NORMED, Way
from theodolite.anatomy.parts import Addition, Scale, Span, SpanKind
from theodolite.anatomy.products import Products
from theodolite.anatomy.recording import Ref
from theodolite.anatomy.steps import Step
from theodolite.anatomy.sums import Sum

_TOLD = frozenset(
    "linear transform norm activation pool attention gate product addition "
    "concatenation statistic recurrence scatter unknown".split()
)
_KINDS: tuple[SpanKind, ...] = ("pool", "pad", "slice", "resample")


def addition_of(graph: Graph, found: Sum, products: Products) -> Addition:
    """Write out a residual sum.

    Args:
        graph: The signal.
        found: The sum.
        products: Says which calls are one thing together.
    """
    last = graph.recording.calls[found.calls[-1]]
    spans = [
        _span(graph, found, way, products, skip=place == found.skip)
        for place, way in enumerate(found.join.ways)
    ]
    place = found.skip or 0
    return Addition(
        call=last.index,
        calls=found.calls,
        output=last.outputs[0],
        module=last.module,
        fork=found.join.fork,
        skip=spans[place],
        branches=tuple(span for at, span in enumerate(spans) if at != place),
    )


def _span(
    graph: Graph, found: Sum, way: Way, products: Products, *, skip: bool
) -> Span:
    term = way.term
    calls = tuple(step.call for step in way.steps)
    return Span(
        role="skip" if skip else "branch",
        kind=_kind(way) if skip else "branch",
        entry=found.join.fork,
        exit=term.values[0],
        into=term.call,
        position=term.position,
        sign=term.sign,
        calls=calls,
        modules=_modules(graph, calls, found.join.fork, found.calls[-1]),
        layout=_layout(way, products),
        parameters=_parameters(graph, way),
        scales=_scales(graph, way),
    )


def _kind(way: Way) -> SpanKind:
    if way.rank == IDENTITY:
        return "identity"
    if way.rank >= LINEAR:
        return "projection"
    if way.rank == NORMED:
        return "norm"
    if "reduction" in way.words:
        return "pool"
    found: list[SpanKind] = [kind for kind in _KINDS if kind in way.words]
    return found[0] if found else "scale"


def _layout(way: Way, products: Products) -> tuple[str, ...]:
    """Say what happens on a way: groups of calls as one, mere rearrangement not."""
    kinds = {other.call: other.kind for other in products.others}
    words: dict[int, str] = {}
    for step in way.steps:
        last, word = products.groups.get(step.call, (step.call, step.word))
        if step.call in products.hidden:
            continue
        if word == "product":
            kind = kinds.get(step.call, "gate")
            word = kind if kind in ("product", "attention") else "gate"
        if word in _TOLD or (word == "scale" and step.weighted):
            words[last] = word
    told = list(words.values())
    return tuple([*told, way.term.fused] if way.term.fused else told)


def _modules(
    graph: Graph, calls: tuple[int, ...], fork: int, stop: int
) -> tuple[str, ...]:
    """List the outermost visits entered behind the fork and left before the sum."""
    recording = graph.recording
    made = recording.values[fork].call
    found: dict[int, None] = {}
    for index in calls:
        best = None
        for visit in recording.around(recording.calls[index].visit):
            entered = recording.visits[visit]
            if entered.stop > stop or (made is not None and entered.first <= made):
                break
            best = visit
        if best is not None and recording.visits[best].parent is not None:
            found[best] = None
    return tuple(recording.visits[visit].module for visit in found)


def _parameters(graph: Graph, way: Way) -> tuple[str, ...]:
    calls = [step.call for step in way.steps]
    calls += [way.term.call] if way.term.fused else []
    names: dict[str, None] = {}
    for call in calls:
        for number in graph.recording.calls[call].inputs:
            if not graph.signal(number):
                names |= dict.fromkeys(sorted(graph.names(number)))
    return tuple(names)


def _scales(graph: Graph, way: Way) -> tuple[Scale, ...]:
    """List the factors at the end of a way, first to last."""
    found: list[Scale] = []
    if way.term.fused == "scale":
        found += _factor(graph, graph.steps[way.term.call], way.term.call)
    for step in reversed(way.steps):
        if step.word == "scale":
            found += _factor(graph, step, step.call)
        elif step.word != "view":
            break
    return tuple(reversed(found))


def _factor(graph: Graph, step: Step, index: int) -> list[Scale]:
    call = graph.recording.calls[index]
    places = (1, 2) if call.name in ("addcmul", "addcdiv") else (0, 1)
    if call.name in ("neg", "negative"):
        return [Scale(call=index, by="number", value=-1.0)]
    for place in places:
        given = call.arguments[place] if place < len(call.arguments) else None
        if isinstance(given, int | float) and not isinstance(given, Ref):
            value = float(given) if call.name != "div" else 1 / float(given)
            return [Scale(call=index, by="number", value=value)]
        if isinstance(given, Ref) and not graph.signal(given.number):
            return [_outside(graph, given.number, index)]
    return []


def _outside(graph: Graph, number: int, index: int) -> Scale:
    names = sorted(graph.names(number))
    if names:
        return Scale(call=index, by="parameter", name=", ".join(names))
    value = graph.recording.values[number]
    by = "buffer" if value.source == "buffer" else "constant"
    return Scale(call=index, by=by, name=value.name)
