"""Each rank's share of the data, and checks that all ranks hold the same model."""

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError, NormMode

from ..distributed.processes import Team, as_team
from ..model.objective import Batch, samples_in, slice_batch
from ..model.reachable_state import norm_layers
from .batches import Batches
from .grouping import is_one
from .streams import checksum


def share_of(batches: Batches, team: Team | None) -> Batches:
    """Return the share of this rank: some of the batches, or samples of a single one.

    Shares follow one another rank after rank, so that together they are the data in
    its order. If a single batch is split, every part has different statistics:
    norm mode ``full`` takes those of the whole.

    Args:
        batches: A list of batches, or one batch, the same on every rank.
        team: The ranks; None for this process alone.

    Example:
        >>> share_of([("first",), ("second",)], None)
        [('first',), ('second',)]
    """
    team = as_team(team)
    if is_one(batches):
        return _samples_of(batches, team)
    if not isinstance(batches, list):
        raise MeasurementError(
            f"a {type(batches).__name__} cannot be shared out unread: pass list(…) of "
            "it, or give every rank a loader of its own over "
            "Subset(dataset, range(rank, len(dataset), size))"
        )
    return batches[span(len(batches), team.rank, team.size, "batches")]


def _samples_of(batch: Batch, team: Team) -> Batch:
    total = samples_in(batch)
    if total is None:
        raise MeasurementError(
            f"a batch of type {type(batch).__name__} cannot be cut, since its tensors "
            "share no first axis: pass a list of batches"
        )
    part = span(total, team.rank, team.size, "samples")
    return slice_batch(batch, part.start, part.stop)


def span(total: int, rank: int, size: int, what: str) -> slice:
    """Return the range of one rank among so many items, as even as possible.

    Example:
        >>> [span(5, rank, 2, "batches") for rank in range(2)]
        [slice(0, 3, None), slice(3, 5, None)]
    """
    if not total:
        raise MeasurementError(
            f"no {what} came, wanted is one a rank at least: look at what the data was "
            "made of"
        )
    if total < size:
        raise MeasurementError(
            f"{total} {what} came for {size} ranks, wanted is one a rank at least: "
            "start fewer ranks, or cut the data into more batches"
        )
    least, more = divmod(total, size)
    start = rank * least + min(rank, more)
    return slice(start, start + least + (rank < more))


def refuse_other_calls(
    team: Team, kind: str, mode: NormMode, chosen: Mapping[str, Tensor], *more: object
) -> None:
    """Refuse ranks that measure different things, before they wait for one another.

    Args:
        team: The ranks.
        kind: What is measured.
        mode: Statistics that norms use.
        chosen: Parameters by name.
        more: Other settings that must be equal on all ranks, as text.
    """
    if not team.several:
        return
    held = [(name, tuple(p.shape), str(p.dtype)) for name, p in chosen.items()]
    mark = hashlib.sha256(repr((kind, str(mode), held, more)).encode()).digest()
    if not team.alike(int.from_bytes(mark[:7], "big")):
        raise MeasurementError(
            f"{team.size} ranks ask for different things, this one for a {kind} of "
            f"{len(held)} parameters in norm mode {str(mode)!r}: make the same call on "
            "every rank, with the same operator, parameters, dtype, norm mode and "
            "reduction"
        )


def refuse_other_weights(model: nn.Module, mode: NormMode, team: Team) -> None:
    """Refuse ranks whose models differ in weights, or in statistics that count."""
    if not team.several:
        return
    held: list[Tensor] = [*model.parameters()]
    if mode is NormMode.EVAL:
        held += [*model.buffers()]
    if mode is NormMode.AS_IS:
        still = [norm for norm in norm_layers(model) if not norm.training]
        held += [buffer for norm in still for buffer in norm.buffers()]
        held.append(
            torch.tensor([module.training for module in model.modules()], device="cpu")
        )
    if not team.alike(checksum([tensor.detach() for tensor in held])):
        raise MeasurementError(
            f"the models of {team.size} ranks have different weights or modes, wanted "
            "is one model: load the same state_dict, or seed all ranks alike, and call "
            "train() and eval() on the same modules"
        )
