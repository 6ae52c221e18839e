"""One model on every rank: that of a single machine, or the same on several."""

from torch import nn

from theodolite.core import MeasurementError, NormMode
from theodolite.instruments.passes.streams import checksum
from theodolite.instruments.team.processes import Team


def unwrapped(model: nn.Module) -> nn.Module:
    """Return what was compiled, or spread over processes that compute gradients."""
    model = getattr(model, "_orig_mod", model)
    spread = isinstance(model, nn.parallel.DistributedDataParallel)
    return model.module if spread else model


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
