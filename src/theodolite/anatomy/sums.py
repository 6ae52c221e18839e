"""Sums of signals: find the residual additions, and classify the others."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .graph import ROOT, Graph
from .operators import LINEARS
from .routes import (
    IDENTITY,
    NONLINEAR,
    REARRANGED,
    Routes,
    common_fork,
    from_disjoint_slices,
    routes_to,
)
from .steps import Step, Term

SumKind = Literal[
    "residual", "parallel", "separate", "broadcast", "fixed", "highway", "parts",
    "tangled", "doubled", "interpolation",
]  # fmt: skip
# A sum of these kinds may still be one term of a larger sum.
_OPEN = ("parallel", "fixed", "tangled")


@dataclass(frozen=True, kw_only=True)
class Sum:
    """One sum of signals, computed by one call or by several in a row."""

    calls: tuple[int, ...]  # indices of the calls that add, in order
    terms: tuple[Term, ...]
    routes: Routes  # where the terms come from
    kind: SumKind  # what kind of sum it is
    skip: int | None = None  # which term is the skip, if the sum is residual


def sums_of(graph: Graph, exclude: Iterable[int] = ()) -> list[Sum]:
    """Return all sums of signals with their kinds.

    ``exclude`` are calls that belong to something else, such as a handwritten norm.
    """
    excluded = set(exclude)
    sums: dict[int, Sum] = {}  # by the value that holds the sum
    for step in graph.steps.values():
        if step.kind == "addition" and step.call not in excluded:
            sums[_result(graph, step)] = _absorbing(graph, step, sums)
    inner = {
        call
        for each in sums.values()
        if each.kind == "interpolation"
        for place in range(len(each.terms))
        for call in _subtracting(graph, each.routes, place)
    }
    return [each for each in sums.values() if not inner & set(each.calls)]


def _absorbing(graph: Graph, step: Step, sums: dict[int, Sum]) -> Sum:
    """Return a sum with its kind, merged with earlier sums that it continues."""
    whole = _classified(graph, (step.call,), step.terms)
    for term in step.terms:
        value = graph.same(term.values[0])
        inner = sums.get(value)
        returned = value in graph.recording.outputs
        if inner is None or term.fused or returned or len(graph.readers(value)) != 1:
            continue
        longer = _joined(graph, whole, term, inner)
        if longer is not None:
            sums.pop(value)
            whole = longer
    return whole


def _joined(graph: Graph, whole: Sum, term: Term, inner: Sum) -> Sum | None:
    """Return a sum with one term replaced by the terms of an inner sum, if allowed.

    A branch from the same fork continues a residual sum; any term continues a sum in
    which skip and branches are not yet known.
    """
    terms = [t for t in whole.terms if t is not term]
    place = whole.terms.index(term)
    terms[place:place] = [
        Term(**{**vars(t), "sign": t.sign * term.sign}) for t in inner.terms
    ]
    if (
        inner.kind == "residual"
        and common_fork(graph, whole.terms) != inner.routes.fork
    ):
        return None
    if inner.kind not in ("residual", *_OPEN):
        return None
    longer = _classified(graph, (*inner.calls, *whole.calls), tuple(terms))
    settled = longer.kind == "residual" or inner.kind == longer.kind
    return longer if settled else None


def _classified(graph: Graph, calls: tuple[int, ...], terms: tuple[Term, ...]) -> Sum:
    routes = routes_to(graph, terms)
    kind, skip = _kind(graph, routes)
    return Sum(calls=calls, terms=terms, routes=routes, kind=kind, skip=skip)


def _kind(graph: Graph, routes: Routes) -> tuple[SumKind, int | None]:
    terms = [route.term for route in routes.routes]
    values = [graph.same(term.values[0]) for term in terms]
    if routes.fork == ROOT:
        tied = any(graph.share_source(values[0], value) for value in values[1:])
        return ("tangled" if tied else "separate"), None
    fused = any(term.fused for term in terms)
    if len(set(values)) == 1 and not fused:
        return "doubled", None
    if len({graph.size(v) for t in terms for v in t.values}) > 1 and not fused:
        return "broadcast", None
    if _is_fixed(routes):
        return "fixed", None
    if from_disjoint_slices(graph, routes):
        return "parts", None
    return _kind_by_rank(graph, routes)


def _kind_by_rank(graph: Graph, routes: Routes) -> tuple[SumKind, int | None]:
    ranks = [route.rank for route in routes.routes]
    least = min(ranks)
    if least == NONLINEAR and all(_gated(graph, r.term) for r in routes.routes):
        return "highway", None
    if ranks.count(least) > 1 or least == NONLINEAR:
        return "parallel", None
    skip = ranks.index(least)
    others = [route for at, route in enumerate(routes.routes) if at != skip]
    if any(route.rank <= REARRANGED and not route.weighted for route in others):
        return "fixed", None
    if _subtracting(graph, routes, skip):
        return "interpolation", None
    return "residual", skip


def _subtracting(graph: Graph, routes: Routes, skip: int) -> set[int]:
    """Return the calls in a branch that subtract the fork, which is then added again.

    Such a sum weighs the skip against the branch, as in x + t (h − x).
    """
    calls: set[int] = set()
    for place, route in enumerate(routes.routes):
        for step in route.steps if place != skip else ():
            minus = [t for t in step.terms if t.sign < 0 and step.kind == "addition"]
            if not any(graph.same(t.values[0]) == routes.fork for t in minus):
                continue
            behind = graph.between(_result(graph, step), route.term.values)
            pointwise = all(s.pointwise for s in graph.steps_making(behind))
            if pointwise and routes.routes[skip].rank == IDENTITY:
                calls.add(step.call)
    return calls


def _is_fixed(routes: Routes) -> bool:
    """Return whether all routes only rearrange, without weights in a branch."""
    ranks = [route.rank for route in routes.routes]
    if max(ranks) > REARRANGED:
        return False
    skip = ranks.index(min(ranks))
    others = [route for at, route in enumerate(routes.routes) if at != skip]
    return min(ranks) > IDENTITY or not all(route.weighted for route in others)


def _gated(graph: Graph, term: Term) -> bool:
    """Return whether a term is a pointwise product, apart from views and factors."""
    if term.fused == "product":
        return True
    value = term.values[0]
    while True:
        step = graph.step(graph.same(value))
        if step is not None and step.kind == "product":
            return step.name not in LINEARS
        parents = graph.parents(graph.same(value))
        if step is None or step.kind not in ("view", "scale") or len(parents) != 1:
            return False
        value = parents[0]


def _result(graph: Graph, step: Step) -> int:
    return graph.recording.calls[step.call].outputs[0]
