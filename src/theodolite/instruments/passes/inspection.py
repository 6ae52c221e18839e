"""A first look at a model: does it draw, does it repeat itself, do norms couple?"""

from collections.abc import Callable

import torch
from torch import Tensor

from theodolite.core import MeasurementError, NormMode, derive
from theodolite.instruments.model.randomness import (
    Draws,
    Randomness,
    check_repeats,
    reseed,
)
from theodolite.instruments.norms.batch_norm_calls import (
    BatchNormCalls,
    NormCall,
    batch_statistics,
    own_statistics,
)
from theodolite.instruments.passes.batches import split_batch
from theodolite.instruments.passes.grouping import Chunk
from theodolite.instruments.passes.prepared_model import PreparedModel


def norms_couple(
    prepared: PreparedModel,
    *,
    micro_batch: int | None,
    seed: int,
    randomness: Randomness,
) -> bool:
    """Run the first samples twice, refuse what cannot be measured; while sheltered.

    Args:
        prepared: The model and its data.
        micro_batch: Samples a pass at most.
        seed: Seed of whatever the model draws.
        randomness: Refuse models that draw, or fix what they draw by the seed.

    Returns:
        Whether norms take batch statistics, which couple samples.
    """
    first = prepared.items[0]
    if micro_batch is not None:
        first = split_batch(first, micro_batch)[0]
    probe = Chunk(batch=first, seed=derive(seed, "batch", 0))
    act = _statistics(micro_batch)
    prepared.renew()
    reseed(probe.seed)
    draws = Draws()
    with torch.no_grad(), BatchNormCalls(act) as calls:
        value = prepared.measure(prepared.model, first)
    if calls.calls and prepared.mode is NormMode.EVAL:
        raise MeasurementError(
            "a batch norm takes batch statistics also in eval mode: use norm mode "
            "'batch' or 'full'"
        )
    if draws.happened():
        _check_random(prepared, micro_batch, randomness)
    with torch.no_grad(), BatchNormCalls(act):
        check_repeats(value, prepared.run(probe))
    return calls.calls > 0


def _statistics(micro_batch: int | None) -> Callable[[NormCall], Tensor]:
    # A chunk may hold one sample, whose own statistics nobody asked for.
    return batch_statistics if micro_batch is None else own_statistics


def _check_random(
    prepared: PreparedModel, micro_batch: int | None, randomness: Randomness
) -> None:
    if randomness == "refuse":
        raise MeasurementError(
            "the model draws random numbers, so the loss is random: switch that "
            "off, or pass randomness='fixed' to fix what it draws by the seed"
        )
    joins = prepared.mode in (NormMode.FULL, NormMode.FROZEN)
    if micro_batch is not None or (joins and len(prepared.items) > 1):
        raise MeasurementError(
            "the model draws random numbers, and cutting or joining batches would "
            "draw others: leave out micro_batch, and pass one batch, or norm mode "
            "'batch' or 'eval'"
        )
