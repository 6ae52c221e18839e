"""Sums of signals: which are residual, and what the others are."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from theodolite.anatomy.graph import ROOT, Graph
from theodolite.anatomy.joins import (
    IDENTITY,
    NONLINEAR,
    REARRANGED,
    Join,
    apart,
    fork_of,
    join_of,
)
from theodolite.anatomy.steps import Step, Term
from theodolite.anatomy.vocabulary import LINEARS

Verdict = Literal[
    "residual", "parallel", "separate", "broadcast", "fixed", "highway", "parts",
    "tangled", "doubled", "interpolation",
]  # fmt: skip
# Of these a term may still be one term of a larger sum.
_OPEN = ("parallel", "fixed", "tangled")


@dataclass(frozen=True, kw_only=True)
class Sum:
    """One sum of signals, of one call or of several in a row.

    Attributes:
        calls: Indices of the calls that add, in order.
        terms: What is added.
        join: Where the terms come from.
        verdict: What it is.
        skip: Which term is the skip, of a residual one.
    """

    calls: tuple[int, ...]
    terms: tuple[Term, ...]
    join: Join
    verdict: Verdict
    skip: int | None = None


def sums_of(graph: Graph, leave: Iterable[int] = ()) -> list[Sum]:
    """Find and judge all sums of signals.

    Args:
        graph: The signal.
        leave: Calls that belong to something else, such as a norm written by hand.
    """
    left = set(leave)
    found: dict[int, Sum] = {}  # by the value that holds the sum
    for step in graph.steps.values():
        if step.word == "addition" and step.call not in left:
            judged = _absorbing(graph, step, found)
            found[_result(graph, step)] = judged
    inner = {
        call
        for each in found.values()
        if each.verdict == "interpolation"
        for place in range(len(each.terms))
        for call in _taken_off(graph, each.join, place)
    }
    return [each for each in found.values() if not inner & set(each.calls)]


def _absorbing(graph: Graph, step: Step, found: dict[int, Sum]) -> Sum:
    """Judge a sum, with the sums that it merely continues taken in."""
    whole = judge(graph, (step.call,), step.terms)
    for term in step.terms:
        inner = found.get(graph.same(term.values[0]))
        if inner is None or term.fused or not _only_here(graph, term):
            continue
        longer = _joined(graph, whole, term, inner)
        if longer is not None:
            found.pop(graph.same(term.values[0]))
            whole = longer
    return whole


def _joined(graph: Graph, whole: Sum, term: Term, inner: Sum) -> Sum | None:
    """Return a sum with one term replaced by the terms of an inner sum, if it may be.

    A residual sum is continued by a branch from the same fork; one of which skip and
    branches are open is continued by anything.
    """
    terms = [t for t in whole.terms if t is not term]
    place = whole.terms.index(term)
    terms[place:place] = [_times(t, term.sign) for t in inner.terms]
    if inner.verdict == "residual" and fork_of(graph, whole.terms) != inner.join.fork:
        return None
    if inner.verdict not in ("residual", *_OPEN):
        return None
    longer = judge(graph, (*inner.calls, *whole.calls), tuple(terms))
    settled = longer.verdict == "residual" or inner.verdict == longer.verdict
    return longer if settled else None


def judge(graph: Graph, calls: tuple[int, ...], terms: tuple[Term, ...]) -> Sum:
    """Say what a sum is."""
    join = join_of(graph, terms)
    verdict, skip = _verdict(graph, join)
    return Sum(calls=calls, terms=terms, join=join, verdict=verdict, skip=skip)


def _verdict(graph: Graph, join: Join) -> tuple[Verdict, int | None]:
    values = [graph.same(way.term.values[0]) for way in join.ways]
    if join.fork == ROOT:
        tied = any(graph.related(values[0], value) for value in values[1:])
        return ("tangled" if tied else "separate"), None
    if len(set(values)) == 1 and not any(way.term.fused for way in join.ways):
        return "doubled", None
    sizes = [graph.size(v) for way in join.ways for v in way.term.values]
    if len(set(sizes)) > 1 and not any(way.term.fused for way in join.ways):
        return "broadcast", None
    if _fixed(join):
        return "fixed", None
    if apart(graph, join):
        return "parts", None
    return _by_rank(graph, join)


def _by_rank(graph: Graph, join: Join) -> tuple[Verdict, int | None]:
    ranks = [way.rank for way in join.ways]
    least = min(ranks)
    if least == NONLINEAR and all(_gated(graph, way.term) for way in join.ways):
        return "highway", None
    if ranks.count(least) > 1 or least == NONLINEAR:
        return "parallel", None
    others = [way for at, way in enumerate(join.ways) if at != _at(ranks)]
    if any(way.rank <= REARRANGED and not way.weighted for way in others):
        return "fixed", None
    taken_off = _taken_off(graph, join, _at(ranks))
    return ("interpolation", None) if taken_off else ("residual", _at(ranks))


def _taken_off(graph: Graph, join: Join, skip: int) -> set[int]:
    """Return the calls in a branch that subtract the fork, to be added again.

    Such a sum weighs the skip against the branch, as in x + t (h − x).
    """
    found: set[int] = set()
    for place, way in enumerate(join.ways):
        for step in way.steps if place != skip else ():
            minus = [t for t in step.terms if t.sign < 0 and step.word == "addition"]
            if not any(graph.same(t.values[0]) == join.fork for t in minus):
                continue
            made = _result(graph, step)
            rest = graph.along(graph.way(made, way.term.values))
            if all(s.pointwise for s in rest) and join.ways[skip].rank == IDENTITY:
                found.add(step.call)
    return found


def _fixed(join: Join) -> bool:
    """Tell whether nothing happens but rearrangement, without weights in a branch."""
    if any(way.rank > REARRANGED for way in join.ways):
        return False
    ranks = [way.rank for way in join.ways]
    others = [way for at, way in enumerate(join.ways) if at != _at(ranks)]
    learned = all(way.weighted for way in others)
    return min(ranks) > IDENTITY or not learned


def _at(ranks: list[int]) -> int:
    return ranks.index(min(ranks))


def _gated(graph: Graph, term: Term) -> bool:
    """Tell whether a term is a pointwise product, up to views and factors."""
    if term.fused == "product":
        return True
    value = term.values[0]
    while True:
        step = graph.step(graph.same(value))
        if step is not None and step.word == "product":
            return step.name not in LINEARS
        parents = graph.parents(graph.same(value))
        if step is None or step.word not in ("view", "scale") or len(parents) != 1:
            return False
        value = parents[0]


def _only_here(graph: Graph, term: Term) -> bool:
    value = graph.same(term.values[0])
    return len(graph.readers(value)) == 1 and value not in graph.recording.outputs


def _times(term: Term, sign: float) -> Term:
    return term if sign == 1 else Term(**{**vars(term), "sign": term.sign * sign})


def _result(graph: Graph, step: Step) -> int:
    return graph.recording.calls[step.call].outputs[0]
