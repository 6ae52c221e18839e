"""One chunk through one segment: forwards with tangents, backwards with adjoints."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..differentiate.derivatives import filled, pull_back, pull_back_with_graph, zeros
from .full_statistics import Moments
from .segments import Segment

# By slot, with the moments at the head and the shares in the next ones as follows.
HEAD, TAIL = -2, -1
BySlot = dict[int, Tensor]


@dataclass(frozen=True, kw_only=True)
class SegmentPass:
    """A segment, with all tensors that it starts from.

    Attributes:
        segment: The segment.
        given: Values that it takes, parameters among them, and the moments at its head.
        known: Values of the moments before and after it.
        by: Slots to differentiate by.
    """

    segment: Segment
    given: Mapping[int, Tensor]
    known: Sequence[Moments | None]
    by: tuple[int, ...]

    def plain(self) -> BySlot:
        """Return all values."""
        with torch.no_grad():
            return self._run(self.given)

    def push(
        self, tangents: Mapping[int, Tensor], *, duals: bool
    ) -> tuple[BySlot, BySlot]:
        """Return values and changes of the outputs.

        Args:
            tangents: Changes of the inputs.
            duals: Whether to use forward-mode (dual) numbers, which some operators
                lack; else the derivative of a pull-back.
        """
        return self._by_duals(tangents) if duals else self._by_pulling(tangents)

    def pull(self, cotangents: Mapping[int, Tensor]) -> BySlot:
        """Return cotangents of the inputs, from those of the outputs."""
        return self._pulled(cotangents, self._fresh(), keep=False)[1]

    def pull_moving(
        self,
        cotangents: Mapping[int, Tensor],
        moving: Mapping[int, Tensor],
        tangents: Mapping[int, Tensor],
    ) -> tuple[BySlot, BySlot]:
        """Return the same, and its change along tangents of all inputs and cotangents.

        Args:
            cotangents: Cotangents of the outputs.
            moving: Their changes.
            tangents: Changes of the inputs.
        """
        fresh = self._fresh()
        out, pulled = self._pulled(cotangents, fresh, keep=True)
        outputs = [*pulled.values(), *(out[slot] for slot in moving)]
        along = [
            tangents.get(slot, torch.zeros_like(fresh[slot], requires_grad=False))
            for slot in pulled
        ]
        parts = pull_back(outputs, list(fresh.values()), [*along, *moving.values()])
        changes = dict(zip(fresh, parts, strict=True))
        return {slot: part.detach() for slot, part in pulled.items()}, changes

    def _run(self, given: Mapping[int, Tensor]) -> BySlot:
        return self.segment.run(given, given.get(HEAD), self.known)

    def _fresh(self) -> BySlot:
        """Return leaves to differentiate by; parameters are used directly."""
        return {slot: _leaf(self.given[slot]) for slot in self.by}

    def _pulled(
        self, cotangents: Mapping[int, Tensor], fresh: BySlot, *, keep: bool
    ) -> tuple[BySlot, BySlot]:
        with torch.enable_grad():
            out = self._run({**self.given, **fresh})
        slots = [slot for slot in cotangents if out[slot].requires_grad]
        variables = list(fresh.values())
        if not slots or not variables:
            return out, dict(zip(fresh, zeros(variables), strict=True))
        parts = pull_back_with_graph(
            [out[slot] for slot in slots],
            variables,
            [cotangents[slot] for slot in slots],
            keep=keep,
        )
        return out, dict(zip(fresh, filled(parts, variables), strict=True))

    def _by_duals(self, tangents: Mapping[int, Tensor]) -> tuple[BySlot, BySlot]:
        _load_duals()
        with forward_ad.dual_level(), torch.no_grad():
            given = dict(self.given)
            for slot, tangent in tangents.items():
                given[slot] = forward_ad.make_dual(given[slot].detach(), tangent)
            pairs = {
                slot: forward_ad.unpack_dual(tensor)
                for slot, tensor in self._run(given).items()
                if slot in self._out
            }
            values = {slot: pair.primal.detach() for slot, pair in pairs.items()}
            changes = {
                slot: pair.tangent.detach()
                for slot, pair in pairs.items()
                if pair.tangent is not None
            }
        return values, changes

    def _by_pulling(self, tangents: Mapping[int, Tensor]) -> tuple[BySlot, BySlot]:
        fresh = self._fresh()
        with torch.enable_grad():
            out = self._run({**self.given, **fresh})
        values = {slot: out[slot].detach() for slot in self._out}
        slots = [slot for slot in self._out if out[slot].requires_grad]
        if not slots or not tangents:
            return values, {}
        dummies = [torch.zeros_like(out[slot], requires_grad=True) for slot in slots]
        pulled = pull_back_with_graph(
            [out[slot] for slot in slots], [fresh[slot] for slot in tangents], dummies
        )
        changes = pull_back(pulled, dummies, list(tangents.values()))
        return values, dict(zip(slots, changes, strict=True))

    @property
    def _out(self) -> tuple[int, ...]:
        last = self.segment.tail is None
        return (*self.segment.outs, self.segment.tape.value if last else TAIL)


@cache
def _load_duals() -> None:
    """Make torch load its forward-mode code now, which warns on first use."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*torch.jit.script.* is")
        import_module("torch._decomp.decompositions_for_jvp")


def _leaf(tensor: Tensor) -> Tensor:
    own = tensor.requires_grad and tensor.is_leaf
    return tensor if own else tensor.detach().requires_grad_()
