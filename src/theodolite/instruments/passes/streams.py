"""Batches of a loader, the same on every read, and read when needed."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from theodolite.core import DelayInterrupt, Exclusive, MeasurementError

from ..model.objective import Batch, samples_in, slice_batch, tensors_in
from ..model.process_state import (
    generator_state,
    random_state,
    restore_generator,
    restore_random_state,
)


class StreamedBatches(Sequence[Batch]):
    """Batches of a loader, read again when needed, one at a time.

    Each reading starts from the random states of the first, the loader's own
    generators among them, so that a loader that shuffles gives one partition; and the
    random states of others are left alone. A batch that comes out differently is
    refused by its checksum.

    Args:
        loader: Can be iterated again and again.
        max_batches: How many to take at most.
    """

    def __init__(self, loader: Iterable[Batch], max_batches: int | None) -> None:
        self._loader, self._most = loader, max_batches
        self._generators = _generators(loader)
        with Exclusive():
            self._start = self._random_states()
        self._marks: list[int] = []
        self._samples: list[int | None] = []
        self._known = False
        self._place, self._current = -1, None
        self._iterator: Iterator[Batch] | None = None
        self._state: Any = self._start

    @property
    def samples(self) -> tuple[int | None, ...]:
        """Samples of each batch."""
        return tuple(self._samples[: len(self)])

    def first(self, count: int) -> "StreamedBatches":
        """Return at most so many batches of the same loader."""
        most = count if self._most is None else min(count, self._most)
        shorter = StreamedBatches(self._loader, most)
        shorter._start = shorter._state = self._start
        return shorter

    def __len__(self) -> int:
        if not self._known:
            for _ in self:
                pass
        return len(self._marks)

    def __iter__(self) -> Iterator[Batch]:
        place = 0
        while (entry := self._at(place)) is not None:
            yield entry[0]
            place += 1

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        entry = self._at(place + len(self) if place < 0 else place)
        if entry is None:
            raise IndexError(place)
        return entry[0]

    def _at(self, place: int) -> tuple[Batch] | None:
        """Return a batch in a tuple, as it may be None itself; None past the end."""
        if place != self._place or self._current is None:
            if place <= self._place or self._iterator is None:
                self._place, self._iterator, self._state = -1, None, self._start
            while self._place < place:
                if not self._advance():
                    return None
        return self._current

    def _advance(self) -> bool:
        """Read the next batch from the random states that the loader left."""
        self._current = None
        with Exclusive():
            outside = self._random_states()
            _restore(self._generators, self._state)
            try:
                if self._iterator is None:
                    self._iterator = iter(self._loader)
                full = self._most is not None and self._place + 1 >= self._most
                entry = () if full else tuple(_next(self._iterator))
                self._state = self._random_states()
            finally:
                _restore(self._generators, outside)
        if not entry:
            return self._end()
        self._place, self._current = self._place + 1, (entry[0],)
        self._note(entry[0])
        return True

    def _random_states(self) -> Any:
        return random_state(), [generator_state(g) for g in self._generators]

    def _end(self) -> bool:
        short = self._known and self._place + 1 < len(self._marks)
        self._known = True
        self._place, self._iterator = -1, None
        if short:
            raise _changed()
        if not self._marks:
            raise no_batches()
        return False

    def _note(self, batch: Batch) -> None:
        mark = checksum(batch)
        if self._place < len(self._marks):
            if mark != self._marks[self._place]:
                raise _changed()
        elif self._known:
            raise _changed()
        else:
            self._marks.append(mark)
            self._samples.append(samples_in(batch))


class Piece:
    """Some samples of one batch of a stream, loaded when needed.

    Args:
        stream: The batches.
        place: Index of the batch.
        span: First sample and the one past the last; all by default.
    """

    def __init__(
        self, stream: StreamedBatches, place: int, span: tuple[int, int] | None = None
    ) -> None:
        self._stream, self._place, self._span = stream, place, span

    @property
    def samples(self) -> int | None:
        """Number of samples."""
        if self._span is None:
            return self._stream.samples[self._place]
        return self._span[1] - self._span[0]

    def load(self) -> Batch:
        """Return the samples."""
        whole = self._stream[self._place]
        return whole if self._span is None else slice_batch(whole, *self._span)


def checksum(batch: Batch) -> int:
    """Return a number that changes with the values of a batch's tensors."""
    total = 0
    for tensor in tensors_in(batch):
        total = zlib.crc32(repr((tensor.dtype, tuple(tensor.shape))).encode(), total)
        plain = tensor.detach().cpu().contiguous().reshape(-1)
        raw: Any = plain.view(torch.uint8).numpy()
        total = zlib.crc32(raw, total)
    return total


def _generators(loader: Any) -> list[torch.Generator]:
    """Return the generators of a loader and its samplers."""
    batches = getattr(loader, "batch_sampler", None)
    holders = [loader, batches, getattr(loader, "sampler", None)]
    holders.append(getattr(batches, "sampler", None))
    candidates = [getattr(holder, "generator", None) for holder in holders]
    kept = {id(g): g for g in candidates if isinstance(g, torch.Generator)}
    return list(kept.values())


def _restore(generators: list[torch.Generator], states: Any) -> None:
    with DelayInterrupt():
        restore_random_state(states[0])
        for generator, state in zip(generators, states[1], strict=True):
            restore_generator(generator, state)


def _next(iterator: Iterator[Batch]) -> Iterator[Batch]:
    for batch in iterator:
        if samples_in(batch) != 0:
            yield batch
            return


def no_batches() -> MeasurementError:
    """Return the error for data without batches."""
    return MeasurementError("no batches with samples came: pass at least one")


def _changed() -> MeasurementError:
    return MeasurementError(
        "the data came out differently when it was read again, and products read it "
        "many times: switch off augmentation that no seed of torch, NumPy or Python "
        "fixes, or pass list(loader), which is read once"
    )
