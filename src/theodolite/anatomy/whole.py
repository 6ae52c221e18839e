"""The anatomy of a network: all its parts together."""

from collections import Counter
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from torch import nn

from theodolite.anatomy.graph import Graph
from theodolite.anatomy.nonlinearities import activations_of
from theodolite.anatomy.others import (
    joins_otherwise,
    mere_rearrangements,
    other_sums,
    unknown_operators,
    unplaced_sums,
)
from theodolite.anatomy.parts import (
    Activation,
    Addition,
    Norm,
    Other,
    Unplaced,
)
from theodolite.anatomy.placements import norms_of
from theodolite.anatomy.products import products_of
from theodolite.anatomy.recorder import record
from theodolite.anatomy.recording import Recording
from theodolite.anatomy.spans import addition_of
from theodolite.anatomy.sums import sums_of
from theodolite.core import Rows, strict
from theodolite.instruments import Batch

_BENDING = frozenset("gate squeeze-excite highway attention product recurrence".split())


@dataclass(frozen=True, kw_only=True)
class Anatomy:
    """What a network is made of.

    Attributes:
        additions: Residual additions, in order of their calls.
        norms: Norms, in order.
        activations: Nonlinearities, in order.
        others: What joins tensors otherwise, named for what it is.
        unplaced: Sums of which skip and branch cannot be told apart, and operators
            that are not known.
        recording: The run that all indices and numbers refer to.
    """

    additions: tuple[Addition, ...]
    norms: tuple[Norm, ...]
    activations: tuple[Activation, ...]
    others: tuple[Other, ...]
    unplaced: tuple[Unplaced, ...]
    recording: Recording

    @property
    def piecewise_linear(self) -> bool:
        """Whether the network is, with the statistics of its norms held fixed.

        All activations are made of straight pieces, no signal multiplies another, and
        all operators are known.
        """
        straight = all(a.piecewise_linear for a in self.activations)
        bends = any(other.kind in _BENDING for other in self.others)
        known = not any("not known" in each.reason for each in self.unplaced)
        return straight and not bends and known

    def rows(self) -> Rows:
        """Return one flat row a part; its value is the index of its call."""
        return Rows(
            [
                *(_addition_row(i, a) for i, a in enumerate(self.additions)),
                *(_row("norm", n, kind=n.kind, place=n.placement) for n in self.norms),
                *(
                    _row(
                        "activation",
                        a,
                        kind=a.kind,
                        place="straight" if a.piecewise_linear else "curved",
                    )
                    for a in self.activations
                ),
                *(_row("other", o, kind=o.kind, place=o.detail) for o in self.others),
                *(_row("unplaced", u, kind="", place=u.reason) for u in self.unplaced),
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return strict JSON values of all parts, without the recording."""
        parts = ("additions", "norms", "activations", "others", "unplaced")
        found = {part: [asdict(each) for each in getattr(self, part)] for part in parts}
        return strict({**found, "piecewise_linear": self.piecewise_linear})

    def __str__(self) -> str:
        lines = [f"{len(self.additions)} residual additions"]
        lines += _lines(self.additions)
        norms = Counter(f"{n.kind} {n.placement}" for n in self.norms)
        acts = Counter(
            a.kind + ("" if a.piecewise_linear else " (curved)")
            for a in self.activations
        )
        others = Counter(other.kind for other in self.others)
        unplaced = Counter(each.reason for each in self.unplaced)
        for name, counts in (
            ("norms", norms),
            ("activations", acts),
            ("others", others),
            ("unplaced", unplaced),
        ):
            told = ", ".join(f"{count} {what}" for what, count in counts.items())
            lines.append(f"{name}: {told or 'none'}")
        return "\n".join(lines)


def anatomy(model: nn.Module, batch: Batch) -> Anatomy:
    """Run a network once and say what it is made of; it is left as found.

    Everything is read off the graph of tensors that the run makes, nothing off names.

    Args:
        model: Any module; it runs in the modes in which it is.
        batch: A tensor, a pair of inputs and targets, or a mapping of keyword
            arguments, as the instruments take them.

    Raises:
        MeasurementError: Nothing of the run could be seen.
    """
    return anatomy_of(record(model, batch))


def anatomy_of(recording: Recording) -> Anatomy:
    """Say what a network is made of, given a recording of one run."""
    graph = Graph(recording)
    products = products_of(graph)
    sums = sums_of(graph, leave=products.taken)
    products.hidden |= mere_rearrangements(graph, sums)
    residual = [
        addition_of(graph, s, products) for s in sums if s.verdict == "residual"
    ]
    additions = _nested(sorted(residual, key=lambda addition: addition.call))
    norms = norms_of(graph, additions, products.norms, products.taken)
    others = [
        *products.others,
        *other_sums(graph, sums),
        *joins_otherwise(graph, products.taken),
    ]
    unplaced = [*unplaced_sums(graph, sums), *unknown_operators(graph)]
    return Anatomy(
        additions=tuple(additions),
        norms=tuple(norms),
        activations=tuple(activations_of(graph, products.activations, products.taken)),
        others=tuple(sorted(others, key=lambda other: other.call)),
        unplaced=tuple(sorted(unplaced, key=lambda each: each.call)),
        recording=recording,
    )


def _nested(additions: list[Addition]) -> list[Addition]:
    """Say of each addition in whose branch it lies: the shortest one."""
    inside: dict[int, tuple[int, int]] = {}
    for place, addition in enumerate(additions):
        for branch in addition.branches:
            for call in branch.calls:
                length = len(branch.calls)
                inside[call] = min(inside.get(call, (length, place)), (length, place))
    return [
        replace(a, inside=inside[a.call][1] if a.call in inside else None)
        for a in additions
    ]


def _addition_row(index: int, addition: Addition) -> dict[str, Any]:
    branches = " + ".join(" ".join(b.layout) for b in addition.branches)
    return {
        **_row("addition", addition, kind=addition.skip.kind, place=branches),
        "index": index,
        "inside": addition.inside,
    }


def _row(quantity: str, part: Any, *, kind: str, place: str) -> dict[str, Any]:
    return {
        "quantity": quantity,
        "module": part.module,
        "kind": kind,
        "place": place,
        "value": part.call,
    }


def _lines(additions: tuple[Addition, ...]) -> list[str]:
    """Print additions, those alike in a row on one line."""
    lines = []
    alike = groupby(enumerate(additions), key=lambda pair: _told(pair[1]))
    for told, group in alike:
        members = list(group)
        (first, start), (last, end) = members[0], members[-1]
        span = f"{first}" if first == last else f"{first}–{last}"
        where = dict.fromkeys(a.module or "the model" for a in (start, end))
        lines.append(f"  {span} in {' … '.join(where)}: {told}")
    return lines


def _told(addition: Addition) -> str:
    branches = [f"[{' '.join(branch.layout)}]" for branch in addition.branches]
    within = "" if addition.inside is None else f", inside {addition.inside}"
    return " + ".join([addition.skip.kind, *branches]) + within
