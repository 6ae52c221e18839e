"""What else joins tensors: concatenation, recurrence, sums that are not residual."""

from collections.abc import Iterable

from theodolite.anatomy.graph import ROOT, Graph
from theodolite.anatomy.joins import REARRANGED, join_of
from theodolite.anatomy.parts import Other, Unplaced
from theodolite.anatomy.steps import Step, Term
from theodolite.anatomy.sums import Sum

_NAMES = {
    "separate": ("sum of sources", "terms that come from different inputs"),
    "broadcast": ("broadcast sum", "a term repeated along axes of another"),
    "fixed": ("fixed map", "a sum of rearranged copies, without weights"),
    "highway": ("highway", "a sum of gated ways"),
    "interpolation": ("interpolation", "a sum in which the skip is subtracted again"),
    "parts": ("coupling", "a part of a signal plus a function of another part"),
}
_REASONS = {
    "parallel": "all ways from the fork do as much: none is the skip",
    "tangled": "the terms have sources in common and no fork",
}


def other_sums(graph: Graph, sums: Iterable[Sum]) -> list[Other]:
    """Name the sums that are understood and not residual."""
    found = []
    for each in sums:
        if each.verdict in _NAMES:
            kind, detail = _NAMES[each.verdict]
            found.append(_other(graph, each.calls[-1], kind, detail))
    return found


def unplaced_sums(graph: Graph, sums: Iterable[Sum]) -> list[Unplaced]:
    """List the sums that are not understood."""
    return [
        Unplaced(
            call=each.calls[-1],
            module=graph.recording.calls[each.calls[-1]].module,
            reason=_REASONS[each.verdict],
            operands=tuple(value for term in each.terms for value in term.values),
        )
        for each in sums
        if each.verdict in _REASONS
    ]


def unknown_operators(graph: Graph) -> list[Unplaced]:
    """List operators that carry the signal and are not known, each once."""
    first: dict[str, Step] = {}
    for step in graph.steps.values():
        if step.word == "unknown":
            first.setdefault(step.name, step)
    return [
        Unplaced(
            call=step.call,
            module=graph.recording.calls[step.call].module,
            reason=f"the operator {name} is not known: it counts as nonlinear",
            operands=step.reads,
        )
        for name, step in first.items()
    ]


def mere_rearrangements(graph: Graph, sums: Iterable[Sum]) -> set[int]:
    """Return the calls that put parts of a signal together in another order."""
    found = {
        call for s in sums if s.verdict in ("fixed", "doubled") for call in s.calls
    }
    for step in graph.steps.values():
        if step.word == "concatenation" and not _concatenation(graph, step):
            found.add(step.call)
    return found


def joins_otherwise(graph: Graph, taken: set[int]) -> list[Other]:
    """Name concatenations, fused attention and gates, scatters and recurrences."""
    found = []
    for step in graph.steps.values():
        if step.call in taken:
            continue
        if step.word == "concatenation":
            found += _concatenation(graph, step)
        elif step.word == "attention":
            found.append(_other(graph, step.call, "attention", "one fused operator"))
        elif step.word == "gate":
            text = "a part of a signal times another part"
            found.append(_other(graph, step.call, "gate", text))
        elif step.word == "scatter":
            text = "numbers added up where an index says"
            found.append(_other(graph, step.call, "scatter", text))
    return found + _recurrences(graph)


def _concatenation(graph: Graph, step: Step) -> list[Other]:
    terms = [Term(values=(n,), call=step.call, position=0) for n in step.reads]
    join = join_of(graph, terms)
    if join.fork != ROOT and all(way.rank <= REARRANGED for way in join.ways):
        return []  # parts put together in another order
    values = [graph.same(n) for n in step.reads]
    text = f"{len(values)} signals"
    if join.fork in values:
        text += ", one of them on the way to all others"
    return [_other(graph, step.call, "concatenation", text)]


def _recurrences(graph: Graph) -> list[Other]:
    """Name modules with weights that run on what they gave before."""
    recording = graph.recording
    visits: dict[str, list[int]] = {}
    for visit in recording.visits[1:]:
        visits.setdefault(visit.module, []).append(visit.index)
    found: list[Other] = []
    inner: set[str] = set()
    for module, indices in visits.items():
        if any(module.startswith(f"{name}.") for name in inner):
            continue
        layer = recording.visits[indices[0]].recurrent
        if layer or _runs_again(graph, indices):
            inner.add(module)
            first = recording.visits[indices[0]].first
            text = f"run {len(indices)} times" if len(indices) > 1 else "a layer"
            found.append(
                Other(kind="recurrence", call=first, module=module, detail=text)
            )
    return found


def _runs_again(graph: Graph, visits: list[int]) -> bool:
    """Tell whether a module with weights reads what it made in an earlier run."""
    runs = []
    for visit in (graph.recording.visits[index] for index in visits):
        calls = [call for call in range(visit.first, visit.stop) if call in graph.steps]
        if any(graph.steps[call].weighted for call in calls):
            runs.append(calls)
    if len(runs) < 2:
        return False
    reads = [value for call in runs[-1] for value in graph.steps[call].reads]
    return any(
        graph.precedes(graph.same(made), reads)
        for call in reversed(runs[0])
        for made in graph.recording.calls[call].outputs
    )


def _other(graph: Graph, call: int, kind: str, detail: str) -> Other:
    module = graph.recording.calls[call].module
    return Other(kind=kind, call=call, module=module, detail=detail)
