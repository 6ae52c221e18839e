"""One chunk on its way from norm to norm, with the tensors that later segments need."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..differentiate.derivatives import Parts
from .full_statistics import Moments
from .given_moments import as_variable
from .segment_pass import HEAD, TAIL, BySlot, SegmentPass
from .segments import Segment
from .tensor_store import TensorStore

Open = Callable[[Any], tuple[Any, Sequence[Tensor]]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChunkContext:
    """State shared by all chunks of one pass.

    Attributes:
        opened: Returns a chunk with its data in memory, and its tensors.
        leaves: Parameters to differentiate by.
        store: Keeps the tensors that cross norms.
    """

    opened: Open
    leaves: Sequence[Tensor]
    store: TensorStore

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(leaf): place for place, leaf in enumerate(self.leaves)}

    def place(self, tensor: Tensor) -> int | None:
        """Return the index of a tensor among the parameters, or None."""
        return self._places.get(id(tensor))


@dataclass(kw_only=True, eq=False)
class ChunkPass:
    """One chunk, with the tensors that it carries across norms, by slot.

    Attributes:
        chunk: The chunk.
        segments: Its tape, cut at the norms.
        context: State shared by all chunks.
        values: Tensors that cross norms.
        tangents: Their tangents.
        adjoints: Their adjoints, on the way back.
        moving: Tangents of the adjoints.
        output: The measured value, at the end.
        change: Its tangent.
    """

    chunk: Any
    segments: Sequence[Segment]
    context: ChunkContext
    values: BySlot = field(default_factory=dict)
    tangents: BySlot = field(default_factory=dict)
    adjoints: BySlot = field(default_factory=dict)
    moving: BySlot = field(default_factory=dict)
    output: Tensor = field(default_factory=lambda: torch.empty(0, device="cpu"))
    change: Tensor = field(default_factory=lambda: torch.empty(0, device="cpu"))

    @property
    def value(self) -> int:
        """Slot of the measured value."""
        return self.segments[0].tape.value

    def segment_pass(
        self, place: int, before: Moments | None, after: Moments | None
    ) -> SegmentPass:
        """Return a segment with all tensors that it starts from.

        Args:
            place: Index of the segment.
            before: Moments of the norm at its head.
            after: Moments of the norm after it, if they are known.
        """
        segment = self.segments[place]
        given = self._outside(segment)
        for slot in segment.ins:
            given[slot] = self._fetched(self.values[slot])
        by = list(segment.taken)
        by += [s for s in segment.outside if self.context.place(given[s]) is not None]
        if before is not None:
            given[HEAD] = as_variable(before)
            by += [HEAD] if segment.moving else []
        return SegmentPass(
            segment=segment, given=given, known=(before, after), by=tuple(by)
        )

    def tangents_into(
        self, segment_pass: SegmentPass, along: Parts, moved: Tensor | None
    ) -> BySlot:
        """Return the tangents of the tensors that a segment is differentiated by.

        Args:
            segment_pass: The segment.
            along: Tangents of the parameters.
            moved: Tangent of the moments at its head.
        """
        tangents = {}
        for slot in segment_pass.by:
            place = self.context.place(segment_pass.given[slot])
            if slot in self.tangents:
                tangents[slot] = self._fetched(self.tangents[slot])
            elif slot == HEAD and moved is not None:
                tangents[slot] = moved
            elif place is not None:
                tangents[slot] = along[place]
        return tangents

    def keep(self, segment: Segment, values: BySlot, changes: BySlot) -> None:
        """Keep a segment's results for later segments, and the measured value."""
        for slot in segment.outs:
            self.values[slot] = self.context.store.put(values[slot])
            if slot in changes:
                self.tangents[slot] = self.context.store.put(changes[slot])
        if segment.tail is None:
            self.output = values[self.value]
            change = changes.get(self.value)
            self.change = torch.zeros_like(self.output) if change is None else change

    def drop(self, slots: Iterable[int]) -> None:
        """Free tensors that no later segment reads."""
        for slot in slots:
            self.values.pop(slot, None)
            self.tangents.pop(slot, None)

    def share_out(
        self,
        carried: BySlot,
        segment_pass: SegmentPass,
        pulled: BySlot,
        total: Parts | None,
    ) -> Tensor | None:
        """Add pulled-back cotangents to the carried ones and to those of parameters.

        Args:
            carried: Adjoints, or their tangents.
            segment_pass: The segment that they were pulled through.
            pulled: Pulled-back cotangents, by slot.
            total: Sum for the parameters, or None.

        Returns:
            The part of the moments at the segment's head.
        """
        for slot, part in pulled.items():
            place = self.context.place(segment_pass.given[slot])
            if slot in segment_pass.segment.ins:
                before = carried.get(slot)
                carried[slot] = part if before is None else before + part
            elif place is not None and total is not None:
                total[place] += part
        return pulled.get(HEAD)

    def _outside(self, segment: Segment) -> BySlot:
        """Return the parameters, constants and data that a segment reads."""
        tape = segment.tape
        tensors_by_slot = {
            s: tape.constants[s] for s in segment.outside if s in tape.constants
        }
        wanted = [slot for slot in segment.outside if slot in tape.inputs]
        if wanted:
            _, tensors = self.context.opened(self.chunk)
            tensors_by_slot |= {slot: tensors[tape.inputs[slot]] for slot in wanted}
        return tensors_by_slot

    def _fetched(self, kept: Tensor) -> Tensor:
        return self.context.store.fetch(kept, self.context.leaves[0].device)


def taken(carried: BySlot, segment_pass: SegmentPass) -> BySlot:
    """Remove and return the carried values of a segment's results, complete by now."""
    segment = segment_pass.segment
    last = segment.tape.value if segment.tail is None else TAIL
    slots = (*segment.outs, last)
    return {slot: carried.pop(slot) for slot in slots if slot in carried}
