"""A member of a crew: its share of the data, and operators on it."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_map

from theodolite.core import TheodoliteError
from theodolite.instruments.operators.coarsest import Coarsest, unwatched
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.operators.twin import Several
from theodolite.instruments.passes.forecast import available_bytes
from theodolite.instruments.passes.sharing import span
from theodolite.instruments.passes.streams import is_one
from theodolite.instruments.team.crews import Seat
from theodolite.instruments.team.joining import join_group, leave_group
from theodolite.instruments.team.processes import Team


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to multiply by.

    Attributes:
        name: Of the operator, among all that are asked for.
        version: Of its model, which moves on.
        subject: Handle of its kind, model and settings.
        batches: Handles of its data.
        wanted: Names of all operators that are still asked for.
    """

    name: str
    version: int
    subject: Any
    batches: Sequence[Any]
    wanted: frozenset[str]


class Station:
    """Takes a seat and keeps the operators that are asked for.

    Args:
        seat: The place among the members.
    """

    def __init__(self, seat: Seat) -> None:
        # What handles stand for, and of which of them each operator is made.
        self._things: dict[Any, Any] = {}
        self._uses: dict[str, set[Any]] = {}
        self._sit(seat)

    def _sit(self, seat: Seat) -> None:
        self._seat = seat
        torch.set_num_threads(seat.threads)
        if seat.size > 1:
            join_group(seat.meeting, seat.rank, seat.size)
        self._kept: dict[str, tuple[int, Operator | None]] = {}
        self._teams: dict[int, Team] = {}

    def move(self, seat: Seat) -> None:
        """Take another seat, among others; models and data are kept.

        Operators are made anew, since all members make them together.
        """
        self._kept.clear()
        self._teams.clear()
        leave_group()
        self._sit(seat)

    def operator(self, order: Order) -> Operator | None:
        """Return the operator on this member's share, None where it has none."""
        for name in [name for name in self._kept if name not in order.wanted]:
            del self._kept[name]
        version, found = self._kept.get(order.name, (-1, None))
        if version != order.version:
            self._kept.pop(order.name, None)
            found = self._made(order)
            self._kept[order.name] = order.version, found
        return found

    def fetched(self, given: Any) -> Any:
        """Return what a handle stands for."""
        with unwatched():
            return self._seat.fetch(given)

    def _made(self, order: Order) -> Operator | None:
        size = min(self._seat.size, len(order.batches))
        team = self._team(size)
        mine: Sequence[Any] = ()
        if self._seat.rank < size:
            mine = order.batches[span(len(order.batches), team.rank, size, "batches")]
        self._keep_for(order, mine)
        if not mine:
            return None
        kind, model, settings = self._thing(order.subject)
        batches = _several([self._thing(handle) for handle in mine])
        return kind(model, batches, **settings, team=team)

    def _thing(self, handle: Any) -> Any:
        """Return what a handle stands for, fetched once."""
        if handle not in self._things:
            self._things[handle] = self.fetched(handle)
        return self._things[handle]

    def _keep_for(self, order: Order, batches: Sequence[Any]) -> None:
        """Let go what no operator that is still asked for is made of."""
        self._uses[order.name] = {order.subject, *batches} if batches else set()
        self._uses = {n: use for n, use in self._uses.items() if n in order.wanted}
        used = set().union(*self._uses.values())
        self._things = {h: thing for h, thing in self._things.items() if h in used}

    def _team(self, size: int) -> Team:
        """Return the first members as a team; all of them make it together, once.

        A group has threads of its own for as long as the process lives. All members
        have seen the same sizes, also where an operator was made on some of them only.
        """
        if size not in self._teams:
            self._teams[size] = self._new_team(size)
        return self._teams[size]

    def _new_team(self, size: int) -> Team:
        if self._seat.size == 1:
            return Team()
        if size == self._seat.size:
            return Team(True)
        group = dist.new_group(list(range(size)))
        return Team(group) if self._seat.rank < size else Team()


def described(station: Station, order: Order, watched: bool = False) -> dict[str, Any]:
    """Say what there is to know of an operator before its first product.

    Args:
        station: This member.
        order: Which operator.
        watched: Whether the coarsest type that it computes in is wanted too.
    """
    with Coarsest() if watched else nullcontext() as seen:
        found: Any = station.operator(order)
    if found is not None and seen is not None:
        # Kept with it, since it is made once, and may be asked for again.
        found.coarsest = max(seen.eps, getattr(found, "coarsest", 0.0))
    names = ("shape", "dtype", "symmetric", "norm_mode", "layout", "title", "coarsest")
    names = (*names, "micro_batch", "seed", "forecast_bytes", "reduction", "randomness")
    return {name: getattr(found, name) for name in names if hasattr(found, name)}


def free_bytes(station: Station, order: Order) -> int:
    """Return the memory that is free where an operator is, where it is least."""
    found: Any = station.operator(order)
    if found is None:
        return 0
    # The first of several answers, so that all must have told it what they have.
    team = getattr(found, "jacobian", found).team
    return -int(team.largest(-float(available_bytes(found.device))))


def way(station: Station, order: Order) -> str:
    """Say how products of an operator are taken here."""
    found: Any = station.operator(order)
    return "" if found is None else getattr(found, "jacobian", found).way


def way_reason(station: Station, order: Order) -> str:
    """Say why chunks of an operator take turns here."""
    found: Any = station.operator(order)
    return "" if found is None else getattr(found, "jacobian", found).way_reason


def separable(station: Station, subject: Any, batch: Any) -> bool:
    """Tell whether an operator on a few samples is also that of their parts.

    Args:
        station: This member.
        subject: Handle of the operator's kind, model and settings.
        batch: Handle of the samples.
    """
    kind, model, settings = station.fetched(subject)
    try:  # an operator of parts looks at that itself
        few = _several([station.fetched(batch)])
        kind(model, few, **{**settings, "micro_batch": 2})
    except (TheodoliteError, RuntimeError, TypeError, ValueError):
        return False
    return True


def applied(
    station: Station, order: Order, method: str, handles: Sequence[Any], *first: Any
) -> tuple[Any, int]:
    """Call a method of an operator; return its answer, and the passes it took.

    Args:
        station: This member.
        order: Which operator.
        method: Name of the method.
        handles: Of vectors, which follow the other arguments.
        first: Other arguments.
    """
    found: Any = station.operator(order)
    if found is None:
        return None, 0
    vectors = [station.fetched(handle).to(found.device) for handle in handles]
    before = found.passes
    answer = getattr(found, method)(*first, *vectors)
    here = tree_map(_at_home, answer)
    return here, found.passes - before


def _several(batches: list[Any]) -> Any:
    """Return batches as what is taken for them; a list of tensors would be one."""
    if len(batches) == 1 and is_one(batches[0]):
        return batches[0]
    return Several(batches, lambda batch: batch) if is_one(batches) else batches


def _at_home(part: Any) -> Any:
    return part.detach().cpu() if isinstance(part, torch.Tensor) else part
