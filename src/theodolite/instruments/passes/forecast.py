"""Forecast the memory of a graph before it is built, and of other work."""

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from theodolite.core import ConfigError, MeasurementError, free_memory

from ..calls.listening import Listener
from ..differentiate.derivatives import zeros
from ..norms.batch_norm_calls import BatchNormCalls, own_statistics
from ..norms.coupling import MemoryBudget
from .batches import join_batches, samples_in, slice_batch, tensors_in
from .grouping import Chunk, partition_of
from .prepared_model import PreparedModel


def live_bytes(work: Callable[[], object], known: Iterable[Tensor]) -> list[int]:
    """Return the bytes alive after each operator of some work, on any device.

    Temporary memory inside kernels is not counted.

    Args:
        work: Function to run.
        known: Tensors that exist anyway, such as parameters.

    Example:
        >>> x = torch.zeros(4)  # of 4 bytes each
        >>> live_bytes(lambda: (x + 1) + (x + 2), [x])
        [16, 32, 48]
    """
    with _Counted(known) as counted:
        work()
    return counted.after


class _Counted(Listener):
    def __init__(self, known: Iterable[Tensor]) -> None:
        self.after: list[int] = []
        self._live = 0
        self._storages = {tensor.untyped_storage()._cdata for tensor in known}

    def on_operator(self, operator: Any, args: Any, kwargs: Any) -> Any:
        result = operator(*args, **kwargs)
        for part in tree_leaves(result):
            if isinstance(part, Tensor) and part.layout is torch.strided:
                self._count(part)
        self.after.append(self._live)
        return result

    def _count(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        place, size = storage._cdata, storage.nbytes()
        if place in self._storages:
            return
        self._storages.add(place)
        self._live += size
        weakref.finalize(storage, self._free, place, size).atexit = False

    def _free(self, place: int, size: int) -> None:
        self._storages.discard(place)
        self._live -= size


# Share of the free memory for a graph; the rest is for vectors and for
# the other work of the process.
_SHARE = 0.8
# At its peak a product holds the graph and temporary tensors. Measured on
# convolutional, recurrent and attention models on a CPU: 2.2 to 2.7 times the graph,
# which itself was forecast within 2 %.
_AT_PEAK = 2.7
# The same, for the bytes of tensors alive at the peak: it allows for temporary memory
# of kernels, and for fragmentation of the allocator.
_AROUND = 1.2
# Vectors that a step of a solver holds at its peak beside weights, basis and graph: the
# gradient, the vector that is multiplied, the product as it comes, is added up and is
# joined, and its copy. Measured on a transformer of 23 million parameters: 5.0.
IN_FLIGHT = 6


@dataclass
class Saved:
    """Memory that graphs keep alive.

    Attributes:
        bytes: Total bytes.
        fetched: Bytes read by a backward pass; a tensor counts each time it was saved.
        largest: Bytes of the largest tensor.
    """

    bytes: int = 0
    fetched: int = 0
    largest: int = 0


@contextmanager
def saved_tensors(known: Iterable[Tensor]) -> Iterator[Saved]:
    """Measure the memory that graphs built inside keep alive.

    Args:
        known: Tensors that exist anyway, such as parameters.
    """
    kept: dict[int, Tensor] = {}  # kept until the count is done, so no address repeats
    saved = Saved()
    with torch._C.DisableTorchFunction():
        owned = {tensor.untyped_storage().data_ptr() for tensor in known}

    def pack(tensor: Tensor) -> Tensor:
        place = tensor.untyped_storage().data_ptr()
        kept.setdefault(place, tensor.detach())
        if place not in owned:
            saved.fetched += tensor.numel() * tensor.element_size()
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield saved
    with torch._C.DisableTorchFunction():
        sizes = [
            tensor.untyped_storage().nbytes()
            for place, tensor in kept.items()
            if place not in owned
        ]
    saved.bytes, saved.largest = sum(sizes), max(sizes, default=0)


def predict_bytes(measured: Mapping[int, int], samples: int) -> int:
    """Extrapolate the graph of a few samples to all, as a constant plus a rate.

    Args:
        measured: Bytes of the graph for one or two small numbers of samples.
        samples: Number of samples to forecast for.

    Example:
        >>> predict_bytes({2: 120, 4: 140}, 1000)
        27270
    """
    (few, base), *others = measured.items()
    rate = base / few
    for more, larger in others:
        rate = (larger - base) / (more - few)
    return int(_AT_PEAK * (base + max(rate, 0.0) * (samples - few)))


def predict_peak(
    alive: Callable[[int], Sequence[int]], samples: int, *, at_most: int = 4
) -> int | None:
    """Extrapolate the peak of a product from few samples, operator by operator.

    Each is a constant plus a rate, since the largest of a few samples need not be the
    largest of all. None where the operators change with the samples.

    Args:
        alive: Bytes alive after each operator, for a given number of samples.
        samples: Number of samples to forecast for.
        at_most: Samples available for measuring.

    Example:
        >>> predict_peak(lambda n: [2000, 10 * n], 1000)
        12000
    """
    few, more = (1, 2) if samples < 3 <= at_most else few_samples(samples, at_most)
    if few == more:
        return None
    first, second = alive(few), alive(more)
    if len(first) != len(second):
        return None
    further = (samples - few) / (more - few)
    peak = max(a + (b - a) * further for a, b in zip(first, second, strict=True))
    return int(_AROUND * peak)


def few_samples(samples: int, at_most: int) -> tuple[int, int]:
    """Return two numbers of samples to measure, not many more than wanted.

    One alone is too few for batch norms of vectors.
    """
    return min(2, at_most), min(4, at_most, max(samples, 3))


def available_bytes(device: torch.device) -> int:
    """Return the free memory of a device, as reported by the system."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + idle
    return free_memory()


def budget(given: int | None, device: torch.device) -> int:
    """Return the memory limit of graphs: ``graph_bytes``, or most free memory."""
    if given is None:
        return int(_SHARE * available_bytes(device))
    return as_bytes("graph_bytes", given)


def as_bytes(name: str, value: object) -> int:
    """Return a memory limit as a number of bytes, or raise if it is not one.

    Args:
        name: Name of the argument.
        value: The given value.
    """
    if isinstance(value, float) and value.is_integer():  # such as 8e9
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise ConfigError(
            f"{name} is {value!r}: pass a whole number of bytes from 0 up, such as "
            "2**30"
        )
    return int(value)


def still_to_come(peak: int, *, held: bool) -> int:
    """Return the peak memory of a pass, minus a graph that is held already."""
    return int(peak * (1 - 1 / _AT_PEAK)) if held else peak


def float64_bytes(parameters: int, peak: int | None) -> int:
    """Return the memory of products of a float64 copy of a float32 model.

    Args:
        parameters: Numbers per vector.
        peak: Forecast of the model's own graph, if there is one.
    """
    return 8 * parameters * (1 + IN_FLIGHT) + 2 * (peak or 0)


def refuse_beyond(wanted: int, allowed: int, what: str, advice: str) -> None:
    """Raise an error if something would not fit in memory."""
    if wanted > allowed:
        raise MeasurementError(
            f"{what} takes about {wanted / 2**30:.3g} GiB, allowed are "
            f"{allowed / 2**30:.3g}: {advice}"
        )


# Share of the forecast from a graph's size that products take if counted one by one.
_AT_LEAST = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphMemory:
    """Forecasts graph memory by extrapolating from a few samples, in ``sheltered``.

    Attributes:
        prepared: The model and its data.
        allowed: Bytes that graphs may take.
    """

    prepared: PreparedModel
    allowed: int

    def joined(self, *, offload: bool = False) -> object | None:
        """Return all data as one batch, if it can be joined and its graph fits.

        Args:
            offload: Whether to keep the graph on the host, where it fits.
        """
        wanted = self.tightly(self.samples)
        fits = wanted is not None and wanted + self.copied() <= self.allowed
        return join_batches(list(self.prepared.items)) if fits or offload else None

    @property
    def samples(self) -> int:
        """Number of samples of all the data that can be counted."""
        return sum(count or 0 for count in partition_of(self.prepared.items))

    @property
    def on_gpu(self) -> bool:
        """Whether tensors take nearly all of the memory, as on a GPU."""
        return self.prepared.device.type == "cuda"

    def fits_together(self, sizes: Sequence[int], largest: int) -> bool:
        """Return whether the graphs of all chunks fit in memory.

        Args:
            sizes: Samples of each chunk.
            largest: Bytes of the graph of the largest.

        Raises:
            MeasurementError: If the largest alone does not fit.
        """
        refuse_beyond(
            largest,
            self.allowed,
            f"the graph of {max(sizes):,} samples",
            "pass micro_batch=… for fewer samples a pass, or raise graph_bytes",
        )
        return largest * sum(sizes) / max(sizes) <= self.allowed

    def fits(self, samples: int) -> bool:
        """Return whether the graph of so many samples is known to fit."""
        wanted = self.predict(samples)
        return wanted is not None and wanted <= self.allowed

    def room(self, largest: int | None) -> MemoryBudget:
        """Return the memory for chunks that run in lockstep.

        Args:
            largest: Bytes of the largest chunk's graph.
        """
        host = 0
        if self.prepared.device.type != "cpu":
            host = budget(None, torch.device("cpu"))
        return MemoryBudget(device=self.allowed, host=host, graph=largest)

    def predict(self, samples: int) -> int | None:
        """Return the forecast bytes of a product; None if a batch cannot be split."""
        most = samples_in(self.prepared.items[0]) or 0
        if not samples or not most:
            return None

        try:
            few = few_samples(samples, most)
            return predict_bytes({n: self.saved(n).bytes for n in few}, samples)
        except Exception:  # the model or loss accepts no fewer samples
            return None

    def tightly(self, samples: int) -> int | None:
        """Return the same forecast, closer if that can decide whether it fits.

        On a GPU memory is what tensors take, so that those of a product of a few
        samples, all with their own statistics, are counted one by one.
        """
        wanted = self.predict(samples)
        if wanted is None or not self.on_gpu:
            return wanted
        if _AT_LEAST * wanted <= self.allowed < wanted:
            return min(wanted, self.counted(samples) or wanted)
        return wanted

    def counted(self, samples: int) -> int | None:
        """Forecast the same from tensors alive in a product of a few samples."""

        def alive(count: int) -> list[int]:
            chunk, known = self._few(count)
            return live_bytes(lambda: self._product(chunk), known)

        try:
            most = samples_in(self.prepared.items[0]) or 1
            return predict_peak(alive, samples, at_most=most)
        except Exception:  # the same error, or tensors of an unknown kind
            return None

    def saved(self, count: int) -> Saved:
        """Return the memory that the graph of a few samples keeps."""
        chunk, known = self._few(count)
        prepared = self.prepared
        with saved_tensors(known) as saved:
            with BatchNormCalls(own_statistics):
                value = prepared.run(chunk, check=False)
            prepared.measured.build(value, prepared.leaves)
        return saved

    def copied(self) -> int:
        """Return the bytes that batches take again when they are joined."""
        first = self.prepared.items[0]
        here = sum(tensor.nbytes for tensor in tensors_in(first))
        several = len(self.prepared.items) > 1
        return here * self.samples // (samples_in(first) or 1) if several else 0

    def _few(self, count: int) -> tuple[Chunk, list[Tensor]]:
        """Return a few samples, and the tensors that exist anyway."""
        batch, model = self.prepared.items[0], self.prepared.model
        known = [*model.parameters(), *model.buffers(), *tensors_in(batch)]
        return Chunk(data=slice_batch(batch, 0, count)), known

    def _product(self, chunk: Chunk) -> object:
        measured, leaves = self.prepared.measured, self.prepared.leaves
        with BatchNormCalls(own_statistics):
            value = self.prepared.run(chunk, check=False)
        return measured.walk(measured.build(value, leaves), chunk, zeros(leaves))
