"""Norms, and where they stand among the additions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from theodolite.anatomy.graph import Graph
from theodolite.anatomy.parts import Addition, Norm, Placement, Span
from theodolite.anatomy.products import NormByHand
from theodolite.anatomy.recording import Call, Ref
from theodolite.anatomy.vocabulary import NORMS

_LAYERS = frozenset("linear product attention norm gate concatenation".split())


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A norm before it is placed."""

    call: int
    calls: frozenset[int]
    kind: str
    entry: int
    exit: int


def norms_of(
    graph: Graph,
    additions: Sequence[Addition],
    by_hand: Iterable[NormByHand],
    taken: set[int],
) -> list[Norm]:
    """Find and place all norms.

    Args:
        graph: The signal.
        additions: The residual additions.
        by_hand: Norms that are written by hand.
        taken: Calls that belong to those.
    """
    found = [_layer(graph, step.call) for step in graph.steps.values()
             if step.word == "norm" and step.call not in taken]  # fmt: skip
    found += [
        _Found(
            call=norm.call,
            calls=norm.calls,
            kind=norm.kind,
            entry=norm.entry,
            exit=norm.exit,
        )
        for norm in by_hand
    ]
    placer = _Placer(graph, additions, found)
    return [placer.norm(each) for each in sorted(found, key=lambda f: f.call)]


def _layer(graph: Graph, index: int) -> _Found:
    call = graph.recording.calls[index]
    kind = NORMS[call.name]
    if kind == "batch" and _per_sample(graph, call):
        kind = "instance"
    return _Found(
        call=index,
        calls=frozenset([index]),
        kind=kind,
        entry=call.inputs[0],
        exit=call.outputs[0],
    )


def _per_sample(graph: Graph, call: Call) -> bool:
    """Tell whether samples were folded into channels, as instance norms do.

    Their running statistics, if they have any, are repeated, and so made in the run.
    """
    value, kept = call.inputs[0], call.arguments[3]
    step = graph.step(value)
    if step is None or step.word != "view":
        return False
    if isinstance(kept, Ref) and graph.recording.values[kept.number].source != "call":
        return False
    shape = graph.recording.values[value].shape
    before = graph.recording.values[step.reads[0]].shape
    if min(len(shape), len(before)) < 2 or before[0] == 1:
        return False
    return shape[:2] == (1, before[0] * before[1])


def _shortest(additions: Sequence[Addition]) -> dict[int, tuple[int, Span]]:
    """Return, by call, the shortest span that it lies in, and whose it is."""
    found: dict[int, tuple[int, Span]] = {}
    for place, addition in enumerate(additions):
        for span in (addition.skip, *addition.branches):
            for call in span.calls:
                known = found.get(call)
                if known is None or len(span.calls) < len(known[1].calls):
                    found[call] = place, span
    return found


class _Placer:
    """Places norms among additions."""

    def __init__(
        self, graph: Graph, additions: Sequence[Addition], norms: Sequence[_Found]
    ) -> None:
        self._graph, self._additions = graph, additions
        self._norms = norms
        self._trunk = [a for a in additions if a.inside is None]
        self._made = {graph.same(a.output): place for place, a in enumerate(additions)}
        self._ahead: dict[int, list[int]] = {}
        for place, addition in enumerate(additions):
            for value in self._back(addition.fork):
                self._ahead.setdefault(value, []).append(place)
        self._scopes = _shortest(additions)
        self._followed = {behind for norm in norms for behind in self._followers(norm)}

    def norm(self, found: _Found) -> Norm:
        """Return a norm with its place."""
        placement, addition = self._place(found)
        return Norm(
            call=found.call,
            module=self._graph.recording.calls[found.call].module,
            kind=found.kind,
            placement=placement,
            addition=addition,
        )

    def _place(self, found: _Found) -> tuple[Placement, int | None]:
        if not self._additions:
            return "plain", None
        behind, feeds = self._behind(found), self._feeds(found)
        scope = self._scopes.get(found.call)
        if behind is not None and feeds:
            return self._post_or_shared(found, behind, feeds[0])
        if scope is not None:
            addition, span = scope
            if span.role == "skip":
                return "skip", addition
            return ("pre" if self._leads(found, span) else "inside"), addition
        if not self._trunk or found.call < self._trunk[0].call:
            return "stem", None
        if found.call > self._trunk[-1].call:
            return self._at_the_end(found, behind)
        if behind is not None and self._at_home(found, behind):
            return "post", behind
        return "between", behind

    def _leads(self, found: _Found, span: Span) -> bool:
        """Tell whether no layer comes before a norm in its branch."""
        steps = self._graph.steps
        return not any(
            steps[call].word in _LAYERS
            for call in span.calls
            if call < found.call and call not in found.calls
        )

    def _behind(self, found: _Found) -> int | None:
        """Return the addition whose sum is normed, up to views and activations."""
        for value in self._back(found.entry):
            if value in self._made:
                return self._made[value]
        return None

    def _feeds(self, found: _Found) -> list[int]:
        """List the additions that fork right behind a norm."""
        ahead = self._ahead.get(self._graph.same(found.exit), [])
        return [p for p in ahead if self._additions[p].call > found.call]

    def _followers(self, found: _Found) -> list[int]:
        """Return the addition that a norm follows before the next fork, if any."""
        behind, feeds = self._behind(found), self._feeds(found)
        if behind is None or not feeds:
            return []
        placement, _ = self._post_or_shared(found, behind, feeds[0])
        return [behind] if placement == "post" else []

    def _back(self, value: int) -> list[int]:
        """List a value and those before it, up to views and activations."""
        graph, value = self._graph, self._graph.same(value)
        found = [value]
        while True:
            step, parents = graph.step(value), graph.parents(value)
            easy = step is None or step.word == "view" or (
                step.word == "activation" and step.pointwise
            )  # fmt: skip
            if not easy or len(parents) != 1 or value in self._made:
                return found
            value = parents[0]
            found.append(value)

    def _post_or_shared(
        self, found: _Found, behind: int, ahead: int
    ) -> tuple[Placement, int | None]:
        """Tell a norm of the sum behind from one shared by the ways ahead."""
        before = self._near(found.call, self._additions[behind].call)
        after = self._near(found.call, self._additions[ahead].call)
        if after > before:
            return "pre", ahead
        if before == after and self._additions[ahead].skip.kind != "identity":
            return "between", behind
        return "post", behind

    def _at_the_end(
        self, found: _Found, behind: int | None
    ) -> tuple[Placement, int | None]:
        """Tell the norm of the last sum from one of the head."""
        if behind is None:
            return "final", None
        others = [
            place in self._followed
            for place, addition in enumerate(self._additions)
            if addition.inside is None and place != behind
        ]
        if others and all(others):
            return "post", behind
        if others and not any(others):
            return "final", None
        if self._at_home(found, behind):
            return "post", behind
        own = len(self._around(self._additions[behind].call))
        return ("after", behind) if own == 1 else ("final", None)

    def _at_home(self, found: _Found, behind: int) -> bool:
        """Tell whether a norm runs in the submodule that made the sum."""
        call = self._additions[behind].call
        own = len(self._around(call))
        return own > 1 and self._near(found.call, call) == own

    def _around(self, call: int) -> tuple[int, ...]:
        recording = self._graph.recording
        return recording.around(recording.calls[call].visit)

    def _near(self, a: int, b: int) -> int:
        """Count the visits that two calls share."""
        return len(set(self._around(a)) & set(self._around(b)))
