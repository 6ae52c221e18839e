"""The anatomy of a network: all its parts together."""

from collections import Counter
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

from torch import nn

from theodolite.core import Rows, to_strict_json
from theodolite.instruments import Batch

from .graph import Graph
from .norms import norms_of
from .other_parts import (
    activations_of,
    other_joins,
    other_sums,
    rearrangements,
    unknown_operators,
    unplaced_sums,
)
from .parts import Activation, Addition, Norm, Other, Unplaced
from .products import products_of
from .recorder import record
from .recording import Recording
from .spans import addition_of
from .sums import sums_of

_CURVED = frozenset("gate squeeze-excite highway attention product recurrence".split())


@dataclass(frozen=True, kw_only=True)
class Anatomy:
    """The parts of a network.

    Attributes:
        additions: Residual additions, in order of their calls.
        norms: Norms, in order.
        activations: Nonlinearities, in order.
        others: Other operations that join tensors.
        unplaced: Sums whose skip and branch cannot be distinguished, and unknown
            operators.
        recording: The forward pass that all indices and numbers refer to.
    """

    additions: tuple[Addition, ...]
    norms: tuple[Norm, ...]
    activations: tuple[Activation, ...]
    others: tuple[Other, ...]
    unplaced: tuple[Unplaced, ...]
    recording: Recording

    @property
    def piecewise_linear(self) -> bool:
        """Whether the network is piecewise linear, if norm statistics stay fixed.

        All activations are piecewise linear, no signal multiplies another, and all
        operators are known.
        """
        straight = all(a.piecewise_linear for a in self.activations)
        curved = any(other.kind in _CURVED for other in self.others)
        known = not any("not known" in each.reason for each in self.unplaced)
        return straight and not curved and known

    def rows(self) -> Rows:
        """Return one flat row per part; its value is the index of its call."""
        curves = ("curved", "straight")
        rows = [
            {
                **_row("addition", a, a.skip.kind, _branches(a, "{}")),
                "index": index,
                "inside": a.inside,
            }
            for index, a in enumerate(self.additions)
        ]
        rows += [_row("norm", n, n.kind, n.placement) for n in self.norms]
        rows += [
            _row("activation", a, a.kind, curves[a.piecewise_linear])
            for a in self.activations
        ]
        rows += [_row("other", o, o.kind, o.detail) for o in self.others]
        rows += [_row("unplaced", u, "", u.reason) for u in self.unplaced]
        return Rows(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return strict JSON values of all parts, without the recording."""
        names = ("additions", "norms", "activations", "others", "unplaced")
        parts = {name: [asdict(each) for each in getattr(self, name)] for name in names}
        return to_strict_json({**parts, "piecewise_linear": self.piecewise_linear})

    def __str__(self) -> str:
        counts = {
            "norms": Counter(f"{n.kind} {n.placement}" for n in self.norms),
            "activations": Counter(
                a.kind + ("" if a.piecewise_linear else " (curved)")
                for a in self.activations
            ),
            "others": Counter(other.kind for other in self.others),
            "unplaced": Counter(each.reason for each in self.unplaced),
        }
        lines = [f"{len(self.additions)} residual additions"]
        lines += _lines(self.additions)
        for name, counter in counts.items():
            listed = ", ".join(f"{count} {what}" for what, count in counter.items())
            lines.append(f"{name}: {listed or 'none'}")
        return "\n".join(lines)


def anatomy(model: nn.Module, batch: Batch) -> Anatomy:
    """Run a network once and return its parts; the network is not changed.

    Everything is found from the graph of tensors that the run creates, not from names.

    Args:
        model: Any module; it runs in its present mode.
        batch: A tensor, a pair of inputs and targets, or a mapping of keyword
            arguments, as the instruments take them.

    Raises:
        MeasurementError: No operator of the run could be seen.
    """
    return anatomy_of(record(model, batch))


def anatomy_of(recording: Recording) -> Anatomy:
    """Return the parts of a network, given a recording of one run."""
    graph = Graph(recording)
    products = products_of(graph)
    sums = sums_of(graph, exclude=products.taken)
    products.hidden |= rearrangements(graph, sums)
    residual = [addition_of(graph, s, products) for s in sums if s.kind == "residual"]
    additions = _nested(sorted(residual, key=lambda addition: addition.call))
    norms = norms_of(graph, additions, products.norms, products.taken)
    others = [
        *products.others,
        *other_sums(graph, sums),
        *other_joins(graph, products.taken),
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
    """Set, for each addition, the one in whose (shortest) branch it lies."""
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


def _row(quantity: str, part: Any, kind: str, place: str) -> dict[str, Any]:
    return {
        "quantity": quantity,
        "module": part.module,
        "kind": kind,
        "place": place,
        "value": part.call,
    }


def _branches(addition: Addition, pattern: str) -> str:
    layouts = (" ".join(branch.layout) for branch in addition.branches)
    return " + ".join(pattern.format(layout) for layout in layouts)


def _lines(additions: tuple[Addition, ...]) -> list[str]:
    """Return the lines of additions; consecutive equal ones share a line."""

    def described(pair: tuple[int, Addition]) -> str:
        _, addition = pair
        inside = "" if addition.inside is None else f", inside {addition.inside}"
        return f"{addition.skip.kind} + {_branches(addition, '[{}]')}{inside}"

    lines = []
    for text, group in groupby(enumerate(additions), key=described):
        members = list(group)
        (first, start), (last, end) = members[0], members[-1]
        span = f"{first}" if first == last else f"{first}–{last}"
        where = dict.fromkeys(a.module or "the model" for a in (start, end))
        lines.append(f"  {span} in {' … '.join(where)}: {text}")
    return lines
