"""Norms, and their placement among the residual additions."""

from collections.abc import Iterable, Sequence

from .graph import Graph
from .operators import NORMS
from .parts import Addition, Norm, Placement, Span
from .products import UnplacedNorm
from .recording import Call, Ref

_LAYERS = frozenset("linear product attention norm gate concatenation".split())


def norms_of(
    graph: Graph,
    additions: Sequence[Addition],
    handwritten: Iterable[UnplacedNorm],
    taken: set[int],
) -> list[Norm]:
    """Return all norms with their placement, in order.

    ``taken`` are the calls that belong to ``handwritten`` norms.
    """
    norms = [
        _norm_operator(graph, step.call)
        for step in graph.steps.values()
        if step.kind == "norm" and step.call not in taken
    ]
    norms += handwritten
    placer = _Placer(graph, additions, norms)
    return [placer.placed(norm) for norm in sorted(norms, key=lambda n: n.call)]


def _norm_operator(graph: Graph, index: int) -> UnplacedNorm:
    call = graph.recording.calls[index]
    kind = NORMS[call.name]
    if kind == "batch" and _per_sample(graph, call):
        kind = "instance"
    return UnplacedNorm(
        call=index,
        calls=frozenset([index]),
        kind=kind,
        entry=call.inputs[0],
        exit=call.outputs[0],
    )


def _per_sample(graph: Graph, call: Call) -> bool:
    """Return whether samples were folded into channels, as instance norms do.

    Their running statistics, if any, are repeated, and so computed in the run.
    """
    value, statistic = call.inputs[0], call.arguments[3]
    values, step = graph.recording.values, graph.step(value)
    if step is None or step.kind != "view":
        return False
    if isinstance(statistic, Ref) and values[statistic.number].source != "call":
        return False
    shape, before = values[value].shape, values[step.reads[0]].shape
    if min(len(shape), len(before)) < 2 or before[0] == 1:
        return False
    return shape[:2] == (1, before[0] * before[1])


class _Placer:
    """Finds the placement of norms among additions.

    Here an addition is *behind* a norm if the norm reads its sum.
    """

    def __init__(
        self, graph: Graph, additions: Sequence[Addition], norms: Sequence[UnplacedNorm]
    ) -> None:
        self._graph, self._additions = graph, additions
        self._trunk = [a for a in additions if a.inside is None]
        self._sums = {graph.same(a.output): place for place, a in enumerate(additions)}
        self._forks: dict[int, list[int]] = {}
        self._shortest: dict[int, tuple[int, Span]] = {}  # by call, with its addition
        for place, addition in enumerate(additions):
            for value in self._upstream(addition.fork):
                self._forks.setdefault(value, []).append(place)
            for span in (addition.skip, *addition.branches):
                for call in span.calls:
                    known = self._shortest.get(call)
                    if known is None or len(span.calls) < len(known[1].calls):
                        self._shortest[call] = place, span
        self._with_post_norm = {self._post_of(norm) for norm in norms}

    def placed(self, norm: UnplacedNorm) -> Norm:
        """Return a norm with its placement."""
        placement, addition = self._place(norm)
        return Norm(
            call=norm.call,
            module=self._graph.module_of(norm.call),
            kind=norm.kind,
            placement=placement,
            addition=addition,
        )

    def _place(self, norm: UnplacedNorm) -> tuple[Placement, int | None]:
        if not self._additions:
            return "plain", None
        behind, ahead = self._behind(norm), self._ahead(norm)
        if behind is not None and ahead is not None:
            return self._post_or_shared(norm, behind, ahead)
        if norm.call in self._shortest:
            addition, span = self._shortest[norm.call]
            if span.role == "skip":
                return "skip", addition
            return ("pre" if self._is_first(norm, span) else "inside"), addition
        if not self._trunk or norm.call < self._trunk[0].call:
            return "stem", None
        if norm.call > self._trunk[-1].call:
            return self._at_the_end(norm, behind)
        if behind is not None and self._in_same_module(norm, behind):
            return "post", behind
        return "between", behind

    def _is_first(self, norm: UnplacedNorm, span: Span) -> bool:
        """Return whether no layer comes before a norm in its branch."""
        steps = self._graph.steps
        return not any(
            steps[call].kind in _LAYERS
            for call in span.calls
            if call < norm.call and call not in norm.calls
        )

    def _behind(self, norm: UnplacedNorm) -> int | None:
        """Return the addition whose sum is normalised, up to views and activations."""
        values = self._upstream(norm.entry)
        return next((self._sums[v] for v in values if v in self._sums), None)

    def _ahead(self, norm: UnplacedNorm) -> int | None:
        """Return the first addition that forks directly after a norm."""
        places = self._forks.get(self._graph.same(norm.exit), [])
        later = (p for p in places if self._additions[p].call > norm.call)
        return next(later, None)

    def _post_of(self, norm: UnplacedNorm) -> int | None:
        """Return the addition that a norm follows before the next fork, if any."""
        behind, ahead = self._behind(norm), self._ahead(norm)
        if behind is None or ahead is None:
            return None
        placement, _ = self._post_or_shared(norm, behind, ahead)
        return behind if placement == "post" else None

    def _upstream(self, value: int) -> list[int]:
        """List a value and those before it, up to views and activations."""
        graph, value = self._graph, self._graph.same(value)
        values = [value]
        while True:
            step, parents = graph.step(value), graph.parents(value)
            easy = step is None or step.kind == "view" or (
                step.kind == "activation" and step.pointwise
            )  # fmt: skip
            if not easy or len(parents) != 1 or value in self._sums:
                return values
            value = parents[0]
            values.append(value)

    def _post_or_shared(
        self, norm: UnplacedNorm, behind: int, ahead: int
    ) -> tuple[Placement, int | None]:
        """Place a norm that follows a sum and precedes a fork."""
        before = self._shared_visits(norm.call, self._additions[behind].call)
        after = self._shared_visits(norm.call, self._additions[ahead].call)
        if after > before:
            return "pre", ahead
        if before == after and self._additions[ahead].skip.kind != "identity":
            return "between", behind
        return "post", behind

    def _at_the_end(
        self, norm: UnplacedNorm, behind: int | None
    ) -> tuple[Placement, int | None]:
        """Distinguish a norm of the last sum from a norm of the head."""
        if behind is None:
            return "final", None
        others = [
            place in self._with_post_norm
            for place, addition in enumerate(self._additions)
            if addition.inside is None and place != behind
        ]
        if others and all(others):
            return "post", behind
        if others and not any(others):
            return "final", None
        if self._in_same_module(norm, behind):
            return "post", behind
        depth = len(self._visits(self._additions[behind].call))
        return ("after", behind) if depth == 1 else ("final", None)

    def _in_same_module(self, norm: UnplacedNorm, behind: int) -> bool:
        """Return whether a norm runs in the submodule that computed the sum."""
        call = self._additions[behind].call
        depth = len(self._visits(call))
        return depth > 1 and self._shared_visits(norm.call, call) == depth

    def _visits(self, call: int) -> tuple[int, ...]:
        recording = self._graph.recording
        return recording.around(recording.calls[call].visit)

    def _shared_visits(self, a: int, b: int) -> int:
        return len(set(self._visits(a)) & set(self._visits(b)))
