"""The Hessian of the loss by the parameters, as an operator."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress

import torch
from torch import Tensor

from theodolite.core import MeasurementError

from ..differentiate.derivatives import Curve, Parts, Sides, add, added, split, zeros
from ..differentiate.replay import NotRecorded, Replay, recordable
from ..distributed.processes import agreed
from ..model.process_state import counted
from ..passes.grouping import Chunk, Group, group_batches
from .parameter_operator import ParameterOperator

# Vectors multiplied at once, and the largest bytes of a graph and of those vectors for
# which that is faster: on one core 1.7 to 6 times below 3 MB and 8 MB, 0.8 times at
# graphs of 150 MB, and 1.0 times with vectors of 26 MB.
_AT_ONCE, _SMALL_GRAPH, _SMALL_BLOCK = 16, 2**22, 2**23
# Fewer are multiplied one by one: for densities four at once took 0.7 to 1.1 of the
# time, eight 0.6 to 0.9.
_FEWEST = 8
# Bytes of the graph of one part, if a product is split to save memory.
_PART = 2**26
# Largest relative difference between the losses of parts and of the whole: a hundred
# roundings of float32. Beyond, the graph is built as a whole.
_SAME = 100 * torch.finfo(torch.float32).eps


class Hessian(ParameterOperator):
    r"""The Hessian of the loss of all the data, as products with vectors.

    The gradient's graph is built once and each product pulls a vector back through it:
    exact, also through batch statistics. Where graphs do not fit in memory, or
    ``micro_batch`` is given, they are built again, a chunk at a time; batch statistics
    are then separate variables, so that chunks change nothing. All chunks go from norm
    to norm together where their activations fit in ``graph_bytes``, at about five
    gradients per product; else one after the other, at five gradients per norm.

    Args:
        model: Any module, never changed; or a :class:`Problem`.
        batches: Its data, where no :class:`Problem` was given.
        settings: Those of :class:`Problem`, such as ``loss``.

    Example:
        >>> from torch import nn
        >>> from theodolite.instruments import HalfSquareLoss
        >>> layer = nn.Linear(2, 1, bias=False, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
        >>> operator = Hessian(
        ...     layer, (x, x[:, :1]), loss=HalfSquareLoss(), norm_mode="batch"
        ... )
        >>> operator @ torch.tensor([1.0, 1.0])
        tensor([0.5000, 2.0000], dtype=torch.float64)
    """

    symmetric = True

    # Whether a product cannot be recorded, where that is wanted.
    _unrecorded = False

    @property
    def _replay(self) -> bool:
        return self.problem.replay and not self._unrecorded

    def split_once(self) -> tuple[int, int] | None:
        """Return samples per part and bytes of graphs of a single product in float64.

        On a CPU its graph is built in parts where samples are independent: that takes
        as long, and a part of the memory. They are independent if the loss of the
        parts equals that of the whole; it is not split by ``micro_batch``, which would
        compare more than the loss.
        """
        if (samples := self._samples_once()) is not None:
            with suppress(MeasurementError):  # the loss cannot be split
                parts, whole = self._loss(samples), self._loss()
                if abs(parts - whole) <= _SAME * abs(whole):
                    return samples, 3 * (self.once_bytes or 0)  # a half to spare
        return None

    @property
    def once_bytes(self) -> int | None:
        """Peak memory of a single product, which may be split into parts."""
        samples, peak = self._samples_once(), self.forecast_bytes
        if samples is None or peak is None:
            return peak
        return peak * samples // self._largest

    @property
    def _largest(self) -> int:
        return max((samples or 0 for samples in self.partition), default=0)

    def _samples_once(self) -> int | None:
        """Return the samples per part of a single product, None for no split."""
        free = self.randomness == "refuse" and not self._prepared.plan.norms
        here = self.device.type == "cpu" and not self.team.several
        if not (free and here and self.micro_batch is None and self.forecast_bytes):
            return None
        samples = max(1, self._largest * _PART // self.forecast_bytes)
        return samples if samples < self._largest else None

    def _loss(self, samples: int | None = None) -> float:
        """Return the loss of all the data, if no statistics are shared.

        Args:
            samples: Most samples per pass.
        """
        prepared, total = self._prepared, 0.0
        with prepared.session(products=0), torch.no_grad():
            groups = prepared.plan.groups if samples is None else self._cut(samples)
            for chunk in (chunk for group in groups for chunk in group.chunks):
                kept = prepared.graphs.get(chunk)
                fresh = chunk.weight * prepared.run(chunk) if kept is None else kept[1]
                total += float(fresh)
        return total

    def _cut(self, samples: int) -> list[Group]:
        groups = group_batches(
            self._prepared.items,
            mode=self.norm_mode,
            norms=False,
            micro_batch=samples,
            mass=self._prepared.measured.mass,
            seed=self.seed,
            joined=lambda: None,
            team=self.team,
        )
        return [group for group in groups if group.counts]

    def matvecs(self, vectors: Tensor) -> Tensor:
        """Multiply many vectors, several at once through a small graph."""
        vectors = self._as_rows(vectors)
        if self.at_once == 1 or len(vectors) < _FEWEST:
            return super().matvecs(vectors)
        self.passes += len(vectors)
        blocks = []
        with self.together():
            for some in vectors.split(self.at_once):
                with self.curves() as curves:
                    products = [curve.products(some) for curve in curves]
                counted(len(some) - 1)
                blocks.append(torch.stack(products).sum(0))
            return torch.cat(blocks)

    @property
    def at_once(self) -> int:
        """Number of products that are faster at once than one by one; 1 for none."""
        plan = self._prepared.plan
        kept = plan.retain and not self.coupled and not plan.offload
        alone = kept and not self.team.several and self.device.type == "cpu"
        known = self.torch_dtype in (torch.float32, torch.float64)
        vectors = _AT_ONCE * self.shape[1] * self.torch_dtype.itemsize
        small = 0 < (self.forecast_bytes or 0) <= _SMALL_GRAPH
        fits = small and vectors <= _SMALL_BLOCK
        return _AT_ONCE if alone and known and fits else 1

    def _block_matvec(
        self,
        rows: Sequence[int] | None,
        columns: Sequence[int] | None,
        vector: Tensor,
    ) -> Tensor:
        """Multiply a block, through the needed part of the graph only."""
        if self.coupled or rows is None or columns is None:
            return super()._block_matvec(rows, columns, vector)
        return self.product(vector, (rows, columns))

    def loss_and_gradient(self) -> tuple[Tensor, Tensor]:
        """Return the loss of all the data and its flat gradient."""
        prepared = self._prepared
        with prepared.session():
            total, value = (
                zeros(prepared.leaves),
                torch.zeros((), dtype=torch.float64, device="cpu"),
            )
            for group in prepared.plan.groups:
                if group.coupled:
                    losses, gradient = group.joint.gradient(group.weights)
                    pairs = zip(group.weights, losses, strict=True)
                    value += sum(weight * loss.cpu() for weight, loss in pairs)
                else:
                    curve, loss = self.curve(group, group.chunks[0])
                    gradient = curve.gradient
                    value += loss.cpu()
                add(total, gradient)
            self.passes += 1
            return self.team.sum_(value), self._summed(total)

    @contextmanager
    def curves(self) -> Iterator[Iterator[Curve]]:
        """Open the model and yield the loss of each chunk with its gradient's graph.

        Only where no batch statistics run over several passes.
        """
        with self._prepared.session():
            self._check_once()
            yield (
                self.curve(group, chunk)[0]
                for group in self._prepared.plan.groups
                for chunk in group.chunks
            )

    def curve(self, group: Group, chunk: Chunk) -> tuple[Curve, Tensor]:
        """Return a chunk's part of the loss as a curve, and its value; in a session.

        Only where no batch statistics run over several chunks.
        """
        prepared = self._prepared
        if chunk in prepared.graphs:
            return prepared.graphs[chunk]
        recording = recordable(self.device) if self._replay else nullcontext()
        with prepared.building():
            with recording:
                value = chunk.weight * prepared.run(chunk)
                idle = not value.requires_grad and prepared.depends(chunk)
                curve = Curve(value, prepared.leaves, constant=idle)
            if self._replay:
                self._record(curve)
        prepared.keep(group, chunk, (curve, value.detach()))
        return curve, value.detach()

    def _record(self, curve: Curve) -> None:
        try:
            if self.team.several:
                raise NotRecorded("several processes multiply together")
            if not self._prepared.plan.retain or self._prepared.plan.offload:
                raise NotRecorded("the graphs of all batches do not fit in memory")
            curve.replay = Replay(curve.product, self._prepared.leaves)
        except NotRecorded as reason:
            self._compute_again(str(reason))

    def _compute_again(self, reason: str) -> None:
        self._unrecorded = True
        warnings.warn(
            f"the product was not recorded: {reason}; it is computed again for each "
            "vector, which takes longer and gives the same",
            RuntimeWarning,
            stacklevel=2,
        )

    def product(self, vector: Tensor, only: Sides | None = None) -> Tensor:
        """Multiply one flat vector; that of a block is multiplied by the block."""
        prepared, layout = self._prepared, self.layout
        if only is not None:
            layout = tuple(layout[i] for i in only[1])
        tangents = list(split(layout, agreed(vector.detach(), self.team)).values())
        self.passes += 1
        if self._replay and only is None and (replayed := self._replayed(tangents)):
            return self._summed(replayed)
        with prepared.session():
            self._check_once()
            leaves = prepared.leaves
            chosen = leaves if only is None else [leaves[i] for i in only[0]]
            total, groups = [], prepared.plan.groups
            for group in groups:
                if group.coupled:
                    if self._replay:
                        self._compute_again("chunks share batch statistics")
                    term = group.joint.product(group.weights, tangents)
                else:
                    curve = self.curve(group, group.chunks[0])[0]
                    term = curve.product(tangents, only)
                    del curve  # its graph is freed before the next is built
                total = added(total, term, alone=len(groups) == 1)
            return self._summed(total or zeros(chosen))

    def _replayed(self, tangents: Parts) -> Parts | None:
        """Replay all batches without opening the model, since none of its code runs.

        Meanwhile the CPU checks whether the model changed.
        """
        if self.team.several or self._prepared.is_open:
            return None  # ranks must agree on whether anything changed
        chunks = [
            chunk for group in self._prepared.plan.groups for chunk in group.chunks
        ]
        kept = [self._prepared.graphs.get(chunk) for chunk in chunks]
        curves = [pair[0] for pair in kept if pair is not None and pair[0].replay]
        if len(curves) < len(chunks):
            return None
        product: Parts = []
        for curve in curves:
            term = curve.product(tangents)
            product = added(product, term, alone=len(curves) == 1)
        product = product or zeros(tangents)
        if not self._prepared.unchanged():
            return None
        counted()
        return product
