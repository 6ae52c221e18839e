"""Where operands of a sum or product fork, and the routes from there to each of them.

The *rank* of a route distinguishes the skip from the branches: nothing happens
(identity), a rearrangement or a factor, a norm, a linear map, anything else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .graph import ROOT, Graph
from .steps import Step, Term

IDENTITY, REARRANGED, NORMED, LINEAR, NONLINEAR = range(5)
_RANKS = (
    (IDENTITY, frozenset(["view"])),
    (
        REARRANGED,
        frozenset(
            "slice pad pool resample scale shift concatenation addition "
            "reduction scatter".split()
        ),
    ),
    (NORMED, frozenset(["norm"])),
    (LINEAR, frozenset(["linear", "transform"])),
)


@dataclass(frozen=True, kw_only=True)
class Route:
    """The steps between a fork and one term."""

    term: Term
    values: tuple[int, ...]  # values on the route, without the fork
    steps: tuple[Step, ...]  # the steps that computed them, in order

    @property
    def kinds(self) -> set[str]:
        """Kinds of the steps on the route."""
        own = {self.term.fused} if self.term.fused else set()
        return {step.kind for step in self.steps} | own

    @property
    def rank(self) -> int:
        """The strongest step on the route, from IDENTITY to NONLINEAR."""
        left, highest = self.kinds, IDENTITY
        for rank, kinds in _RANKS:
            if left & kinds:
                highest = rank
            left = left - kinds
        return NONLINEAR if left else highest

    @property
    def pointwise(self) -> bool:
        """Whether every number keeps its position."""
        return self.term.fused in ("", "scale", "product") and all(
            step.pointwise for step in self.steps
        )

    @property
    def weighted(self) -> bool:
        """Whether parameters act on the route."""
        return self.term.fused == "linear" or any(step.weighted for step in self.steps)


@dataclass(frozen=True, kw_only=True)
class Routes:
    """The common fork of some terms, and the route to each."""

    fork: int  # the value at which they fork, ROOT if there is none
    routes: tuple[Route, ...]  # one per term

    @property
    def pointwise(self) -> bool:
        """Whether each number of the result depends on one number of the fork only."""
        return self.fork != ROOT and all(route.pointwise for route in self.routes)

    def calls(self) -> set[int]:
        """Return the calls on all routes."""
        return {step.call for route in self.routes for step in route.steps}


def routes_to(graph: Graph, terms: Sequence[Term]) -> Routes:
    """Return the fork of some terms and the routes from it."""
    fork = common_fork(graph, terms)
    routes = []
    for term in terms:
        values = () if fork == ROOT else graph.between(fork, _ends(graph, term))
        steps = tuple(graph.steps_making(values))
        routes.append(Route(term=term, values=values, steps=steps))
    return Routes(fork=fork, routes=tuple(routes))


def common_fork(graph: Graph, terms: Sequence[Term]) -> int:
    """Return the value where the routes to all terms start, ROOT if there is none.

    A term from which the signal runs to all others is the fork, even if the others
    read more than it; otherwise it is the nearest value that dominates all terms.
    """
    ends = [_ends(graph, term) for term in terms]
    for place, own in enumerate(ends):
        others = [other for at, other in enumerate(ends) if at != place]
        if terms[place].fused:
            continue
        for start in _behind_views(graph, own[0]):
            if all(graph.reaches(start, other) for other in others):
                return start
    values = [value for own in ends for value in own]
    nearest = values[0]
    for value in values[1:]:
        nearest = graph.common_dominator(nearest, value)
    return nearest


def from_disjoint_slices(graph: Graph, routes: Routes) -> bool:
    """Return whether each route starts from slices of the fork that no other uses."""
    taken: set[int] = set()
    for route in routes.routes:
        first = {v for v in route.values if routes.fork in graph.parents(v)}
        steps = [graph.step(value) for value in first]
        if not first or any(s is None or s.kind != "slice" for s in steps):
            return False
        if taken & first:
            return False
        taken |= first
    return True


def _behind_views(graph: Graph, value: int) -> Iterable[int]:
    """Yield a value and those that it is only a view of."""
    while True:
        yield value
        step = graph.step(value)
        parents = graph.parents(value)
        if len(parents) != 1 or (step is not None and step.kind != "view"):
            return
        value = parents[0]


def _ends(graph: Graph, term: Term) -> tuple[int, ...]:
    return tuple(graph.same(value) for value in term.values)
