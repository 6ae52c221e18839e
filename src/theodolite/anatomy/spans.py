"""Residual additions written out: the calls, submodules and factors of each span."""

from .graph import Graph
from .parts import Addition, Scale, Span, SpanKind
from .products import Products
from .recording import Ref
from .routes import IDENTITY, LINEAR, NORMED, Route
from .sums import Sum

_IN_LAYOUT = frozenset(
    "linear transform norm activation pool attention gate product addition "
    "concatenation statistic recurrence scatter unknown".split()
)
_KINDS: tuple[SpanKind, ...] = ("pool", "pad", "slice", "resample")


def addition_of(graph: Graph, residual: Sum, products: Products) -> Addition:
    """Return a residual sum as an addition."""
    last = graph.recording.calls[residual.calls[-1]]
    skip = residual.skip or 0
    spans = [
        _span(graph, residual, route, products, skip=place == residual.skip)
        for place, route in enumerate(residual.routes.routes)
    ]
    return Addition(
        call=last.index,
        calls=residual.calls,
        output=last.outputs[0],
        module=last.module,
        fork=residual.routes.fork,
        skip=spans[skip],
        branches=tuple(span for at, span in enumerate(spans) if at != skip),
    )


def _span(
    graph: Graph, residual: Sum, route: Route, products: Products, *, skip: bool
) -> Span:
    term, fork = route.term, residual.routes.fork
    calls = tuple(step.call for step in route.steps)
    return Span(
        role="skip" if skip else "branch",
        kind=_kind(route) if skip else "branch",
        entry=fork,
        exit=term.values[0],
        into=term.call,
        position=term.position,
        sign=term.sign,
        calls=calls,
        modules=_modules(graph, calls, fork, residual.calls[-1]),
        layout=_layout(route, products),
        parameters=_parameters(graph, route),
        scales=_scales(graph, route),
    )


def _kind(route: Route) -> SpanKind:
    if route.rank == IDENTITY:
        return "identity"
    if route.rank >= LINEAR:
        return "projection"
    if route.rank == NORMED:
        return "norm"
    if "reduction" in route.kinds:
        return "pool"
    kinds: list[SpanKind] = [kind for kind in _KINDS if kind in route.kinds]
    return kinds[0] if kinds else "scale"


def _layout(route: Route, products: Products) -> tuple[str, ...]:
    """Return the kinds of steps on a route; grouped calls count once."""
    names = {other.call: other.kind for other in products.others}
    kinds: dict[int, str] = {}
    for step in route.steps:
        last, kind = products.groups.get(step.call, (step.call, step.kind))
        if step.call in products.hidden:
            continue
        if kind == "product":
            name = names.get(step.call, "gate")
            kind = name if name in ("product", "attention") else "gate"
        if kind in _IN_LAYOUT or (kind == "scale" and step.weighted):
            kinds[last] = kind
    return (*kinds.values(), *([route.term.fused] if route.term.fused else []))


def _modules(
    graph: Graph, calls: tuple[int, ...], fork: int, stop: int
) -> tuple[str, ...]:
    """List the outermost visits entered behind the fork and left before the sum."""
    recording = graph.recording
    made = recording.values[fork].call
    outermost: dict[int, None] = {}
    for index in calls:
        best = None
        for visit in recording.around(recording.calls[index].visit):
            entered = recording.visits[visit]
            if entered.stop > stop or (made is not None and entered.first <= made):
                break
            best = visit
        if best is not None and recording.visits[best].parent is not None:
            outermost[best] = None
    return tuple(recording.visits[visit].module for visit in outermost)


def _parameters(graph: Graph, route: Route) -> tuple[str, ...]:
    calls = [step.call for step in route.steps]
    calls += [route.term.call] if route.term.fused else []
    names: dict[str, None] = {}
    for call in calls:
        for number in graph.recording.calls[call].inputs:
            if not graph.signal(number):
                names |= dict.fromkeys(sorted(graph.names(number)))
    return tuple(names)


def _scales(graph: Graph, route: Route) -> tuple[Scale, ...]:
    """List the factors at the end of a route, first to last."""
    scales: list[Scale] = []
    if route.term.fused == "scale":
        scales += _factor(graph, route.term.call)
    for step in reversed(route.steps):
        if step.kind == "scale":
            scales += _factor(graph, step.call)
        elif step.kind != "view":
            break
    return tuple(reversed(scales))


def _factor(graph: Graph, index: int) -> list[Scale]:
    call = graph.recording.calls[index]
    if call.name in ("neg", "negative"):
        return [Scale(call=index, by="number", value=-1.0)]
    first = 1 if call.name in ("addcmul", "addcdiv") else 0
    for given in call.arguments[first : first + 2]:
        if isinstance(given, int | float):
            value = float(given) if call.name != "div" else 1 / float(given)
            return [Scale(call=index, by="number", value=value)]
        if isinstance(given, Ref) and not graph.signal(given.number):
            if names := sorted(graph.names(given.number)):
                return [Scale(call=index, by="parameter", name=", ".join(names))]
            value = graph.recording.values[given.number]
            by = "buffer" if value.source == "buffer" else "constant"
            return [Scale(call=index, by=by, name=value.name)]
    return []
