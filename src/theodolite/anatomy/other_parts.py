"""Activations, and operations other than residual additions that join tensors."""

from collections.abc import Iterable

from .graph import ROOT, Graph
from .operators import MAX_POOLS
from .parts import Activation, Other, Unplaced
from .routes import REARRANGED, routes_to
from .steps import Step, Term
from .sums import Sum

_SUMS = {
    "separate": ("sum of sources", "terms that come from different inputs"),
    "broadcast": ("broadcast sum", "a term repeated along axes of another"),
    "fixed": ("fixed map", "a sum of rearranged copies, without weights"),
    "highway": ("highway", "a sum of gated ways"),
    "interpolation": ("interpolation", "a sum in which the skip is subtracted again"),
    "parts": ("coupling", "a part of a signal plus a function of another part"),
}
_JOINS = {
    "attention": "one fused operator",
    "gate": "a part of a signal times another part",
    "scatter": "numbers added up where an index says",
}
_REASONS = {
    "parallel": "all ways from the fork do as much: none is the skip",
    "tangled": "the terms have sources in common and no fork",
}


def activations_of(
    graph: Graph, handwritten: Iterable[Activation], taken: set[int]
) -> list[Activation]:
    """Return all activations in order.

    ``taken`` are calls of handwritten activations and norms.
    """
    activations = [
        Activation(
            call=step.call,
            module=graph.module_of(step.call),
            kind=_activation_kind(step),
            piecewise_linear=not step.curved,
        )
        for step in graph.steps.values()
        if step.call not in taken and _is_activation(graph, step)
    ]
    return sorted([*activations, *handwritten], key=lambda each: each.call)


def _activation_kind(step: Step) -> str:
    """Return the common name of an operator."""
    name = step.name.strip("_")
    for part in ("_with_indices", "_with_noise", "_functional", "_kernel", "_forward"):
        name = name.removesuffix(part)
    return name.removeprefix("safe_")


def _is_activation(graph: Graph, step: Step) -> bool:
    if step.kind in ("activation", "statistic") or step.name in MAX_POOLS:
        return True
    made = graph.recording.calls[step.call].outputs
    floating = bool(made) and graph.recording.values[made[0]].dtype.startswith("float")
    return step.kind == "step" and floating


def other_sums(graph: Graph, sums: Iterable[Sum]) -> list[Other]:
    """Return the sums that are understood and not residual."""
    return [
        _other(graph, each.calls[-1], *_SUMS[each.kind])
        for each in sums
        if each.kind in _SUMS
    ]


def unplaced_sums(graph: Graph, sums: Iterable[Sum]) -> list[Unplaced]:
    """Return the sums that are not understood."""
    return [
        Unplaced(
            call=each.calls[-1],
            module=graph.module_of(each.calls[-1]),
            reason=_REASONS[each.kind],
            operands=tuple(value for term in each.terms for value in term.values),
        )
        for each in sums
        if each.kind in _REASONS
    ]


def unknown_operators(graph: Graph) -> list[Unplaced]:
    """Return operators on the signal that are not known, each once."""
    first: dict[str, Step] = {}
    for step in graph.steps.values():
        if step.kind == "unknown":
            first.setdefault(step.name, step)
    return [
        Unplaced(
            call=step.call,
            module=graph.module_of(step.call),
            reason=f"the operator {name} is not known: it counts as nonlinear",
            operands=step.reads,
        )
        for name, step in first.items()
    ]


def rearrangements(graph: Graph, sums: Iterable[Sum]) -> set[int]:
    """Return the calls that only reorder parts of a signal."""
    calls = {call for s in sums if s.kind in ("fixed", "doubled") for call in s.calls}
    for step in graph.steps.values():
        if step.kind == "concatenation" and not _concatenation(graph, step):
            calls.add(step.call)
    return calls


def other_joins(graph: Graph, taken: set[int]) -> list[Other]:
    """Return concatenations, fused attention and gates, scatters and recurrences."""
    joins = []
    for step in graph.steps.values():
        if step.call in taken:
            continue
        if step.kind == "concatenation":
            joins += _concatenation(graph, step)
        elif step.kind in _JOINS:
            joins.append(_other(graph, step.call, step.kind, _JOINS[step.kind]))
    return joins + _recurrences(graph)


def _concatenation(graph: Graph, step: Step) -> list[Other]:
    terms = [Term(values=(n,), call=step.call, position=0) for n in step.reads]
    routes = routes_to(graph, terms)
    if routes.fork != ROOT and all(r.rank <= REARRANGED for r in routes.routes):
        return []  # parts put together in another order
    values = [graph.same(n) for n in step.reads]
    detail = f"{len(values)} signals"
    if routes.fork in values:
        detail += ", one of them on the way to all others"
    return [_other(graph, step.call, "concatenation", detail)]


def _recurrences(graph: Graph) -> list[Other]:
    """Return recurrent layers, and modules with weights that read their own output."""
    recording = graph.recording
    visits: dict[str, list[int]] = {}
    for visit in recording.visits[1:]:
        visits.setdefault(visit.module, []).append(visit.index)
    recurrences: dict[str, Other] = {}
    for module, indices in visits.items():
        if any(module.startswith(f"{name}.") for name in recurrences):
            continue
        first = recording.visits[indices[0]]
        if first.recurrent or _reads_own_output(graph, indices):
            detail = f"run {len(indices)} times" if len(indices) > 1 else "a layer"
            recurrences[module] = Other(
                kind="recurrence", call=first.first, module=module, detail=detail
            )
    return list(recurrences.values())


def _reads_own_output(graph: Graph, visits: list[int]) -> bool:
    """Return whether a module with weights reads its output of an earlier run."""
    runs = []
    for visit in (graph.recording.visits[index] for index in visits):
        calls = [call for call in range(visit.first, visit.stop) if call in graph.steps]
        if any(graph.steps[call].weighted for call in calls):
            runs.append(calls)
    if len(runs) < 2:
        return False
    reads = [value for call in runs[-1] for value in graph.steps[call].reads]
    return any(
        graph.reaches(graph.same(made), reads)
        for call in reversed(runs[0])
        for made in graph.recording.calls[call].outputs
    )


def _other(graph: Graph, call: int, kind: str, detail: str) -> Other:
    return Other(kind=kind, call=call, module=graph.module_of(call), detail=detail)
