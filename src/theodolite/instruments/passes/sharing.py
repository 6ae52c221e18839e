"""Each rank's share of data that all of them have."""

from theodolite.core import MeasurementError
from theodolite.instruments.model.objective import Batch
from theodolite.instruments.passes.batches import Batches, samples_in, slice_batch
from theodolite.instruments.passes.streams import is_one
from theodolite.instruments.team.processes import Team, as_team


def share_of(batches: Batches, team: Team | None) -> Batches:
    """Return the share of this rank: some of the batches, or samples of a single one.

    Shares follow one another rank after rank, so that together they are the data in
    its order. A single batch that is cut has statistics of its own in every part:
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
    """Return the places of one rank among so many, as even as can be.

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
