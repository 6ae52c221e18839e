"""Choose how chunks share batch statistics, within the available memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from theodolite.core import MeasurementError

from ..differentiate.batch_norm_twice import NormCall
from ..differentiate.derivatives import Parts, flat
from ..differentiate.twice import BatchNormCalls
from ..distributed.processes import Team
from .chunk_pass import Open
from .full_statistics import FullStatistics, Moments, passing
from .given_moments import as_variable, normalised, shares_of
from .lockstep import LockstepChunks
from .segments import at_work
from .sequential import SequentialChunks
from .tape import NotOnTape
from .tensor_store import TensorStore

T = TypeVar("T")
# Tolerance for values of two passes, in roundings and in perturbations of all moments.
_ROUNDED, _NUDGES = 1e4, 64
Coupled = LockstepChunks | SequentialChunks
# Errors of the model itself, not of its tape, are raised by sequential passes.
_NO_LOCKSTEP = (NotOnTape, NotImplementedError, RuntimeError, MeasurementError)


@dataclass(frozen=True, kw_only=True)
class MemoryBudget:
    """Memory for chunks that go from norm to norm.

    Attributes:
        device: Bytes on the device, for tensors that cross norms and one segment.
        host: Bytes on the host, for tensors that cross norms.
        graph: Bytes of the largest chunk's whole graph, which is more than any one
            segment works with.
    """

    device: int
    host: int = 0
    graph: int | None = None

    def beside(self, computed: int) -> int:
        """Return the bytes left on the device while a segment runs.

        Args:
            computed: Bytes of the tensors that it computes.
        """
        return max(self.device - at_work(computed, self.graph), 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Coupling:
    """How chunks that share batch statistics are combined.

    Attributes:
        run: Runs the model on a chunk and returns the measured value.
        opened: Returns a chunk with its data in memory, and its tensors.
        leaves: Parameters to differentiate by.
        room: Memory for the tensors that cross norms.
        check: Returns the measured value, or raises if it cannot be used.
        obstacles: Why the last chunks could not run in lockstep.
    """

    run: Callable[[Any], Tensor]
    opened: Open
    leaves: Sequence[Tensor]
    room: MemoryBudget
    check: Callable[[Tensor], Tensor]
    obstacles: list[str] = field(default_factory=list, init=False)

    def of(self, chunks: Sequence[Any], team: Team) -> Coupled:
        """Return the chunks in lockstep if possible, else sequential.

        Args:
            chunks: Chunks that this process holds.
            team: Processes that hold the other chunks and use the same strategy.
        """
        self.obstacles.clear()
        return self._lockstep(chunks, team) or SequentialChunks(
            chunks,
            run=lambda chunk: self.check(self.run(chunk)),
            leaves=self.leaves,
            team=team,
            reason=next(iter(self.obstacles), "another process cannot go in lockstep"),
        )

    def moments(self, chunks: Sequence[Any], team: Team) -> list[Moments]:
        """Return the moments of all calls, without derivatives.

        Args:
            chunks: Chunks that this process holds.
            team: Processes that hold the other chunks and use the same strategy.
        """
        lockstep = self._tried(lambda: self._opened_lockstep(chunks, team))
        if lockstep is not None and lockstep.carried_bytes[1] > self._left(lockstep):
            lockstep = None
        if (
            team.alike(-1 if lockstep is None else lockstep.calls)
            and lockstep is not None
        ):
            values = self._measured_moments(lockstep, team)
            right = values is not None and self._tried(
                lambda: self._pass_alike(lockstep, values, chunks)
            )
            if not team.largest(not right):
                return lockstep.known
        return FullStatistics(chunks, self.run, team).known

    def _pass_alike(
        self, lockstep: LockstepChunks, values: Sequence[Tensor], chunks: Sequence[Any]
    ) -> bool:
        """Return whether plain passes at these moments give the same values.

        Tapes were recorded at the chunks' own moments, and the path of a pass may
        depend on these in ways that the tape does not show.
        """
        for value, chunk in zip(values, chunks, strict=True):
            plain = self._passed(chunk, lockstep.known)
            gap = float((value - plain).abs().max())
            if gap <= _ROUNDED * torch.finfo(plain.dtype).eps * float(
                plain.abs().max()
            ):
                continue
            # If losses are tiny, they are rounding errors of larger numbers.
            moved = self._passed(chunk, [_nudged(known) for known in lockstep.known])
            if not gap <= _NUDGES * float((moved - plain).abs().max()):
                return self._differing("values")
        return True

    def _passed(self, chunk: Any, known: list[Moments]) -> Tensor:
        with torch.no_grad(), BatchNormCalls(passing(known)):
            return self.run(self.opened(chunk)[0])

    def _differing(self, what: str) -> bool:
        self.obstacles.append(f"plain passes at the same moments give other {what}")
        return False

    def _opened_lockstep(self, chunks: Sequence[Any], team: Team) -> LockstepChunks:
        return LockstepChunks(
            chunks, run=self.run, opened=self.opened, leaves=self.leaves, team=team
        )

    def _lockstep(self, chunks: Sequence[Any], team: Team) -> LockstepChunks | None:
        lockstep = self._tried(lambda: self._cut(chunks, team))
        if (
            not team.alike(-1 if lockstep is None else lockstep.calls)
            or lockstep is None
        ):
            return None
        values = self._measured_moments(lockstep, team)
        right = values is not None and self._tried(
            lambda: (
                self._pass_alike(lockstep, values, chunks)
                and self._right(lockstep, lockstep.dependent, chunks)
            )
        )
        if team.largest(not right):
            return None
        for value in values or []:
            self.check(value)
        return lockstep

    def _cut(self, chunks: Sequence[Any], team: Team) -> LockstepChunks | None:
        """Return the chunks cut at their norms, None if that takes too much memory."""
        lockstep = self._opened_lockstep(chunks, team)
        carried, adjoints = lockstep.carried_bytes
        left = self._left(lockstep)
        store = self._store(carried, adjoints, left)
        if store is None:
            self.obstacles.append(
                f"chunks in lockstep carry {carried + adjoints:,} bytes, and {left:,} "
                "are left"
            )
            return None
        lockstep.store = store
        return lockstep

    def _measured_moments(
        self, lockstep: LockstepChunks, team: Team
    ) -> list[Tensor] | None:
        # If others wait for this process, it cannot change the strategy.
        if team.several:
            return lockstep.find_moments()
        return self._tried(lockstep.find_moments)

    def _tried(self, act: Callable[[], T]) -> T | None:
        try:
            return act()
        except _NO_LOCKSTEP as error:
            said = str(error).splitlines() or [""]
            kind = "" if isinstance(error, NotOnTape) else f"{type(error).__name__}: "
            self.obstacles.append(f"{kind}{said[0]}")
            return None

    def _left(self, lockstep: LockstepChunks) -> int:
        return self.room.beside(lockstep.computed_bytes)

    def _store(self, carried: int, adjoints: int, left: int) -> TensorStore | None:
        """Return where to keep carried tensors, None if they fit nowhere."""
        if carried + adjoints <= left:
            return TensorStore()
        fits = adjoints <= left and carried <= self.room.host
        return TensorStore(host=True) if fits else None

    def _right(
        self, lockstep: LockstepChunks, place: int, chunks: Sequence[Any]
    ) -> bool:
        """Return whether one chunk's derivatives agree with those of a plain pass.

        Its moments change those of all chunks; the parts of other chunks are constant.
        """
        value, gradient = self._plain(lockstep, chunks[place])
        alone, tangents = lockstep.alone(place), _directions(self.leaves)
        pulled = flat(alone.pull([torch.ones_like(value)]))
        output, change = alone.push(tangents)[0]
        along, size = flat(tangents), float(gradient.norm())
        right = (
            _near(output, value, float(value.abs().max()) + size * _size(self.leaves))
            and _near(pulled, gradient, size)
            and _near(change.sum(), pulled @ along, size * float(along.norm()))
        )
        return right or self._differing("derivatives")

    def _plain(self, lockstep: LockstepChunks, chunk: Any) -> tuple[Tensor, Tensor]:
        def act(call: NormCall) -> Tensor:
            known = lockstep.known[call.place]
            moments = as_variable(known) + shares_of(call.x, known)
            return normalised(call.x, moments, known, call.weight, call.bias, call.eps)

        with torch.enable_grad(), BatchNormCalls(act):
            value = self.run(self.opened(chunk)[0])
            parts = torch.autograd.grad(
                value.sum(),
                list(self.leaves),
                allow_unused=True,
                materialize_grads=True,
            )
        return value.detach(), flat(parts)


def _nudged(known: Moments) -> Moments:
    """Return moments that are changed by a few roundings."""
    factor = 1 + 8 * torch.finfo(known.mean.dtype).eps
    return replace(known, mean=known.mean * factor, variance=known.variance * factor)


def _size(leaves: Sequence[Tensor]) -> float:
    return float(flat([leaf.detach() for leaf in leaves]).norm())


def _near(result: Tensor, wanted: Tensor, scale: float) -> bool:
    """Return whether derivatives agree, within a tolerance that allows for kinks."""
    limit = 10 * torch.finfo(wanted.dtype).eps ** 0.5 * scale
    return float((result - wanted).abs().max()) <= limit


def _directions(leaves: Sequence[Tensor]) -> Parts:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(
            leaf.shape, generator=generator, dtype=torch.float64, device="cpu"
        ).to(leaf)
        for leaf in leaves
    ]
