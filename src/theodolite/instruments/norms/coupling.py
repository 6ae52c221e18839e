"""Choose how chunks that share statistics are swept, within the memory there is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from theodolite.core import MeasurementError
from theodolite.instruments.differentiate.parts import Parts, flat
from theodolite.instruments.norms.batch_norm_calls import BatchNormCalls, NormCall
from theodolite.instruments.norms.by_turns import ByTurns
from theodolite.instruments.norms.full_statistics import (
    FullStatistics,
    Moments,
    passing,
)
from theodolite.instruments.norms.given_moments import (
    as_variable,
    normalised,
    shares_of,
)
from theodolite.instruments.norms.in_step import InStep
from theodolite.instruments.norms.march import Open
from theodolite.instruments.norms.segments import at_work
from theodolite.instruments.norms.shelf import Shelf
from theodolite.instruments.norms.tape import NotOnTape
from theodolite.instruments.team.processes import Team

T = TypeVar("T")
# Roundings, and nudges of all moments by some, by which values of two passes differ.
_ROUNDED, _NUDGES = 1e4, 64
Coupled = InStep | ByTurns
# What is wrong with the model itself, rather than with its tape, is said by turns.
_NOT_IN_STEP = (NotOnTape, NotImplementedError, RuntimeError, MeasurementError)


@dataclass(frozen=True, kw_only=True)
class Room:
    """Memory for chunks that go from norm to norm.

    Attributes:
        device: For what they carry and what one of them works with, on the device.
        host: For what they carry, on the host.
        graph: What the largest chunk's whole graph takes, which is more than any one
            segment works with.
    """

    device: int
    host: int = 0
    graph: int | None = None

    def beside(self, computed: int) -> int:
        """Return what is left on the device beside a segment at work.

        Args:
            computed: Bytes of what it computes.
        """
        return max(self.device - at_work(computed, self.graph), 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Coupling:
    """What joins chunks that share batch statistics.

    Attributes:
        run: Runs the model on a chunk and returns what is measured.
        opened: Returns a chunk with its data in memory, and the tensors of it.
        leaves: Parameters to differentiate by.
        room: Memory for what chunks carry.
        check: Returns what was measured, or says why it is of no use.
        obstacles: Why the chunks last looked at do not go in step.
    """

    run: Callable[[Any], Tensor]
    opened: Open
    leaves: Sequence[Tensor]
    room: Room
    check: Callable[[Tensor], Tensor]
    obstacles: list[str] = field(default_factory=list, init=False)

    def of(self, chunks: Sequence[Any], team: Team) -> Coupled:
        """Return the chunks in step where that can be had, else by turns.

        Args:
            chunks: Those that are held here.
            team: Who else holds chunks, and goes the same way.
        """
        self.obstacles.clear()
        return self._in_step(chunks, team) or ByTurns(
            chunks,
            run=lambda chunk: self.check(self.run(chunk)),
            leaves=self.leaves,
            team=team,
            reason=next(iter(self.obstacles), "another process cannot go in step"),
        )

    def moments(self, chunks: Sequence[Any], team: Team) -> list[Moments]:
        """Return the moments of all calls, without derivatives.

        Args:
            chunks: Those that are held here.
            team: Who else holds chunks, and goes the same way.
        """
        found = self._tried(lambda: self._opened_in_step(chunks, team))
        if found is not None and found.carried_bytes[1] > self._left(found):
            found = None
        if team.alike(-1 if found is None else found.calls) and found is not None:
            values = self._found_moments(found, team)
            right = values is not None and self._tried(
                lambda: self._pass_alike(found, values, chunks)
            )
            if not team.largest(not right):
                return found.known
        return FullStatistics(chunks, self.run, team).known

    def _pass_alike(
        self, found: InStep, values: Sequence[Tensor], chunks: Sequence[Any]
    ) -> bool:
        """Say whether plain passes at these moments give the same for all chunks.

        Tapes are those of passes at the chunks' own moments, and a path may hang on
        these in ways that nobody sees.
        """
        for value, chunk in zip(values, chunks, strict=True):
            plain = self._passed(chunk, found.known)
            gap = float((value - plain).abs().max())
            if gap <= _ROUNDED * torch.finfo(plain.dtype).eps * float(
                plain.abs().max()
            ):
                continue
            # Where losses are tiny, they are the rounding of what is not.
            moved = self._passed(chunk, [_nudged(known) for known in found.known])
            if not gap <= _NUDGES * float((moved - plain).abs().max()):
                return self._differing("values")
        return True

    def _passed(self, chunk: Any, known: list[Moments]) -> Tensor:
        with torch.no_grad(), BatchNormCalls(passing(known)):
            return self.run(self.opened(chunk)[0])

    def _differing(self, what: str) -> bool:
        self.obstacles.append(f"plain passes at the same moments give other {what}")
        return False

    def _opened_in_step(self, chunks: Sequence[Any], team: Team) -> InStep:
        return InStep(
            chunks,
            run=self.run,
            opened=self.opened,
            leaves=self.leaves,
            team=team,
        )

    def _in_step(self, chunks: Sequence[Any], team: Team) -> InStep | None:
        found = self._tried(lambda: self._cut(chunks, team))
        if not team.alike(-1 if found is None else found.calls) or found is None:
            return None
        values = self._found_moments(found, team)
        right = values is not None and self._tried(
            lambda: (
                self._pass_alike(found, values, chunks)
                and self._right(found, found.dependent, chunks)
            )
        )
        if team.largest(not right):
            return None
        for value in values or []:
            self.check(value)
        return found

    def _cut(self, chunks: Sequence[Any], team: Team) -> InStep | None:
        """Return the chunks cut at their norms, None where that takes too much."""
        found = self._opened_in_step(chunks, team)
        carried, adjoints = found.carried_bytes
        left = self._left(found)
        shelf = self._shelf(carried, adjoints, left)
        if shelf is None:
            self.obstacles.append(
                f"chunks in step carry {carried + adjoints:,} bytes, and {left:,} are "
                "left"
            )
            return None
        found.shelf = shelf
        return found

    def _found_moments(self, found: InStep, team: Team) -> list[Tensor] | None:
        # Where others wait for this process it cannot turn back.
        if team.several:
            return found.find_moments()
        return self._tried(found.find_moments)

    def _tried(self, act: Callable[[], T]) -> T | None:
        try:
            return act()
        except _NOT_IN_STEP as error:
            said = str(error).splitlines() or [""]
            kind = "" if isinstance(error, NotOnTape) else f"{type(error).__name__}: "
            self.obstacles.append(f"{kind}{said[0]}")
            return None

    def _left(self, found: InStep) -> int:
        return self.room.beside(found.computed_bytes)

    def _shelf(self, carried: int, adjoints: int, left: int) -> Shelf | None:
        """Return where to keep what is carried, None where it fits nowhere."""
        if carried + adjoints <= left:
            return Shelf()
        fits = adjoints <= left and carried <= self.room.host
        return Shelf(host=True) if fits else None

    def _right(self, found: InStep, place: int, chunks: Sequence[Any]) -> bool:
        """Compare the derivatives of one chunk with those of a plain pass.

        Its moments move the others', whose own parts are held.
        """
        value, gradient = self._plain(found, chunks[place])
        alone, tangents = found.alone(place), _directions(self.leaves)
        pulled = flat(alone.pull([torch.ones_like(value)]))
        output, change = alone.push(tangents)[0]
        along, size = flat(tangents), float(gradient.norm())
        right = (
            _near(output, value, float(value.abs().max()) + size * _size(self.leaves))
            and _near(pulled, gradient, size)
            and _near(change.sum(), pulled @ along, size * float(along.norm()))
        )
        return right or self._differing("derivatives")

    def _plain(self, found: InStep, chunk: Any) -> tuple[Tensor, Tensor]:
        def act(call: NormCall) -> Tensor:
            known = found.known[call.place]
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
    """Return moments that are off by a few roundings."""
    factor = 1 + 8 * torch.finfo(known.mean.dtype).eps
    return replace(known, mean=known.mean * factor, variance=known.variance * factor)


def _size(leaves: Sequence[Tensor]) -> float:
    return float(flat([leaf.detach() for leaf in leaves]).norm())


def _near(found: Tensor, wanted: Tensor, scale: float) -> bool:
    """Say whether derivatives agree, which rounding may take across a kink."""
    limit = 10 * torch.finfo(wanted.dtype).eps ** 0.5 * scale
    return float((found - wanted).abs().max()) <= limit


def _directions(leaves: Sequence[Tensor]) -> Parts:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(leaf.shape, generator=generator, dtype=torch.float64).to(leaf)
        for leaf in leaves
    ]
