"""Products of signals: activations and norms written by hand, gates, attention."""

from dataclasses import dataclass, field

from theodolite.anatomy.graph import ROOT, Graph
from theodolite.anatomy.joins import IDENTITY, Join, apart, join_of
from theodolite.anatomy.parts import Activation, Other
from theodolite.anatomy.steps import Step, Term
from theodolite.anatomy.vocabulary import LINEARS, SOFTMAXES

_ROOTS = frozenset("sqrt rsqrt pow linalg_vector_norm norm std var".split())


@dataclass(frozen=True, kw_only=True)
class NormByHand:
    """A signal divided by a size of itself.

    Attributes:
        call: Index of the call that divides.
        calls: Indices of all its calls.
        entry: The value that is normed.
        exit: The value made.
        kind: ``"rms"``, or with its mean taken off ``"batch"`` where that is a mean
            over samples and ``"layer"`` where it is not.
    """

    call: int
    calls: frozenset[int]
    entry: int
    exit: int
    kind: str


@dataclass(kw_only=True)
class Products:
    """What the products of a network are.

    Attributes:
        taken: Calls that belong to something found here.
        norms: Norms written by hand.
        activations: Activations written by hand.
        others: Gates, attention and the like.
        groups: By call, the last call of what it is a part of, and a word for that.
        hidden: Calls that are not worth a word: scores of attention, softmaxes.
    """

    taken: set[int] = field(default_factory=set)
    norms: list[NormByHand] = field(default_factory=list)
    activations: list[Activation] = field(default_factory=list)
    others: list[Other] = field(default_factory=list)
    groups: dict[int, tuple[int, str]] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)

    def take(self, calls: set[int], last: int, word: str) -> None:
        """Note that calls are one thing together."""
        self.taken |= calls
        self.groups |= dict.fromkeys(calls, (last, word))


def products_of(graph: Graph) -> Products:
    """Name all products of signals, and functions of single numbers written by hand.

    Later calls come first, for what they are made of is then a part of them.
    """
    scores = _scores(graph)
    found = Products(taken=_in_recurrences(graph), hidden=scores)
    found.taken |= {c for c in scores if graph.steps[c].word == "addition"}
    for step in sorted(graph.steps.values(), key=lambda s: -s.call):
        if step.call in found.taken or step.word not in ("product", "addition"):
            continue
        join = join_of(graph, step.terms)
        if join.pointwise and not _once(graph, step):
            _take_activation(graph, step, join, found)
        elif step.word == "product":
            _take_product(graph, step, join, found)
    return found


def _once(graph: Graph, step: Step) -> bool:
    """Tell whether one value alone is joined with itself."""
    values = {graph.same(value) for term in step.terms for value in term.values}
    return len(values) == 1 and step.word == "addition"


def _take_activation(graph: Graph, step: Step, join: Join, found: Products) -> None:
    inner = join.calls() | {step.call}
    curved = any(_bends(graph, graph.steps[call]) for call in inner)
    found.take(inner, step.call, "activation")
    found.activations.append(
        Activation(
            call=step.call,
            module=graph.recording.calls[step.call].module,
            kind="handwritten",
            piecewise_linear=not curved,
        )
    )


def _bends(graph: Graph, step: Step) -> bool:
    """Tell whether a step is curved; a product with a step function is not."""
    if step.word != "product":
        return step.curved
    return not any(_traced(graph, term, ("step",)) for term in step.terms)


def _take_product(graph: Graph, step: Step, join: Join, found: Products) -> None:
    if step.call in found.hidden:
        return
    small = _statistic(graph, join)
    if small is not None and not join.ways[small].weighted:
        _take_norm(graph, step, join, small, found)
        return
    kind, detail = _name(graph, step, join, small)
    module = graph.recording.calls[step.call].module
    found.others.append(Other(kind=kind, call=step.call, module=module, detail=detail))


def _take_norm(
    graph: Graph, step: Step, join: Join, small: int, found: Products
) -> None:
    names = {s.name for s in join.ways[small].steps}
    inner = join.calls() | {step.call}
    call = graph.recording.calls[step.call]
    if names & _ROOTS:
        end, affine = _affine(graph, call.outputs[0])
        found.take(inner | affine, step.call, "norm")
        found.norms.append(
            NormByHand(
                call=step.call,
                calls=frozenset(inner | affine),
                entry=join.fork,
                exit=end,
                kind=_norm_kind(graph, join, small),
            )
        )
        return
    found.take(inner | _shifted(graph, join.fork), step.call, "activation")
    found.activations.append(
        Activation(
            call=step.call,
            module=call.module,
            kind="softmax" if "exp" in names else "handwritten",
            piecewise_linear=False,
        )
    )


def _norm_kind(graph: Graph, join: Join, small: int) -> str:
    if not any(step.name in ("sub", "rsub") for step in join.ways[1 - small].steps):
        return "rms"
    axes: set[int] = set()
    for step in join.ways[small].steps:
        if step.word in ("reduction", "statistic"):
            call = graph.recording.calls[step.call]
            given = call.arguments[1] if len(call.arguments) > 1 else ()
            rank = len(graph.recording.values[step.reads[0]].shape)
            listed = given if isinstance(given, tuple) else (given,)
            axes |= {axis % rank for axis in listed if type(axis) is int}
    return "batch" if 0 in axes else "layer"


def _affine(graph: Graph, value: int) -> tuple[int, set[int]]:
    """Return where the weights and biases behind a norm end, and their calls."""
    end, calls, ahead = value, set(), []
    while len(readers := graph.readers(value)) == 1:
        step = graph.steps[readers[0]]
        if step.word not in ("view", "scale", "shift"):
            break
        value = graph.recording.calls[step.call].outputs[0]
        ahead.append(step.call)
        if step.weighted:
            end, calls = value, calls | set(ahead)
    return end, calls


def _shifted(graph: Graph, value: int) -> set[int]:
    """Return the calls of exp(x − max x), if a value is that."""
    power = graph.step(value)
    if power is None or power.name != "exp":
        return set()
    less = graph.step(graph.same(power.reads[0]))
    if less is None or less.word != "addition":
        return {power.call}
    join = join_of(graph, less.terms)
    largest = {step.name for way in join.ways for step in way.steps}
    if largest & {"amax", "max"} and not any(way.weighted for way in join.ways):
        return join.calls() | {power.call, less.call}
    return {power.call}


def _statistic(graph: Graph, join: Join) -> int | None:
    """Return which of two ways sums up the fork, if one does.

    It has fewer numbers than the other; or it is a size of the fork near each place,
    as in local response norms.
    """
    if join.fork == ROOT or len(join.ways) != 2:
        return None
    sizes = [graph.size(graph.same(way.term.values[0])) for way in join.ways]
    for place, way in enumerate(join.ways):
        if not way.words & {"reduction", "pool", "statistic"}:
            continue
        names, other = {step.name for step in way.steps}, join.ways[1 - place]
        local = names & _ROOTS and not way.weighted and other.rank == IDENTITY
        if sizes[place] < sizes[1 - place] or (sizes[0] == sizes[1] and local):
            return place
    return None


def _name(graph: Graph, step: Step, join: Join, small: int | None) -> tuple[str, str]:
    if any(_from_softmax(graph, term) for term in step.terms):
        return "attention", "a softmax times values"
    if step.name in LINEARS:
        return "product", "a matrix product of two signals"
    if small is not None and join.ways[1 - small].rank == IDENTITY:
        return "squeeze-excite", "a signal times a summary of itself"
    if join.fork == ROOT and any(not _learned(graph, term) for term in step.terms):
        return "mask", "a signal times an input of its own"
    if join.fork != ROOT and apart(graph, join):
        return "gate", "a part of a signal times another part"
    return "gate", "a signal times a signal"


def _learned(graph: Graph, term: Term) -> bool:
    """Tell whether parameters act anywhere before a term."""
    work, seen = [graph.same(value) for value in term.values], set()
    while work:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        step = graph.step(value)
        made = graph.recording.values[value].call
        if (step is not None and step.weighted) or (
            made is not None and graph.names(value)
        ):
            return True
        work += graph.parents(value)
    return False


def _from_softmax(graph: Graph, term: Term) -> bool:
    return _traced(graph, term, (), names=SOFTMAXES)


def _traced(
    graph: Graph,
    term: Term,
    words: tuple[str, ...],
    names: frozenset[str] = frozenset(),
) -> bool:
    """Tell whether a term is the result of a step, up to views and factors."""
    value = graph.same(term.values[0])
    while True:
        step, parents = graph.step(value), graph.parents(value)
        if step is not None and (step.word in words or step.name in names):
            return True
        moves = step is None or step.word in ("view", "scale", "shift", "slice", "pad")
        if not moves or len(parents) != 1:
            return False
        value = parents[0]


def _scores(graph: Graph) -> set[int]:
    """Return the softmaxes of products of signals, those products, and sums between."""
    found: set[int] = set()
    for step in graph.steps.values():
        if step.name in SOFTMAXES:
            work, passed = list(step.reads), {step.call}
            while work:
                value = graph.same(work.pop())
                before = graph.step(value)
                if before is not None and before.word == "addition":
                    passed.add(before.call)
                if before is not None and before.word == "product":
                    found |= {before.call} | passed
                elif before is None or before.word in (
                    "view", "scale", "shift", "addition", "activation", "slice",
                ):  # fmt: skip
                    work += graph.parents(value)
    return found


def _in_recurrences(graph: Graph) -> set[int]:
    """Return the calls that torch's recurrent layers made."""
    return {
        call
        for visit in graph.recording.visits
        if visit.recurrent
        for call in range(visit.first, visit.stop)
    }
