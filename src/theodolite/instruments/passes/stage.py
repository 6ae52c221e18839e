"""A model, its data and its norm mode, set up to be differentiated again and again."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointError

from theodolite.core import MeasurementError, NormMode, derive
from theodolite.instruments.model.objective import Batch, chosen_parameters
from theodolite.instruments.model.preservation import preserve
from theodolite.instruments.model.randomness import (
    Draws,
    Randomness,
    check_randomness,
    check_repeats,
    reseed,
)
from theodolite.instruments.model.shelter import Fingerprint, Shelter
from theodolite.instruments.norms.batch_norm_calls import (
    BatchNormCalls,
    NormCall,
    batch_statistics,
    own_statistics,
)
from theodolite.instruments.norms.full_statistics import (
    FullStatistics,
    Moments,
    frozen_statistics,
)
from theodolite.instruments.norms.normalisation import (
    freeze_norm_layers,
    norm_layers,
    refuse_dropout,
    set_norm_layers,
)
from theodolite.instruments.passes import forecast
from theodolite.instruments.passes.batches import (
    Batches,
    check_devices,
    join_batches,
    read_batches,
    samples_in,
    slice_batch,
    split_batch,
    tensors_in,
)
from theodolite.instruments.passes.grouping import (
    Chunk,
    Mass,
    check_separable,
    group_batches,
)


@contextmanager
def _no_recomputing() -> Iterator[None]:
    # torch runs what it recomputes outside of the modes that replace operators.
    try:
        yield
    except CheckpointError as error:
        raise MeasurementError(
            "activation checkpointing recomputes batch norm or weight norm otherwise "
            "than at first: switch it off, and save memory with micro_batch=…"
        ) from error


class Stage:
    """The set-up that operators share.

    Args:
        model: Any module; a compiled one is unwrapped.
        batches: What :func:`read_batches` takes.
        measure: Runs the model on a batch; returns what is differentiated.
        build: Builds, of that and the leaves, the graph that products need.
        norm_mode: Statistics that normalisation layers use.
        params: Names of parameters; all that require a gradient by default.
        mass: Share of a batch in the mean of all, None for a sum.
        scalar: Whether a loss is measured, or outputs.
        micro_batch: Samples a pass at most, to save memory.
        max_bytes: Memory that graphs may take; most of what is free by default.
        seed: Seed of whatever the model draws.
        randomness: Refuse models that draw, or fix what they draw by the seed.
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Batches,
        *,
        measure: Callable[[nn.Module, Batch], Tensor],
        build: Callable[[Tensor, Sequence[Tensor]], object],
        norm_mode: NormMode | str,
        params: Sequence[str] | None,
        mass: Mass | None,
        scalar: bool,
        micro_batch: int | None = None,
        max_bytes: int | None = None,
        seed: int = 0,
        randomness: Randomness = "refuse",
    ) -> None:
        check_randomness(randomness)
        self.model = getattr(model, "_orig_mod", model)
        self.mode, self.seed, self.micro_batch = NormMode(norm_mode), seed, micro_batch
        self._measure, self._build = measure, build
        self._names = list(chosen_parameters(self.model, params))
        self._careful = False
        self._resolve()
        self.items = read_batches(batches)
        check_devices(self.items, self.device)
        self.partition = tuple(samples_in(item) for item in self.items)
        self._frozen: dict[nn.Module, Moments] = {}
        self._fingerprint: Fingerprint | None = None
        self.kept: dict[Any, Any] = {}
        self._room = forecast.budget(max_bytes, self.device)
        self._set_up(mass, scalar, randomness)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Open the model for passes; it is as found on the way out."""
        changed = self.follow()
        with self._shelter(), BatchNormCalls(batch_statistics), _no_recomputing():
            self._prepare()
            if changed:
                self._measure_statistics()
            yield

    def follow(self) -> bool:
        """Notice that the model or the data changed, and drop what was known."""
        if self._fingerprint is not None and self._fingerprint.matches(self.model):
            return False
        before = self.layout, self.dtype, self.device
        self._resolve()
        if (self.layout, self.dtype, self.device) != before:
            raise MeasurementError(
                "the model was moved, converted or given parameters of other shapes "
                "since the operator was made: make a new one"
            )
        data = [tensor for item in self.items for tensor in tensors_in(item)]
        running = self.mode is NormMode.EVAL
        spared = [] if running else norm_layers(self.model)
        self._fingerprint = Fingerprint(self.model, data, spared)
        self._frozen = {}
        self.kept.clear()
        return True

    def run(self, chunk: Chunk) -> Tensor:
        """Run a chunk from the state the model was found in; only in a session."""
        self._prepare()
        reseed(chunk.seed)
        return self._measure(self.model, chunk.batch)

    def _prepare(self) -> None:
        self._shelter.renew()
        set_norm_layers(self.model, self.mode)
        freeze_norm_layers(self._frozen)

    def _measure_statistics(self) -> None:
        """Find what norms need to know of all the data, at these parameters."""
        chunks = [chunk for group in self.groups for chunk in group.chunks]
        if self.mode is NormMode.FROZEN and self._norms:
            self._frozen = frozen_statistics(norm_layers(self.model), chunks, self.run)
        for group in self.groups:
            if group.coupled:
                group.statistics = FullStatistics(group.chunks, self.run)

    def _resolve(self) -> None:
        """Find the parameters by name, since a module may be given new ones."""
        chosen = chosen_parameters(self.model, self._names)
        leaf = next(iter(chosen.values()))
        if {(p.dtype, p.device) for p in chosen.values()} != {
            (leaf.dtype, leaf.device)
        }:
            raise MeasurementError(
                "the parameters are of several dtypes or on several devices, wanted "
                "is one: choose some with params=…, or convert the model"
            )
        if not leaf.is_floating_point():
            raise MeasurementError(
                f"the parameters are {leaf.dtype}, wanted are real floats: convert the "
                "model, for instance with double()"
            )
        self.leaves: list[Tensor] = list(chosen.values())
        self.layout = tuple((name, tuple(p.shape)) for name, p in chosen.items())
        self.dtype, self.device = leaf.dtype, leaf.device
        self._shelter = Shelter(self.model, chosen.values())
        self._shelter.careful = self._careful

    def _set_up(self, mass: Mass | None, scalar: bool, randomness: Randomness) -> None:
        if randomness == "refuse":
            refuse_dropout(self.model)
        with preserve(self.model):
            grads = [p.grad for p in self.model.parameters() if p.grad is not None]
            before = Fingerprint(self.model, grads)
            with self._shelter():
                self._inspect(randomness)
            self._careful = not before.matches(self.model)
            self._shelter.careful = self._careful
        with self._shelter():
            self.groups = group_batches(
                self.items,
                mode=self.mode,
                norms=self._norms,
                micro_batch=self.micro_batch,
                mass=mass,
                seed=self.seed,
                joined=self._joined,
            )
            whole = self.mode in (NormMode.FULL, NormMode.FROZEN)
            if self.micro_batch is not None or (whole and len(self.items) > 1):
                check_separable(self.items[0], self.run, mass, scalar)
            self._forecast()

    def _inspect(self, randomness: Randomness) -> None:
        """Run a few samples twice: is anything random, do norms couple samples?"""
        first = self.items[0]
        if self.micro_batch is not None:
            first = split_batch(first, self.micro_batch)[0]
        probe = Chunk(batch=first, seed=derive(self.seed, "batch", 0))
        self._prepare()
        reseed(probe.seed)
        draws = Draws()
        with torch.no_grad(), BatchNormCalls(self._act()) as calls:
            value = self._measure(self.model, first)
        self._norms = calls.calls > 0
        if self._norms and self.mode is NormMode.EVAL:
            raise MeasurementError(
                "a batch norm takes batch statistics also in eval mode: use norm mode "
                "'batch' or 'full'"
            )
        if draws.happened():
            self._check_random(randomness)
        with torch.no_grad(), BatchNormCalls(self._act()):
            check_repeats(value, self.run(probe))

    def _act(self) -> Callable[[NormCall], Tensor]:
        # A chunk may hold one sample, whose own statistics nobody asked for.
        return batch_statistics if self.micro_batch is None else own_statistics

    def _check_random(self, randomness: Randomness) -> None:
        if randomness == "refuse":
            raise MeasurementError(
                "the model draws random numbers, so the loss is random: switch that "
                "off, or pass randomness='fixed' to fix what it draws by the seed"
            )
        whole = self.mode in (NormMode.FULL, NormMode.FROZEN) and len(self.items) > 1
        if self.micro_batch is not None or whole:
            raise MeasurementError(
                "the model draws random numbers, and cutting or joining batches would "
                "draw others: leave out micro_batch, and pass one batch, or norm mode "
                "'batch' or 'eval'"
            )

    def _joined(self) -> Batch | None:
        """Return all data as one batch, if it can be joined and its graph fits."""
        wanted = self._predict(sum(size or 0 for size in self.partition))
        fits = wanted is not None and wanted <= self._room
        return join_batches(self.items) if fits else None

    def _forecast(self) -> None:
        """Decide whether graphs are kept, and refuse what does not fit."""
        sizes = [
            samples_in(chunk.batch) or 0
            for group in self.groups
            for chunk in group.chunks
        ]
        largest = self._predict(max(sizes))
        self.retain, self.forecast_bytes = self.micro_batch is None, largest
        if largest is None:
            return
        forecast.refuse_beyond(
            largest,
            self._room,
            f"the graph of {max(sizes):,} samples",
            "pass micro_batch=… for fewer samples a pass, or raise max_bytes",
        )
        total = largest * sum(sizes) / max(sizes)
        self.retain = self.retain and total <= self._room

    def _predict(self, samples: int) -> int | None:
        """Forecast the bytes of a graph; None where a batch cannot be cut."""
        batch = self.items[0]
        if not samples or not samples_in(batch):
            return None
        known = [*self.model.parameters(), *self.model.buffers()]
        known += [tensor for item in self.items for tensor in tensors_in(item)]

        def measure(count: int) -> int:
            chunk = Chunk(batch=slice_batch(batch, 0, count))
            return forecast.graph_bytes(lambda: self._grow(chunk), known)

        try:
            return forecast.predict_bytes(
                measure, samples, at_most=samples_in(batch) or 1
            )
        except (RuntimeError, ValueError, MeasurementError):
            return None  # a model that takes no fewer samples than it was given

    def _grow(self, chunk: Chunk) -> object:
        with BatchNormCalls(own_statistics):
            value = self.run(chunk)
        return self._build(value, self.leaves)
