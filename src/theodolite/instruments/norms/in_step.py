r"""All chunks from norm to norm together: derivatives whose price depth leaves alone.

Given the moments $s_k$ of the batch norms the chunks $c$ are independent, and between
two norms the pass is a function of its own, $z^c_{k+1} = F_k(\theta, z^c_k, s_k)$ with
$s_k = \sum_c S(x^c_k)$. So every chunk goes through $F_k$ before any goes on:

- forwards with tangents, $\dot s_k = \sum_c S'(x^c_k)\,\dot x^c_k$;
- back with adjoints, $\bar s_k = \sum_c \partial_s \langle F_k, \bar z^c_{k+1}\rangle$,
  and with their tangents, which are the product.

What crosses norms is kept for all chunks, and what lies between them for one at a
time, computed again on the way back. A product with the Hessian counts four gradients:
one forwards with tangents, three back (pass, gradient, its derivative).
"""

from collections.abc import Callable, Sequence
from copy import copy
from functools import wraps
from typing import Any, cast

import torch
from torch import Tensor

from theodolite.instruments.differentiate.parts import Parts, zeros
from theodolite.instruments.norms.crossing import TAIL, BySlot, Crossing
from theodolite.instruments.norms.full_statistics import (
    Moments,
    merged_over,
    moments_of,
    other_path,
)
from theodolite.instruments.norms.given_moments import as_variable
from theodolite.instruments.norms.march import Gear, March, Open, taken
from theodolite.instruments.norms.segments import (
    carried_bytes,
    computed_bytes,
    segments_of,
)
from theodolite.instruments.norms.shelf import Shelf
from theodolite.instruments.norms.tape import NotOnTape, Tape, record
from theodolite.instruments.team.processes import Team


def _unwatched(sweep: Callable[..., Any]) -> Callable[..., Any]:
    """Switch off modes that watch torch, for all but the model's own calls."""

    @wraps(sweep)
    def run(*args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return sweep(*args, **kwargs)

    return run


class InStep:
    """Moments of every batch-norm call over several chunks, and all derivatives.

    Args:
        chunks: Pieces of the data.
        run: Runs the model on a chunk and returns what is measured.
        opened: Returns a chunk with its data in memory, and the tensors of it.
        leaves: Parameters to differentiate by.
        team: Who else holds chunks; what is pulled back is this process's share. None
            is waited for until moments are found.

    Attributes:
        known: Moments of all the data, a call each, once they are found.
        shelf: Where that is kept which chunks carry.
        reason: Why these chunks take turns, which they do not.

    Raises:
        NotOnTape: If the passes cannot be cut at their norms.
    """

    reason = ""

    def __init__(
        self,
        chunks: Sequence[Any],
        *,
        run: Callable[[Any], Tensor],
        opened: Open,
        leaves: Sequence[Tensor],
        team: Team | None = None,
    ) -> None:
        self._team = team or Team()
        self._chunks, self._run, self._opened = list(chunks), run, opened
        self._leaves, self.shelf = list(leaves), Shelf()
        self._cuts = [segments_of(self._tape(chunk)) for chunk in self._chunks]
        self._steps = range(len(self._cuts[0]))
        if any(len(cut) != len(self._steps) for cut in self._cuts):
            raise other_path()
        if not any(cut[-1].tape.value in cut[-1].tape.active for cut in self._cuts):
            raise NotOnTape("nothing depends on the parameters")
        self._by_pulling: set[int] = set()  # segments that take no duals
        self.known: list[Moments] = []

    @property
    def way(self) -> str:
        """What this way is called."""
        return "in step on the host" if self.shelf.host else "in step"

    @property
    def carried_bytes(self) -> tuple[int, int]:
        """What a product with the Hessian keeps for all chunks at once.

        Bytes of tensors and tangents, and of the adjoints at one norm and theirs.
        """
        carried = [carried_bytes(cut) for cut in self._cuts]
        return sum(c[0] for c in carried), sum(c[1] for c in carried)

    @property
    def computed_bytes(self) -> int:
        """What one chunk computes in a segment, where that is most."""
        return max(computed_bytes(cut) for cut in self._cuts)

    @property
    def dependent(self) -> int:
        """Place of the first chunk whose value depends on the parameters."""
        ends = [cut[-1].tape for cut in self._cuts]
        found = (place for place, end in enumerate(ends) if end.value in end.active)
        return next(found)

    def alone(self, place: int) -> "InStep":
        """Return one chunk alone, at the same moments."""
        found, only = copy(self), slice(place, place + 1)
        found._chunks, found._cuts = self._chunks[only], self._cuts[only]
        found._team = Team()
        return found

    @property
    def calls(self) -> int:
        """How many batch norms a pass calls."""
        return len(self._steps) - 1

    @_unwatched
    def find_moments(self) -> list[Tensor]:
        """Find the moments of all calls; return what is measured of each chunk."""
        self.known, marches = [], self._marches()
        for place in self._steps:
            found = [self._step(march, place, keep=False) for march in marches]
            if place < self.calls:
                self.known.append(self._merged(found))
        return [march.output for march in marches]

    @_unwatched
    def push(self, tangents: Parts) -> list[tuple[Tensor, Tensor]]:
        """Return what is measured of each chunk, and its change along tangents."""
        marches, _ = self._pushed(tangents)
        return [(march.output, march.change) for march in marches]

    @_unwatched
    def gradient(self, weights: Sequence[float]) -> tuple[list[Tensor], Parts]:
        """Return the losses of all chunks, and the gradient of their weighed sum."""
        marches = self._forwards()
        total = self._back(marches, _weighed(weights, marches))
        return [march.output for march in marches], total

    @_unwatched
    def pull(self, cotangents: Sequence[Tensor]) -> Parts:
        """Pull cotangents of all chunks back to the parameters."""
        return self._back(self._forwards(), cotangents)

    @_unwatched
    def product(self, weights: Sequence[float], tangents: Parts) -> Parts:
        """Multiply the Hessian of the weighed sum of all chunks' losses."""
        marches, moved = self._pushed(tangents)
        return self._back(marches, _weighed(weights, marches), tangents, moved)

    @_unwatched
    def outputs(self) -> list[Tensor]:
        """Return what is measured of each chunk."""
        return [march.output for march in self._forwards(keep=False)]

    def _tape(self, chunk: Any) -> Tape:
        chunk, tensors = self._opened(chunk)
        return record(lambda: self._run(chunk), tensors)

    def _marches(self) -> list[March]:
        gear = Gear(opened=self._opened, leaves=self._leaves, shelf=self.shelf)
        pairs = zip(self._chunks, self._cuts, strict=True)
        return [March(chunk=c, segments=cut, gear=gear) for c, cut in pairs]

    def _forwards(self, *, keep: bool = True) -> list[March]:
        """Bring every chunk to the end; given the moments, none waits for others."""
        marches = self._marches()
        for march in marches:
            for place in self._steps:
                self._step(march, place, keep=keep)
        return marches

    def _step(self, march: March, place: int, *, keep: bool) -> Moments | None:
        """Take a chunk across a segment; return the moments of what it ends with."""
        segment = march.segments[place]
        found = march.crossing(place, self._known(place - 1), None).plain()
        march.keep(segment, found, {})
        if not keep:
            march.drop(segment.done)
        return None if segment.tail is None else moments_of(found[segment.tail])

    def _pushed(self, tangents: Parts) -> tuple[list[March], list[Tensor | None]]:
        """Bring all chunks to the end with tangents; return those of the moments."""
        marches, moved = self._marches(), cast("list[Tensor | None]", [None])
        for place in self._steps:
            changes = [self._push(m, place, tangents, moved[-1]) for m in marches]
            moved.append(self._summed(changes, place))
        return marches, moved[:-1]

    def _push(
        self, march: March, place: int, along: Parts, moved: Tensor | None
    ) -> Tensor | None:
        """Take a chunk across a segment with tangents; return its shares' change."""
        crossing = self._crossing(march, place)
        tangents = march.tangents_into(crossing, along, moved)
        values, changes = self._crossed(crossing, place, tangents)
        march.keep(crossing.segment, values, changes)
        return changes.get(TAIL)

    def _crossed(
        self, crossing: Crossing, place: int, tangents: BySlot
    ) -> tuple[BySlot, BySlot]:
        if place not in self._by_pulling:
            try:
                return crossing.push(tangents, duals=True)
            except (RuntimeError, NotImplementedError):
                self._by_pulling.add(place)
        return crossing.push(tangents, duals=False)

    def _back(
        self,
        marches: Sequence[March],
        cotangents: Sequence[Tensor],
        along: Parts | None = None,
        moved: Sequence[Tensor | None] = (),
    ) -> Parts:
        """Sweep back to the gradient, or to its change along tangents if there are."""
        total = zeros(self._leaves)
        for march, cotangent in zip(marches, cotangents, strict=True):
            march.adjoints[march.value] = cotangent
        adjoint, moving = None, None
        for place in reversed(self._steps):
            found = []
            for march in marches:
                _set(march.adjoints, TAIL, adjoint)
                _set(march.moving, TAIL, moving)
                if along is None:
                    found.append((self._pull(march, place, total), None))
                else:
                    found.append(self._pull_moving(march, place, total, along, moved))
            adjoint, moving = (
                self._summed(parts, place - 1) for parts in zip(*found, strict=True)
            )
        return total

    def _pull(self, march: March, place: int, total: Parts) -> Tensor | None:
        """Take adjoints back across a segment; return that of the moments before it."""
        crossing = self._crossing(march, place)
        adjoints = crossing.pull(taken(march.adjoints, crossing))
        march.drop(crossing.segment.outs)
        return march.share_out(march.adjoints, crossing, adjoints, total)

    def _pull_moving(
        self,
        march: March,
        place: int,
        total: Parts,
        along: Parts,
        moved: Sequence[Tensor | None],
    ) -> tuple[Tensor | None, Tensor | None]:
        """Do the same with tangents; return the adjoint of the moments, and its own."""
        crossing = self._crossing(march, place)
        adjoints, changes = crossing.pull_moving(
            taken(march.adjoints, crossing),
            taken(march.moving, crossing),
            march.tangents_into(crossing, along, moved[place]),
        )
        march.drop(crossing.segment.outs)
        before = march.share_out(march.adjoints, crossing, adjoints, None)
        return before, march.share_out(march.moving, crossing, changes, total)

    def _crossing(self, march: March, place: int) -> Crossing:
        return march.crossing(place, self._known(place - 1), self._known(place))

    def _known(self, call: int) -> Moments | None:
        return self.known[call] if 0 <= call < len(self.known) else None

    def _merged(self, parts: Sequence[Moments | None]) -> Moments:
        """Return the moments of all chunks' values together, over all ranks."""
        merged = merged_over(self._team, [part for part in parts if part is not None])
        if merged is None:
            raise other_path()
        return merged

    def _summed(self, parts: Sequence[Tensor | None], call: int) -> Tensor | None:
        """Add up what belongs to the moments of a call, over all ranks."""
        here = summed(parts)
        if not self._team.several or not 0 <= call < self.calls:
            return here
        if not self._team.largest(here is not None):
            return None
        if here is None:
            here = torch.zeros_like(as_variable(self.known[call]))
        return self._team.sum_(here)


def summed(parts: Sequence[Tensor | None]) -> Tensor | None:
    """Add up the chunks' parts of what belongs to moments: tangents, adjoints."""
    found = [part for part in parts if part is not None]
    return torch.stack(found).sum(0) if found else None


def _set(carried: BySlot, slot: int, part: Tensor | None) -> None:
    if part is not None:
        carried[slot] = part


def _weighed(weights: Sequence[float], marches: Sequence[March]) -> list[Tensor]:
    """Return cotangents of the losses of all chunks."""
    pairs = zip(weights, marches, strict=True)
    return [weight * torch.ones_like(march.output) for weight, march in pairs]
