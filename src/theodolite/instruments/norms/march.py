"""One chunk on its way from norm to norm, with what it carries."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from theodolite.instruments.differentiate.parts import Parts
from theodolite.instruments.norms.crossing import HEAD, TAIL, BySlot, Crossing
from theodolite.instruments.norms.full_statistics import Moments
from theodolite.instruments.norms.given_moments import as_variable
from theodolite.instruments.norms.segments import Segment
from theodolite.instruments.norms.shelf import Shelf

Open = Callable[[Any], tuple[Any, Sequence[Tensor]]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Gear:
    """What all chunks have with them.

    Attributes:
        opened: Returns a chunk with its data in memory, and the tensors of it.
        leaves: Parameters to differentiate by.
        shelf: Keeps what is carried.
    """

    opened: Open
    leaves: Sequence[Tensor]
    shelf: Shelf

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(leaf): place for place, leaf in enumerate(self.leaves)}

    def place(self, tensor: Tensor) -> int | None:
        """Return which of the parameters a tensor is, if any."""
        return self._places.get(id(tensor))


@dataclass(kw_only=True, eq=False)
class March:
    """One chunk, with what it carries across norms, by slot.

    Attributes:
        chunk: The chunk.
        segments: Its tape, cut at the norms.
        gear: What all chunks have with them.
        values: Tensors that cross norms.
        tangents: Their tangents.
        adjoints: Their adjoints, on the way back.
        moving: Tangents of those.
        output: What is measured, at the end.
        change: Its tangent.
    """

    chunk: Any
    segments: Sequence[Segment]
    gear: Gear
    values: BySlot = field(default_factory=dict)
    tangents: BySlot = field(default_factory=dict)
    adjoints: BySlot = field(default_factory=dict)
    moving: BySlot = field(default_factory=dict)
    output: Tensor = field(default_factory=lambda: torch.empty(0))
    change: Tensor = field(default_factory=lambda: torch.empty(0))

    @property
    def value(self) -> int:
        """Slot of what is measured."""
        return self.segments[0].tape.value

    def crossing(
        self, place: int, before: Moments | None, after: Moments | None
    ) -> Crossing:
        """Return a segment with all that it starts from.

        Args:
            place: Which of the segments.
            before: Moments of the norm at its head.
            after: Moments of the norm behind it, where they are known.
        """
        segment = self.segments[place]
        given = self._outside(segment)
        for slot in segment.ins:
            given[slot] = self._fetched(self.values[slot])
        by = list(segment.taken)
        by += [s for s in segment.outside if self.gear.place(given[s]) is not None]
        if before is not None:
            given[HEAD] = as_variable(before)
            by += [HEAD] if segment.moving else []
        return Crossing(
            segment=segment, given=given, known=(before, after), by=tuple(by)
        )

    def tangents_into(
        self, crossing: Crossing, along: Parts, moved: Tensor | None
    ) -> BySlot:
        """Return the tangents of what a segment is differentiated by.

        Args:
            crossing: The segment.
            along: Tangents of the parameters.
            moved: That of the moments at its head.
        """
        found = {}
        for slot in crossing.by:
            place = self.gear.place(crossing.given[slot])
            if slot in self.tangents:
                found[slot] = self._fetched(self.tangents[slot])
            elif slot == HEAD and moved is not None:
                found[slot] = moved
            elif place is not None:
                found[slot] = along[place]
        return found

    def keep(self, segment: Segment, values: BySlot, changes: BySlot) -> None:
        """Keep what a segment makes for later ones, and what is measured."""
        for slot in segment.outs:
            self.values[slot] = self.gear.shelf.put(values[slot])
            if slot in changes:
                self.tangents[slot] = self.gear.shelf.put(changes[slot])
        if segment.tail is None:
            self.output = values[self.value]
            change = changes.get(self.value)
            self.change = torch.zeros_like(self.output) if change is None else change

    def drop(self, slots: Iterable[int]) -> None:
        """Let values go that nobody wants any more."""
        for slot in slots:
            self.values.pop(slot, None)
            self.tangents.pop(slot, None)

    def share_out(
        self,
        carried: BySlot,
        crossing: Crossing,
        found: BySlot,
        total: Parts | None,
    ) -> Tensor | None:
        """Add what was pulled back to what is carried, and to the parameters'.

        Args:
            carried: Adjoints, or their tangents.
            crossing: The segment that they went through.
            found: What came out, by slot.
            total: Where the parameters' parts are added up, if they are.

        Returns:
            The part of the moments at the segment's head.
        """
        for slot, part in found.items():
            place = self.gear.place(crossing.given[slot])
            if slot in crossing.segment.ins:
                before = carried.get(slot)
                carried[slot] = part if before is None else before + part
            elif place is not None and total is not None:
                total[place] += part
        return found.get(HEAD)

    def _outside(self, segment: Segment) -> BySlot:
        """Return parameters, constants and data that a segment takes."""
        tape = segment.tape
        found = {s: tape.constants[s] for s in segment.outside if s in tape.constants}
        wanted = [slot for slot in segment.outside if slot in tape.inputs]
        if wanted:
            _, tensors = self.gear.opened(self.chunk)
            found |= {slot: tensors[tape.inputs[slot]] for slot in wanted}
        return found

    def _fetched(self, kept: Tensor) -> Tensor:
        return self.gear.shelf.fetch(kept, self.gear.leaves[0].device)


def taken(carried: BySlot, crossing: Crossing) -> BySlot:
    """Take what is carried of a segment's results; it is complete by then."""
    segment = crossing.segment
    last = segment.tape.value if segment.tail is None else TAIL
    slots = (*segment.outs, last)
    return {slot: carried.pop(slot) for slot in slots if slot in carried}
