"""Products of signals: handwritten activations and norms, gates, attention."""

from dataclasses import dataclass, field

from .graph import ROOT, Graph
from .operators import LINEARS, SOFTMAXES
from .parts import Activation, Other
from .routes import IDENTITY, Routes, from_disjoint_slices, routes_to
from .steps import Step, Term

_ROOTS = frozenset("sqrt rsqrt pow linalg_vector_norm norm std var".split())


@dataclass(frozen=True, kw_only=True)
class UnplacedNorm:
    """A norm, before its placement is known."""

    call: int  # index of the call; of a handwritten norm, of the division
    calls: frozenset[int]  # indices of all its calls
    entry: int  # the value that is normalised
    exit: int  # the result
    # Kind of norm. A handwritten one is ``"rms"``, or if it subtracts a mean
    # ``"batch"`` where that is a mean over samples and ``"layer"`` otherwise.
    kind: str


@dataclass(kw_only=True)
class Products:
    """The products of a network, sorted by what they compute."""

    # Calls that belong to something listed here.
    taken: set[int] = field(default_factory=set)
    norms: list[UnplacedNorm] = field(default_factory=list)  # handwritten norms
    # Handwritten activations.
    activations: list[Activation] = field(default_factory=list)
    others: list[Other] = field(default_factory=list)  # gates, attention and similar
    # By call, the last call of the part it belongs to, and that part's kind.
    groups: dict[int, tuple[int, str]] = field(default_factory=dict)
    # Calls that no layout mentions: attention scores, softmaxes.
    hidden: set[int] = field(default_factory=set)

    def take(self, calls: set[int], last: int, kind: str) -> None:
        """Record that these calls form one part."""
        self.taken |= calls
        self.groups |= dict.fromkeys(calls, (last, kind))


def products_of(graph: Graph) -> Products:
    """Return all products of signals, and handwritten pointwise functions, by kind.

    Later calls come first, so that earlier ones can become a part of them.
    """
    scores = _scores(graph)
    in_recurrent_layers = {
        call
        for visit in graph.recording.visits
        if visit.recurrent
        for call in range(visit.first, visit.stop)
    }
    products = Products(taken=in_recurrent_layers, hidden=scores)
    products.taken |= {c for c in scores if graph.steps[c].kind == "addition"}
    for step in sorted(graph.steps.values(), key=lambda s: -s.call):
        if step.call in products.taken or step.kind not in ("product", "addition"):
            continue
        routes = routes_to(graph, step.terms)
        values = {graph.same(value) for term in step.terms for value in term.values}
        doubled = len(values) == 1 and step.kind == "addition"
        if routes.pointwise and not doubled:
            calls = routes.calls() | {step.call}
            curved = any(_is_curved(graph, graph.steps[call]) for call in calls)
            _take_activation(graph, step, calls, "handwritten", not curved, products)
        elif step.kind == "product" and step.call not in products.hidden:
            _take_product(graph, step, routes, products)
    return products


def _take_activation(
    graph: Graph,
    step: Step,
    calls: set[int],
    kind: str,
    piecewise_linear: bool,
    products: Products,
) -> None:
    products.take(calls, step.call, "activation")
    products.activations.append(
        Activation(
            call=step.call,
            module=graph.module_of(step.call),
            kind=kind,
            piecewise_linear=piecewise_linear,
        )
    )


def _is_curved(graph: Graph, step: Step) -> bool:
    """Return whether a step is curved; a product with a step function is not."""
    if step.kind != "product":
        return step.curved
    return not any(_traced(graph, term, kinds=("step",)) for term in step.terms)


def _take_product(graph: Graph, step: Step, routes: Routes, products: Products) -> None:
    small = _statistic(graph, routes)
    if small is None or routes.routes[small].weighted:
        kind, detail = _product_kind(graph, step, routes, small)
        module = graph.module_of(step.call)
        other = Other(kind=kind, call=step.call, module=module, detail=detail)
        products.others.append(other)
        return
    names = {s.name for s in routes.routes[small].steps}
    calls = routes.calls() | {step.call}
    if not names & _ROOTS:
        kind = "softmax" if "exp" in names else "handwritten"
        calls |= _shifted_exp(graph, routes.fork)
        _take_activation(graph, step, calls, kind, False, products)
        return
    end, affine = _affine(graph, graph.recording.calls[step.call].outputs[0])
    products.take(calls | affine, step.call, "norm")
    products.norms.append(
        UnplacedNorm(
            call=step.call,
            calls=frozenset(calls | affine),
            entry=routes.fork,
            exit=end,
            kind=_norm_kind(graph, routes, small),
        )
    )


def _norm_kind(graph: Graph, routes: Routes, small: int) -> str:
    other = routes.routes[1 - small]
    if not any(step.name in ("sub", "rsub") for step in other.steps):
        return "rms"
    axes: set[int] = set()
    for step in routes.routes[small].steps:
        if step.kind in ("reduction", "statistic"):
            call = graph.recording.calls[step.call]
            given = call.arguments[1] if len(call.arguments) > 1 else ()
            rank = len(graph.recording.values[step.reads[0]].shape)
            listed = given if isinstance(given, tuple) else (given,)
            axes |= {axis % rank for axis in listed if type(axis) is int}
    return "batch" if 0 in axes else "layer"


def _affine(graph: Graph, value: int) -> tuple[int, set[int]]:
    """Return the value after the weights and biases of a norm, and their calls."""
    end, calls, ahead = value, set(), []
    while len(readers := graph.readers(value)) == 1:
        step = graph.steps[readers[0]]
        if step.kind not in ("view", "scale", "shift"):
            break
        value = graph.recording.calls[step.call].outputs[0]
        ahead.append(step.call)
        if step.weighted:
            end, calls = value, calls | set(ahead)
    return end, calls


def _shifted_exp(graph: Graph, value: int) -> set[int]:
    """Return the calls of exp(x − max x) if they computed a value, else none."""
    power = graph.step(value)
    if power is None or power.name != "exp":
        return set()
    less = graph.step(graph.same(power.reads[0]))
    if less is None or less.kind != "addition":
        return {power.call}
    routes = routes_to(graph, less.terms)
    largest = {step.name for route in routes.routes for step in route.steps}
    if largest & {"amax", "max"} and not any(r.weighted for r in routes.routes):
        return routes.calls() | {power.call, less.call}
    return {power.call}


def _statistic(graph: Graph, routes: Routes) -> int | None:
    """Return which of two routes computes a statistic of the fork, if one does.

    It has fewer numbers than the other; or it is a local norm of the fork, as in local
    response norms.
    """
    if routes.fork == ROOT or len(routes.routes) != 2:
        return None
    sizes = [graph.size(graph.same(r.term.values[0])) for r in routes.routes]
    for place, route in enumerate(routes.routes):
        if not route.kinds & {"reduction", "pool", "statistic"}:
            continue
        names, other = {step.name for step in route.steps}, routes.routes[1 - place]
        local = names & _ROOTS and not route.weighted and other.rank == IDENTITY
        if sizes[place] < sizes[1 - place] or (sizes[0] == sizes[1] and local):
            return place
    return None


def _product_kind(
    graph: Graph, step: Step, routes: Routes, small: int | None
) -> tuple[str, str]:
    if any(_traced(graph, term, names=SOFTMAXES) for term in step.terms):
        return "attention", "a softmax times values"
    if step.name in LINEARS:
        return "product", "a matrix product of two signals"
    if small is not None and routes.routes[1 - small].rank == IDENTITY:
        return "squeeze-excite", "a signal times a summary of itself"
    if routes.fork == ROOT and any(not _learned(graph, term) for term in step.terms):
        return "mask", "a signal times an input of its own"
    if routes.fork != ROOT and from_disjoint_slices(graph, routes):
        return "gate", "a part of a signal times another part"
    return "gate", "a signal times a signal"


def _learned(graph: Graph, term: Term) -> bool:
    """Return whether a term depends on parameters."""
    todo, seen = [graph.same(value) for value in term.values], set()
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        step = graph.step(value)
        computed = graph.recording.values[value].call is not None
        if (step is not None and step.weighted) or (computed and graph.names(value)):
            return True
        todo += graph.parents(value)
    return False


def _traced(
    graph: Graph,
    term: Term,
    *,
    kinds: tuple[str, ...] = (),
    names: frozenset[str] = frozenset(),
) -> bool:
    """Return whether a term is the result of such a step, up to views and factors."""
    value = graph.same(term.values[0])
    while True:
        step, parents = graph.step(value), graph.parents(value)
        if step is not None and (step.kind in kinds or step.name in names):
            return True
        moves = step is None or step.kind in ("view", "scale", "shift", "slice", "pad")
        if not moves or len(parents) != 1:
            return False
        value = parents[0]


def _scores(graph: Graph) -> set[int]:
    """Return the softmaxes of products of signals, those products, and sums between."""
    passing = ("view", "scale", "shift", "addition", "activation", "slice")
    scores: set[int] = set()
    for step in graph.steps.values():
        if step.name in SOFTMAXES:
            todo, passed = list(step.reads), {step.call}
            while todo:
                value = graph.same(todo.pop())
                before = graph.step(value)
                if before is not None and before.kind == "addition":
                    passed.add(before.call)
                if before is not None and before.kind == "product":
                    scores |= {before.call} | passed
                elif before is None or before.kind in passing:
                    todo += graph.parents(value)
    return scores
