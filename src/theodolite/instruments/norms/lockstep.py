r"""Move all chunks from norm to norm together: the cost does not grow with depth.

Given the moments $s_k$ of the batch norms the chunks $c$ are independent, and between
two norms the pass is a function $z^c_{k+1} = F_k(\theta, z^c_k, s_k)$ with
$s_k = \sum_c S(x^c_k)$. So every chunk goes through $F_k$ before any goes on:

- forwards with tangents, $\dot s_k = \sum_c S'(x^c_k)\,\dot x^c_k$;
- back with adjoints, $\bar s_k = \sum_c \partial_s \langle F_k, \bar z^c_{k+1}\rangle$,
  and with their tangents, which are the product.

Tensors that cross norms are kept for all chunks. Those between norms are kept for one
chunk at a time, and computed again on the way back. A product with the Hessian costs
four gradients: one forwards with tangents, three back (pass, gradient, its derivative).
"""

from collections.abc import Callable, Sequence
from copy import copy
from functools import wraps
from typing import Any, cast

import torch
from torch import Tensor

from ..differentiate.derivatives import Parts, zeros
from ..distributed.processes import Team
from .chunk_pass import ChunkContext, ChunkPass, Open, taken
from .full_statistics import Moments, merged_over, moments_of, other_path
from .given_moments import as_variable
from .segment_pass import TAIL, BySlot, SegmentPass
from .segments import carried_bytes, computed_bytes, segments_of
from .tape import NotOnTape, Tape, record
from .tensor_store import TensorStore


def _unwatched(sweep: Callable[..., Any]) -> Callable[..., Any]:
    """Switch off modes that watch torch, except for the model's own calls."""

    @wraps(sweep)
    def run(*args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return sweep(*args, **kwargs)

    return run


class LockstepChunks:
    """Moments of every batch-norm call over several chunks, and all derivatives.

    Args:
        chunks: Pieces of the data.
        run: Runs the model on a chunk and returns the measured value.
        opened: Returns a chunk with its data in memory, and its tensors.
        leaves: Parameters to differentiate by.
        team: Who else holds chunks; what is pulled back is this process's share. None
            is waited for until moments are found.

    Attributes:
        known: Moments of all the data, one per call, once computed.
        store: Keeps the tensors that cross norms.
        reason: Empty; sequential chunks say here why.

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
        self._leaves, self.store = list(leaves), TensorStore()
        self._cuts = [segments_of(self._tape(chunk)) for chunk in self._chunks]
        self._steps = range(len(self._cuts[0]))
        if any(len(cut) != len(self._steps) for cut in self._cuts):
            raise other_path()
        if not any(cut[-1].tape.value in cut[-1].tape.active for cut in self._cuts):
            raise NotOnTape("nothing depends on the parameters")
        self._by_pulling: set[int] = set()  # segments without forward-mode derivatives
        self.known: list[Moments] = []

    @property
    def way(self) -> str:
        """Name of this strategy."""
        return "lockstep on the host" if self.store.host else "lockstep"

    @property
    def carried_bytes(self) -> tuple[int, int]:
        """Bytes that a product with the Hessian keeps for all chunks at once.

        Bytes of tensors and tangents, and of the adjoints at one norm and theirs.
        """
        carried = [carried_bytes(cut) for cut in self._cuts]
        return sum(c[0] for c in carried), sum(c[1] for c in carried)

    @property
    def computed_bytes(self) -> int:
        """Bytes that one chunk computes in its largest segment."""
        return max(computed_bytes(cut) for cut in self._cuts)

    @property
    def dependent(self) -> int:
        """Index of the first chunk whose value depends on the parameters."""
        ends = [cut[-1].tape for cut in self._cuts]
        places = (place for place, end in enumerate(ends) if end.value in end.active)
        return next(places)

    def alone(self, place: int) -> "LockstepChunks":
        """Return one chunk alone, at the same moments."""
        single, only = copy(self), slice(place, place + 1)
        single._chunks, single._cuts = self._chunks[only], self._cuts[only]
        single._team = Team()
        return single

    @property
    def calls(self) -> int:
        """Number of batch norm calls in a pass."""
        return len(self._steps) - 1

    @_unwatched
    def find_moments(self) -> list[Tensor]:
        """Compute the moments of all calls; return the measured value of each chunk."""
        self.known, passes = [], self._chunk_passes()
        for place in self._steps:
            moments = [
                self._step(chunk_pass, place, keep=False) for chunk_pass in passes
            ]
            if place < self.calls:
                self.known.append(self._merged(moments))
        return [chunk_pass.output for chunk_pass in passes]

    @_unwatched
    def push(self, tangents: Parts) -> list[tuple[Tensor, Tensor]]:
        """Return the measured value of each chunk, and its change along tangents."""
        passes, _ = self._pushed(tangents)
        return [(chunk_pass.output, chunk_pass.change) for chunk_pass in passes]

    @_unwatched
    def gradient(self, weights: Sequence[float]) -> tuple[list[Tensor], Parts]:
        """Return the losses of all chunks, and the gradient of their weighted sum."""
        passes = self._forwards()
        total = self._back(passes, _weighed(weights, passes))
        return [chunk_pass.output for chunk_pass in passes], total

    @_unwatched
    def pull(self, cotangents: Sequence[Tensor]) -> Parts:
        """Pull cotangents of all chunks back to the parameters."""
        return self._back(self._forwards(), cotangents)

    @_unwatched
    def product(self, weights: Sequence[float], tangents: Parts) -> Parts:
        """Multiply by the Hessian of the weighted sum of all chunks' losses."""
        passes, moved = self._pushed(tangents)
        return self._back(passes, _weighed(weights, passes), tangents, moved)

    @_unwatched
    def outputs(self) -> list[Tensor]:
        """Return the measured value of each chunk."""
        return [chunk_pass.output for chunk_pass in self._forwards(keep=False)]

    def _tape(self, chunk: Any) -> Tape:
        chunk, tensors = self._opened(chunk)
        return record(lambda: self._run(chunk), tensors)

    def _chunk_passes(self) -> list[ChunkPass]:
        context = ChunkContext(
            opened=self._opened, leaves=self._leaves, store=self.store
        )
        pairs = zip(self._chunks, self._cuts, strict=True)
        return [ChunkPass(chunk=c, segments=cut, context=context) for c, cut in pairs]

    def _forwards(self, *, keep: bool = True) -> list[ChunkPass]:
        """Run every chunk to the end; with known moments, none waits for others."""
        passes = self._chunk_passes()
        for chunk_pass in passes:
            for place in self._steps:
                self._step(chunk_pass, place, keep=keep)
        return passes

    def _step(self, chunk_pass: ChunkPass, place: int, *, keep: bool) -> Moments | None:
        """Run a chunk through a segment; return the moments at its end."""
        segment = chunk_pass.segments[place]
        values = chunk_pass.segment_pass(place, self._known(place - 1), None).plain()
        chunk_pass.keep(segment, values, {})
        if not keep:
            chunk_pass.drop(segment.done)
        return None if segment.tail is None else moments_of(values[segment.tail])

    def _pushed(self, tangents: Parts) -> tuple[list[ChunkPass], list[Tensor | None]]:
        """Run all chunks to the end with tangents; return those of the moments."""
        passes, moved = self._chunk_passes(), cast("list[Tensor | None]", [None])
        for place in self._steps:
            changes = [self._push(m, place, tangents, moved[-1]) for m in passes]
            moved.append(self._summed(changes, place))
        return passes, moved[:-1]

    def _push(
        self, chunk_pass: ChunkPass, place: int, along: Parts, moved: Tensor | None
    ) -> Tensor | None:
        """Run a chunk through a segment with tangents; return its shares' change."""
        segment_pass = self._segment_pass(chunk_pass, place)
        tangents = chunk_pass.tangents_into(segment_pass, along, moved)
        values, changes = self._pushed_through(segment_pass, place, tangents)
        chunk_pass.keep(segment_pass.segment, values, changes)
        return changes.get(TAIL)

    def _pushed_through(
        self, segment_pass: SegmentPass, place: int, tangents: BySlot
    ) -> tuple[BySlot, BySlot]:
        if place not in self._by_pulling:
            try:
                return segment_pass.push(tangents, duals=True)
            except (RuntimeError, NotImplementedError):
                self._by_pulling.add(place)
        return segment_pass.push(tangents, duals=False)

    def _back(
        self,
        passes: Sequence[ChunkPass],
        cotangents: Sequence[Tensor],
        along: Parts | None = None,
        moved: Sequence[Tensor | None] = (),
    ) -> Parts:
        """Return the gradient by a backward sweep; with tangents, its change."""
        total = zeros(self._leaves)
        for chunk_pass, cotangent in zip(passes, cotangents, strict=True):
            chunk_pass.adjoints[chunk_pass.value] = cotangent
        adjoint, moving = None, None
        for place in reversed(self._steps):
            pulled = []
            for chunk_pass in passes:
                _set(chunk_pass.adjoints, TAIL, adjoint)
                _set(chunk_pass.moving, TAIL, moving)
                if along is None:
                    pulled.append((self._pull(chunk_pass, place, total), None))
                else:
                    pulled.append(
                        self._pull_moving(chunk_pass, place, total, along, moved)
                    )
            adjoint, moving = (
                self._summed(parts, place - 1) for parts in zip(*pulled, strict=True)
            )
        return total

    def _pull(self, chunk_pass: ChunkPass, place: int, total: Parts) -> Tensor | None:
        """Pull adjoints back through a segment; return the adjoint of its moments."""
        segment_pass = self._segment_pass(chunk_pass, place)
        adjoints = segment_pass.pull(taken(chunk_pass.adjoints, segment_pass))
        chunk_pass.drop(segment_pass.segment.outs)
        return chunk_pass.share_out(chunk_pass.adjoints, segment_pass, adjoints, total)

    def _pull_moving(
        self,
        chunk_pass: ChunkPass,
        place: int,
        total: Parts,
        along: Parts,
        moved: Sequence[Tensor | None],
    ) -> tuple[Tensor | None, Tensor | None]:
        """Do the same with tangents; return the moments' adjoint and its tangent."""
        segment_pass = self._segment_pass(chunk_pass, place)
        adjoints, changes = segment_pass.pull_moving(
            taken(chunk_pass.adjoints, segment_pass),
            taken(chunk_pass.moving, segment_pass),
            chunk_pass.tangents_into(segment_pass, along, moved[place]),
        )
        chunk_pass.drop(segment_pass.segment.outs)
        before = chunk_pass.share_out(chunk_pass.adjoints, segment_pass, adjoints, None)
        return before, chunk_pass.share_out(
            chunk_pass.moving, segment_pass, changes, total
        )

    def _segment_pass(self, chunk_pass: ChunkPass, place: int) -> SegmentPass:
        return chunk_pass.segment_pass(
            place, self._known(place - 1), self._known(place)
        )

    def _known(self, call: int) -> Moments | None:
        return self.known[call] if 0 <= call < len(self.known) else None

    def _merged(self, parts: Sequence[Moments | None]) -> Moments:
        """Return the moments of all chunks' values together, over all ranks."""
        merged = merged_over(self._team, [part for part in parts if part is not None])
        if merged is None:
            raise other_path()
        return merged

    def _summed(self, parts: Sequence[Tensor | None], call: int) -> Tensor | None:
        """Return the sum of a call's tangents or adjoints over all ranks."""
        here = summed(parts)
        if not self._team.several or not 0 <= call < self.calls:
            return here
        if not self._team.largest(here is not None):
            return None
        if here is None:
            here = torch.zeros_like(as_variable(self.known[call]))
        return self._team.sum_(here)


def summed(parts: Sequence[Tensor | None]) -> Tensor | None:
    """Return the sum over chunks of tangents or adjoints of moments."""
    present = [part for part in parts if part is not None]
    return torch.stack(present).sum(0) if present else None


def _set(carried: BySlot, slot: int, part: Tensor | None) -> None:
    if part is not None:
        carried[slot] = part


def _weighed(weights: Sequence[float], passes: Sequence[ChunkPass]) -> list[Tensor]:
    """Return cotangents of the losses of all chunks."""
    pairs = zip(weights, passes, strict=True)
    return [weight * torch.ones_like(chunk_pass.output) for weight, chunk_pass in pairs]
