"""Where ways of the signal meet: the fork they come from, and what each does.

The short way is told from the others by its *rank*: nothing at all (identity), a
rearrangement or a factor, a norm, a linear map, anything else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from theodolite.anatomy.graph import ROOT, Graph
from theodolite.anatomy.steps import Step, Term

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
class Way:
    """All ways of the signal from a fork to one term of a join.

    Attributes:
        term: What is joined.
        values: Values on the way, without the fork.
        steps: What made them, in order.
    """

    term: Term
    values: tuple[int, ...]
    steps: tuple[Step, ...]

    @property
    def words(self) -> set[str]:
        """What happens on the way."""
        own = {self.term.fused} if self.term.fused else set()
        return {step.word for step in self.steps} | own

    @property
    def rank(self) -> int:
        """How much happens on the way."""
        left, found = self.words, IDENTITY
        for rank, words in _RANKS:
            if left & words:
                found = rank
            left = left - words
        return NONLINEAR if left else found

    @property
    def pointwise(self) -> bool:
        """Whether every number stays in its place."""
        return self.term.fused in ("", "scale", "product") and all(
            step.pointwise for step in self.steps
        )

    @property
    def weighted(self) -> bool:
        """Whether parameters act on the way."""
        return self.term.fused == "linear" or any(step.weighted for step in self.steps)


@dataclass(frozen=True, kw_only=True)
class Join:
    """Terms that are added or multiplied, and where their ways fork.

    Attributes:
        fork: The value, ROOT if there is none.
        ways: One a term.
    """

    fork: int
    ways: tuple[Way, ...]

    @property
    def pointwise(self) -> bool:
        """Whether the whole is a function of each number of the fork alone."""
        return self.fork != ROOT and all(way.pointwise for way in self.ways)

    def calls(self) -> set[int]:
        """Return the calls on all ways."""
        return {step.call for way in self.ways for step in way.steps}


def join_of(graph: Graph, terms: Sequence[Term]) -> Join:
    """Find the fork of some terms and their ways from it."""
    fork = fork_of(graph, terms)
    return Join(fork=fork, ways=tuple(_way(graph, fork, term) for term in terms))


def fork_of(graph: Graph, terms: Sequence[Term]) -> int:
    """Return the value from which the ways to all terms start, ROOT if none is.

    A term from which the signal runs to all others is the fork, whatever else they
    read; otherwise it is the nearest value that dominates all.
    """
    ends = [_ends(graph, term) for term in terms]
    for place, found in enumerate(ends):
        others = [other for at, other in enumerate(ends) if at != place]
        if terms[place].fused:
            continue
        for start in _behind_views(graph, found[0]):
            if all(graph.precedes(start, other) for other in others):
                return start
    everything = [value for found in ends for value in found]
    nearest = everything[0]
    for value in everything[1:]:
        nearest = graph.nearest(nearest, value)
        if nearest == ROOT:
            break
    return nearest


def entries(graph: Graph, fork: int, way: Way) -> set[int]:
    """Return the values by which a way leaves the fork."""
    return {value for value in way.values if fork in graph.parents(value)}


def apart(graph: Graph, join: Join) -> bool:
    """Tell whether ways leave the fork by different parts of it, none by the whole."""
    taken: set[int] = set()
    for way in join.ways:
        first = entries(graph, join.fork, way)
        steps = [graph.step(value) for value in first]
        if not first or any(s is None or s.word != "slice" for s in steps):
            return False
        if taken & first:
            return False
        taken |= first
    return True


def _behind_views(graph: Graph, value: int) -> Iterable[int]:
    """Yield a value and those that it is a mere view of."""
    while True:
        yield value
        step = graph.step(value)
        parents = graph.parents(value)
        if len(parents) != 1 or (step is not None and step.word != "view"):
            return
        value = parents[0]


def _ends(graph: Graph, term: Term) -> tuple[int, ...]:
    return tuple(graph.same(value) for value in term.values)


def _way(graph: Graph, fork: int, term: Term) -> Way:
    values = () if fork == ROOT else graph.way(fork, _ends(graph, term))
    return Way(term=term, values=values, steps=tuple(graph.along(values)))
