"""Cut, join and weigh the data so that its partition means what the norm mode says."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

import torch
from torch import Tensor

from theodolite.core import MeasurementError, NormMode, derive
from theodolite.instruments.model.objective import Batch
from theodolite.instruments.norms.batch_norm_calls import BatchNormCalls, NormCall
from theodolite.instruments.norms.coupling import Coupled
from theodolite.instruments.norms.full_statistics import Moments, moments_of
from theodolite.instruments.passes.batches import (
    check_micro_batch,
    join_batches,
    samples_in,
    slice_batch,
    split_batch,
)
from theodolite.instruments.passes.streams import Piece, StreamedBatches
from theodolite.instruments.team.processes import Team

Mass = Callable[[Batch, int], float]
# Makes a loss of what was measured and of its batch.
Judge = Callable[[Tensor, Batch], Tensor]
# Samples that are measured at once and in parts.
_FEW = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Chunk:
    """What one pass of the model takes.

    Attributes:
        data: The data, or where in a stream it is.
        weight: Factor on its loss in the loss of all the data.
        seed: Seed of its random numbers.
    """

    data: Batch | Piece
    weight: float = 1.0
    seed: int = 0

    @property
    def batch(self) -> Batch:
        """The data, loaded where it is not in memory."""
        return self.data.load() if isinstance(self.data, Piece) else self.data

    @property
    def samples(self) -> int | None:
        """Samples of the data."""
        kept = isinstance(self.data, Piece)
        return self.data.samples if kept else samples_in(self.data)

    def held(self) -> "Chunk":
        """Return the same with its data in memory."""
        return replace(self, data=self.batch)


@dataclass(kw_only=True, eq=False)
class Group:
    """Chunks that share batch statistics; with one chunk, torch takes them itself.

    Attributes:
        chunks: Those that are held here.
        team: Who else holds chunks of it.
        statistics: Theirs, where they run over several chunks, once measured.
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
        """Whether products take it: else its loss is 0, or 0/0.

        One that others hold too does, since its statistics count.
        """
        return self.team.several or any(chunk.weight for chunk in self.chunks)

    @property
    def weights(self) -> list[float]:
        """Factors of the chunks' losses."""
        return [chunk.weight for chunk in self.chunks]

    @property
    def joint(self) -> Coupled:
        """What moves the chunks together, once their statistics are measured."""
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
        micro_batch: Samples a chunk at most.
        mass: Share of a batch in the mean of all, None for a sum.
        seed: Root of the chunks' seeds.
        joined: Returns all data as one batch, or None if that cannot be.
        team: Who else holds batches; those of lower ranks come before these.
    """
    counts = team.gather(torch.tensor(len(items)))
    first = int(sum(counts[: team.rank]))
    parts = list(enumerate(_pieces(items, micro_batch), first))
    every = [(place, piece) for place, part in parts for piece in part]
    whole_set = norms and mode is NormMode.FULL
    if whole_set:
        whole = joined() if len(every) > 1 and micro_batch is None else None
        sets = [every if whole is None else [(first, whole)]]
    elif norms and mode is NormMode.BATCH:
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
    """Cut every batch; of a stream, say where the pieces are."""
    if not isinstance(items, StreamedBatches):
        return [
            [item] if micro_batch is None else split_batch(item, micro_batch)
            for item in items
        ]
    if micro_batch is None:
        return [[Piece(items, place)] for place in range(len(items))]
    check_micro_batch(micro_batch)
    found: list[list[Batch | Piece]] = []
    for place, samples in enumerate(items.samples):
        if samples is None:
            split_batch(items[place], micro_batch)  # which says why it cannot be cut
        starts = range(0, samples or 0, micro_batch)
        spans = [(start, min(start + micro_batch, samples or 0)) for start in starts]
        found.append([Piece(items, place, span) for span in spans])
    return found


def _weighed(sets: list[list[Chunk]], mass: Mass, team: Team) -> list[list[Chunk]]:
    """Give each chunk its share in the mean of all."""
    masses = [[mass_of(chunk.batch, mass) for chunk in part] for part in sets]
    here = torch.tensor(float(sum(map(sum, masses))), dtype=torch.float64)
    total = float(team.sum(here))
    if not total > 0:
        raise no_sample_counts()
    return [
        [replace(chunk, weight=m / total) for chunk, m in zip(*pair, strict=True)]
        for pair in zip(sets, masses, strict=True)
    ]


def no_sample_counts() -> MeasurementError:
    """Say that there is nothing to take a mean of."""
    return MeasurementError(
        "no sample counts in the loss: check the targets for some that are not ignored"
    )


def mass_of(batch: Batch, mass: Mass) -> float:
    """Return the share of a batch in the mean of all, or say why it has none."""
    samples = samples_in(batch)
    if samples is None:
        raise MeasurementError(
            f"the samples of a batch of type {type(batch).__name__} cannot be counted, "
            "so a mean over batches has no weights: pass tensors that share their "
            "first axis, or reduction='sum'"
        )
    return mass(batch, samples)


def is_separable(
    items: Sequence[Batch],
    run: Callable[[Chunk], Tensor],
    mass: Mass | None,
    judge: Judge | None,
    *,
    scalar: bool,
) -> bool:
    """Say whether a model and loss are a sum over samples, given batch statistics.

    A few samples are measured at once and in two parts, batch norms held at the
    statistics of all of them. This finds a reduction stated wrongly, and layers that
    couple samples in a way of their own.

    Args:
        items: The batches as given.
        run: Measures a chunk.
        mass: Share of a batch in the mean of all, None for a sum.
        judge: Makes the loss of what was measured and its batch, None where there is
            no loss.
        scalar: Whether a loss is measured, or outputs.
    """
    found = _few_that_count(items, mass if judge else None)
    if found is None:
        return True
    few, parts = found
    known: list[Moments] = []

    def record(call: NormCall) -> Tensor:
        known.append(moments_of(call.x))
        return call.by(known[-1].mean, known[-1].variance)

    def repeat(call: NormCall) -> Tensor:
        return call.by(known[call.place].mean, known[call.place].variance)

    with torch.no_grad():
        with BatchNormCalls(record):
            whole = run(Chunk(data=few))
        apart = []
        for part in parts:
            with BatchNormCalls(repeat):
                apart.append(run(Chunk(data=part)))
        flat = torch.cat([part.reshape(-1) for part in apart])
        if not scalar and _differ(whole.reshape(-1), flat):
            return False
        if judge is None:
            return True
        losses = [judge(*pair) for pair in zip(apart, parts, strict=True)]
        shares = [1.0] * len(parts)
        if mass is not None:
            masses = [mass_of(part, mass) for part in parts]
            shares = [one / sum(masses) for one in masses]
        pairs = zip(shares, losses, strict=True)
        both = torch.stack([share * loss for share, loss in pairs]).sum()
        return not _differ(judge(whole, few).reshape(-1), both.reshape(-1))


def _few_that_count(
    items: Sequence[Batch], mass: Mass | None
) -> tuple[Batch, list[Batch]] | None:
    """Return up to four samples, and the same in two parts that both count."""
    for item in chain(items, _joined(items)):
        samples = samples_in(item) or 0
        for start in range(0, samples - 1, _FEW):
            stop = min(start + _FEW, samples)
            for cut in range(start + 1, stop):
                spans = (start, cut), (cut, stop)
                parts = [slice_batch(item, *span) for span in spans]
                if mass is None or all(mass_of(part, mass) for part in parts):
                    return slice_batch(item, start, stop), parts
    return None


def _joined(items: Sequence[Batch]) -> Iterator[Batch]:
    """Yield the first batches as one, where each may hold a single sample."""
    joined = join_batches(list(islice(items, _FEW)))
    if joined is not None:
        yield joined


def not_separable() -> MeasurementError:
    """Return what is said of a model or loss that is no sum over samples."""
    return MeasurementError(
        "samples measured together and apart give different numbers, so cutting or "
        "joining batches would change the operator: state reduction='mean' or 'sum' as "
        "the loss has it, or pass one batch without micro_batch if the model couples "
        "samples other than by batch norm"
    )


def _differ(first: Tensor, second: Tensor) -> bool:
    if first.shape != second.shape:
        return True
    limit = 10 * torch.finfo(first.dtype).eps ** 0.5 * float(first.abs().max())
    return float((first - second).abs().max()) > limit
