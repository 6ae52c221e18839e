"""One model on every rank: that of a single machine, or the same on several."""

import hashlib
from collections.abc import Mapping

from torch import Tensor, nn

from theodolite.core import MeasurementError, NormMode
from theodolite.instruments.passes.streams import checksum
from theodolite.instruments.team.processes import Team


def unwrapped(model: nn.Module) -> nn.Module:
    """Return what was compiled, or spread over processes that compute gradients."""
    model = getattr(model, "_orig_mod", model)
    spread = isinstance(model, nn.parallel.DistributedDataParallel)
    return model.module if spread else model


def refuse_other_calls(
    team: Team, kind: str, mode: NormMode, chosen: Mapping[str, Tensor], *more: object
) -> None:
    """Refuse ranks that measure different things, before they wait for one another.

    Args:
        team: The ranks.
        kind: What is measured.
        mode: Statistics that norms use.
        chosen: Parameters by name.
        more: What else has to be the same on all of them, as it is written.
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
    held = [*model.parameters()]
    if mode is NormMode.EVAL:
        held += [*model.buffers()]
    if not team.alike(checksum([tensor.detach() for tensor in held])):
        raise MeasurementError(
            f"the models of {team.size} ranks have different weights, wanted is one "
            "model: load the same state_dict, or seed all ranks alike"
        )
