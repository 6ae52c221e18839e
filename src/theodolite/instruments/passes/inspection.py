"""A first look at a model: does it draw, does it repeat itself, do norms couple?"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from theodolite.core import MeasurementError, NormMode, derive

from ..model.objective import Batch, check_finite
from ..model.randomness import Draws, check_repeats, reseed
from ..norms.batch_norm_calls import (
    BatchNormCalls,
    NormCall,
    batch_statistics,
    own_statistics,
)
from .batches import samples_in, split_batch
from .grouping import Chunk, Mass, mass_of, no_sample_counts
from .prepared_model import PreparedModel


def norms_couple(prepared: PreparedModel) -> bool:
    """Run the first samples twice, refuse what cannot be measured; while sheltered.

    Returns:
        Whether norms take batch statistics, which couple samples.
    """
    problem, micro_batch = prepared.problem, prepared.problem.micro_batch
    mass = prepared.measured.mass if prepared.measured.scalar else None
    first, counts = _first_that_counts(prepared.items, micro_batch, mass)
    if not prepared.team.largest(counts):
        raise no_sample_counts()
    probe = Chunk(data=first, seed=derive(problem.seed, "batch", 0))
    act = _statistics(prepared, micro_batch)

    def begin() -> None:
        prepared.renew()
        reseed(probe.seed)

    begin()
    draws = Draws()
    with torch.no_grad(), BatchNormCalls(act) as calls:
        value = prepared.measure.try_out(prepared.model, first, begin=begin)
        value = prepared.check(value) if counts else value
    if calls.calls and prepared.mode is NormMode.EVAL:
        raise MeasurementError(
            "a batch norm takes batch statistics also in eval mode: use norm mode "
            "'batch' or 'full'"
        )
    prepared.measure.differentiates |= calls.transformed
    if counts:
        check_finite(value)
    if draws.happened():
        _check_random(prepared)
    if counts:
        with torch.no_grad(), BatchNormCalls(act):
            check_repeats(value, prepared.run(probe))
    return calls.calls > 0


def _first_that_counts(
    items: Sequence[Batch], micro_batch: int | None, mass: Mass | None
) -> tuple[Batch, bool]:
    """Return the first samples on which the loss is a number, or any, and which."""
    for item in items:
        for part in _parts_of(item, micro_batch):
            if mass is None or samples_in(part) is None or mass_of(part, mass) > 0:
                return part, True
    return _parts_of(items[0], micro_batch)[0], False


def _parts_of(batch: Batch, micro_batch: int | None) -> Sequence[Batch]:
    """Return what passes take of a batch."""
    return [batch] if micro_batch is None else split_batch(batch, micro_batch)


def _statistics(
    prepared: PreparedModel, micro_batch: int | None
) -> Callable[[NormCall], Tensor]:
    # A chunk may hold one sample, whose own statistics nobody asked for; and so may a
    # batch where statistics are those of all.
    cut = prepared.joins or micro_batch is not None
    return own_statistics if cut else batch_statistics


def _check_random(prepared: PreparedModel) -> None:
    if prepared.problem.randomness == "refuse":
        raise MeasurementError(
            "the model draws random numbers, so the loss is random: switch that "
            "off, or pass randomness='fixed' to fix what it draws by the seed"
        )
    if prepared.problem.micro_batch is not None or prepared.joins:
        raise MeasurementError(
            "the model draws random numbers, and cutting or joining batches would "
            "draw others: leave out micro_batch, and pass one batch, or norm mode "
            "'batch' or 'eval'"
        )
