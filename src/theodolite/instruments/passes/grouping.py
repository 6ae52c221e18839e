"""Read the data; split, join and weight it so that it fits the norm mode."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from theodolite.core import (
    MeasurementError,
    NormMode,
    derive,
)

from ..distributed.processes import Team
from ..model.objective import Batch, samples_in
from ..norms.coupling import Coupled
from .batches import Batches, check_micro_batch, split_batch
from .streams import Piece, StreamedBatches, no_batches

Mass = Callable[[Batch, int], float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Chunk:
    """The data of one pass of the model.

    Attributes:
        data: The data, or its position in a stream.
        weight: Factor on its loss in the loss of all the data.
        seed: Seed of its random numbers.
    """

    data: Batch | Piece
    weight: float = 1.0
    seed: int = 0

    @property
    def batch(self) -> Batch:
        """The data, loaded if it is not in memory."""
        return self.data.load() if isinstance(self.data, Piece) else self.data

    @property
    def samples(self) -> int | None:
        """Samples of the data."""
        kept = isinstance(self.data, Piece)
        return self.data.samples if kept else samples_in(self.data)

    def held(self) -> "Chunk":
        """Return the chunk with its data in memory."""
        return replace(self, data=self.batch)


@dataclass(kw_only=True, eq=False)
class Group:
    """Chunks that share batch statistics; with one chunk, torch takes them itself.

    Attributes:
        chunks: Chunks that this process holds.
        team: Processes that hold its other chunks.
        statistics: Statistics over all chunks, if there are several, once measured.
    """

    chunks: tuple[Chunk, ...]
    team: Team = field(default_factory=Team)
    statistics: Coupled | None = None

    @property
    def coupled(self) -> bool:
        """Whether statistics run over several chunks."""
        return len(self.chunks) > 1 or self.team.several

    @property
    def counts(self) -> bool:
        """Whether products use it; otherwise its loss is 0, or 0/0.

        A group shared with other processes always counts, for its statistics.
        """
        return self.team.several or any(chunk.weight for chunk in self.chunks)

    @property
    def weights(self) -> list[float]:
        """Factors of the chunks' losses."""
        return [chunk.weight for chunk in self.chunks]

    @property
    def joint(self) -> Coupled:
        """The strategy that combines the chunks, once their statistics are measured."""
        if self.statistics is None:
            raise RuntimeError("statistics of several chunks before they were measured")
        return self.statistics


def group_batches(
    items: Sequence[Batch],
    *,
    mode: NormMode,
    norms: bool,
    micro_batch: int | None,
    mass: Mass | None,
    seed: int,
    joined: Callable[[], Batch | None],
    team: Team,
) -> list[Group]:
    """Return the groups of chunks that the passes take.

    Args:
        items: The batches as given.
        mode: Which statistics norms use.
        norms: Whether the model has norms that couple samples.
        micro_batch: Largest number of samples per chunk.
        mass: Share of a batch in the mean of all, None for a sum.
        seed: Root of the chunks' seeds.
        joined: Returns all data as one batch, or None if that is impossible.
        team: Processes with the other batches; those of lower ranks come first.
    """
    counts = team.gather(torch.tensor(len(items), device="cpu"))
    first = int(sum(counts[: team.rank]))
    parts = list(enumerate(_pieces(items, micro_batch), first))
    every = [(place, piece) for place, part in parts for piece in part]
    whole_set = norms and mode is NormMode.FULL
    if whole_set:
        whole = joined() if len(every) > 1 and micro_batch is None else None
        sets = [every if whole is None else [(first, whole)]]
    elif norms and mode.by_batch:
        sets = [[(place, piece) for piece in part] for place, part in parts]
    else:
        sets = [[entry] for entry in every]
    chunks = [
        [Chunk(data=data, seed=derive(seed, "batch", place)) for place, data in part]
        for part in sets
    ]
    if mass is not None and (sum(map(len, sets)) > 1 or team.several):
        chunks = _weighed(chunks, mass, team)
    shared = team if whole_set else Team()
    return [Group(chunks=tuple(part), team=shared) for part in chunks]


def _pieces(
    items: Sequence[Batch], micro_batch: int | None
) -> list[list[Batch | Piece]]:
    """Split every batch; for a stream, return the positions of the pieces."""
    if not isinstance(items, StreamedBatches):
        return [
            [item] if micro_batch is None else split_batch(item, micro_batch)
            for item in items
        ]
    if micro_batch is None:
        return [[Piece(items, place)] for place in range(len(items))]
    check_micro_batch(micro_batch)
    pieces: list[list[Batch | Piece]] = []
    for place, samples in enumerate(items.samples):
        if samples is None:
            split_batch(items[place], micro_batch)  # which raises if it cannot be split
        starts = range(0, samples or 0, micro_batch)
        spans = [(start, min(start + micro_batch, samples or 0)) for start in starts]
        pieces.append([Piece(items, place, span) for span in spans])
    return pieces


def _weighed(sets: list[list[Chunk]], mass: Mass, team: Team) -> list[list[Chunk]]:
    """Give each chunk its weight in the mean of all."""
    masses = [[mass_of(chunk.batch, mass) for chunk in part] for part in sets]
    here = torch.tensor(float(sum(map(sum, masses))), dtype=torch.float64, device="cpu")
    total = float(team.sum(here))
    if not total > 0:
        raise no_sample_counts()
    return [
        [replace(chunk, weight=m / total) for chunk, m in zip(*pair, strict=True)]
        for pair in zip(sets, masses, strict=True)
    ]


def no_sample_counts() -> MeasurementError:
    """Return the error for data without a sample that counts."""
    return MeasurementError(
        "no sample counts in the loss: check the targets for some that are not ignored"
    )


def mass_of(batch: Batch, mass: Mass) -> float:
    """Return the weight of a batch in the mean of all, or raise if it has none."""
    samples = samples_in(batch)
    if samples is None:
        raise MeasurementError(
            f"the samples of a batch of type {type(batch).__name__} cannot be counted, "
            "so a mean over batches has no weights: pass tensors that share their "
            "first axis, or reduction='sum'"
        )
    return mass(batch, samples)


def read_batches(
    batches: Batches, *, max_batches: int | None = None
) -> "Sequence[Batch]":
    """Return the batches as a sequence that stays the same.

    One batch is a tensor, a tuple such as (inputs, targets), a list of tensors, a
    mapping, or anything that cannot be iterated. Several are any other list, a
    DataLoader, or an iterable that can be iterated again; the latter two are never in
    memory as a whole, see :class:`StreamedBatches`. Of several, those without samples
    are left out.

    Args:
        batches: The data.
        max_batches: Largest number of batches, from the first.

    Example:
        >>> x, y = torch.zeros(4, 2), torch.zeros(4)
        >>> len(read_batches((x, y))), len(read_batches([(x, y), (x, y)]))
        (1, 2)
    """
    if max_batches is not None and (
        isinstance(max_batches, bool)
        or not isinstance(max_batches, int)
        or max_batches < 1
    ):
        raise MeasurementError(
            f"max_batches is {max_batches!r}: pass a whole number from 1 up, or None"
        )
    if isinstance(batches, StreamedBatches):
        return batches if max_batches is None else batches.first(max_batches)
    if is_one(batches):
        return (batches,)
    if isinstance(batches, Dataset) and not isinstance(batches, Iterable):
        raise MeasurementError(
            f"a {type(batches).__name__} holds samples, wanted are batches: wrap it in "
            "a DataLoader with a batch_size"
        )
    if isinstance(batches, Iterator):
        raise MeasurementError(
            f"a {type(batches).__name__} can be read only once, and products read the "
            "data again: pass list(…) of it, or the loader itself"
        )
    if isinstance(batches, DataLoader) and batches.batch_size is None:
        if batches.batch_sampler is None:
            raise MeasurementError(
                "the DataLoader has batch_size=None, so it yields samples: give it a "
                "batch_size"
            )
    if not isinstance(batches, list):
        return StreamedBatches(batches, max_batches)
    filled = [batch for batch in batches if samples_in(batch) != 0]
    if not filled:
        raise no_batches()
    return tuple(filled[:max_batches])


def partition_of(items: Sequence[Batch]) -> tuple[int | None, ...]:
    """Return the samples of each batch."""
    if isinstance(items, StreamedBatches):
        return items.samples
    return tuple(samples_in(item) for item in items)


def is_one(batches: Batches) -> bool:
    """Return whether one batch was given, or several."""
    if isinstance(batches, list):
        # A list of tensors is what the default collation of a DataLoader makes of a
        # pair, so it is one batch.
        return bool(batches) and all(isinstance(part, Tensor) for part in batches)
    if isinstance(batches, Tensor | tuple | Mapping | str):
        return True
    return not isinstance(batches, Iterable | Dataset)
