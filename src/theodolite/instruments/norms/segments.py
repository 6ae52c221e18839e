"""A tape cut at its norms: inputs, outputs and size of each segment.

A segment starts by applying a norm, with given statistics, and ends with the input of
the next norm, or with the measured value. A tensor that bypasses norms, such as a skip,
is carried from the segment that makes it to all that use it.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.autograd.forward_ad import _set_fwd_grad_enabled

from .full_statistics import Moments
from .given_moments import normalised, shares_of
from .tape import Call, NormOnTape, NotOnTape, Tape

# Memory of second derivatives for each byte that a segment computes: its
# tangent, adjoint and theirs, and tensors saved by operators. For a ResNet-20 the peak
# of a product in lockstep grew by less than one.
_AT_WORK = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Segment:
    """The calls of a tape between two norms.

    Attributes:
        tape: The whole tape.
        head: The norm that it starts with, None at the start of the pass.
        calls: The calls after that norm.
        tail: Slot of the next norm's input, None at the end of the pass.
        ins: Slots that it reads from earlier segments.
        outs: Slots that it makes for later segments.
        copied: Slots among ``ins`` that it writes to.
        outside: Slots that it reads from outside: data, parameters, other constants.
        done: Slots that no later segment reads.
    """

    tape: Tape
    head: NormOnTape | None
    calls: Sequence[Call]
    tail: int | None
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    copied: frozenset[int]
    outside: frozenset[int]
    done: frozenset[int]

    @property
    def taken(self) -> tuple[int, ...]:
        """Slots of earlier segments to differentiate by."""
        return tuple(slot for slot in self.ins if slot in self.tape.active)

    @property
    def given(self) -> tuple[int, ...]:
        """Slots for later segments that can be differentiated."""
        return tuple(slot for slot in self.outs if slot in self.tape.active)

    @property
    def moving(self) -> bool:
        """Whether the statistics that it starts with depend on parameters."""
        return self.head is not None and self.head.x in self.tape.active

    def run(
        self,
        values: Mapping[int, Tensor],
        moments: Tensor | None,
        known: Sequence[Moments | None],
    ) -> dict[int, Tensor]:
        """Return all tensors that the segment computes.

        Args:
            values: Tensors that it reads, by slot.
            moments: Statistics of the norm at its head.
            known: Values of these, and of the next norm's if known.

        Returns:
            All tensors by slot; shares in the next norm's moments by slot −1.
        """
        by_slot = dict(values)
        for slot in self.copied:
            by_slot[slot] = by_slot[slot].clone()
        before, after = known
        if self.head is not None and before is not None and moments is not None:
            weight, bias = (
                None if slot is None else by_slot[slot]
                for slot in (self.head.weight, self.head.bias)
            )
            x = by_slot[self.head.x]
            by_slot[self.head.out] = normalised(
                x, moments, before, weight, bias, self.head.eps
            )
        for call in self.calls:
            watching = torch._C._EnableTorchFunction if call.watched else nullcontext
            with nullcontext() if call.graded else _Ungraded(), watching():
                call.repeat(by_slot)
        if self.tail is not None and after is not None:
            by_slot[-1] = shares_of(by_slot[self.tail], after)
        return by_slot


class _Ungraded:
    """Switch derivatives off, also forward-mode ones."""

    def __enter__(self) -> None:
        self._modes: Any = torch.no_grad(), _set_fwd_grad_enabled(False)
        for mode in self._modes:
            mode.__enter__()

    def __exit__(self, *error: Any) -> None:
        for mode in reversed(self._modes):
            mode.__exit__(*error)


def segments_of(tape: Tape) -> list[Segment]:
    """Cut a tape at its norms.

    Raises:
        NotOnTape: If memory that is written to is shared across a cut.
    """
    places = range(len(tape.calls))
    heads = [None, *tape.norms]
    tails = [*(norm.x for norm in tape.norms), None]
    made = _makers(tape)
    uses: dict[int, list[int]] = {}
    for place in places:
        end = tape.value if tails[place] is None else tails[place]
        for slot in _read(heads[place], tape.calls[place], end):
            uses.setdefault(slot, []).append(place)
    return [
        Segment(
            tape=tape,
            head=heads[place],
            calls=tape.calls[place],
            tail=tails[place],
            ins=tuple(s for s, u in uses.items() if place in u and made(s) < place),
            outs=tuple(s for s, u in uses.items() if u[-1] > place == made(s)),
            copied=_copied(tape, place, made, uses),
            outside=frozenset(s for s, u in uses.items() if place in u) & tape.outside,
            done=frozenset(s for s, u in uses.items() if u[-1] == place),
        )
        for place in places
    ]


def carried_bytes(cut: Sequence[Segment]) -> tuple[int, int]:
    """Return the bytes that a chunk carries in a product with the Hessian.

    Returns:
        Bytes of all tensors that cross norms, with their tangents; and of the adjoints
        of those that cross one norm, and theirs, at the norm where that is most.
    """
    tape, total, widest, live = cut[0].tape, 0, 0, set()
    for segment in cut:
        for slot in segment.outs:
            total += tape.bytes[slot] * (2 if slot in tape.active else 1)
        live = (live | {*segment.given}) - segment.done
        widest = max(widest, 2 * sum(tape.bytes[slot] for slot in live))
    return total, widest


def at_work(computed: int, graph: int | None) -> int:
    """Return the peak bytes of a segment in a product with the Hessian.

    Args:
        computed: Bytes of the tensors that it computes.
        graph: Bytes of the graph of all segments of a chunk, if known.
    """
    held = _AT_WORK * computed
    return held if graph is None else min(held, graph)


def computed_bytes(cut: Sequence[Segment]) -> int:
    """Return the bytes of all tensors that the largest segment computes."""
    largest = 0
    for segment in cut:
        made = {slot for call in segment.calls for slot in call.results}
        made |= {after for call in segment.calls for _, after in call.moves}
        made.add(None if segment.head is None else segment.head.out)
        sizes = segment.tape.bytes
        largest = max(
            largest, sum(sizes.get(slot, 0) for slot in made if slot is not None)
        )
    return largest


def _read(head: NormOnTape | None, calls: Iterable[Call], end: int | None) -> set[int]:
    slots: set[int | None] = {end}
    if head is not None:
        slots |= {head.x, head.weight, head.bias}
    slots.update(chain.from_iterable(call.reads for call in calls))
    return {slot for slot in slots if slot is not None}


def _makers(tape: Tape) -> Any:
    """Return a function from a slot to the index of the segment that makes it.

    What comes from outside is behind them all.
    """
    made: dict[int, int] = {}
    for place, calls in enumerate(tape.calls):
        if place:
            made[tape.norms[place - 1].out] = place
        for call in calls:
            slots = [*call.results, *(after for _, after in call.moves)]
            for slot in slots:
                if slot is not None:
                    made.setdefault(slot, place)
    outside = len(tape.calls)
    return lambda slot: made.get(slot, outside)


def _copied(
    tape: Tape, place: int, made: Any, uses: Mapping[int, Sequence[int]]
) -> frozenset[int]:
    """Return slots of earlier segments that this one writes to."""
    slots: set[int] = set()
    for call in tape.calls[place]:
        wanted = [
            before
            for before, after in call.moves
            if after in uses or before in call.reads
        ]
        earlier = [slot for slot in wanted if made(slot) < place]
        if earlier and len(wanted) > 1:
            raise NotOnTape("it writes to memory that is shared across a norm")
        slots.update(earlier)
    return frozenset(slots)
