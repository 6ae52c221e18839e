"""Jacobian of a block's output by its input, for any model."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from theodolite.core import Exclusive, MeasurementError, NormMode

from ..differentiate.batch_norm_twice import plain_statistics
from ..differentiate.derivatives import (
    can_batch,
    pull_back,
    pull_back_many,
    pull_back_with_graph,
)
from ..differentiate.twice import BatchNormCalls, differentiating
from ..distributed.processes import Team, agreed, as_team
from ..model.objective import Batch, Outputs, run_model
from ..model.process_state import counted
from ..model.reachable_state import ReachableState, unwrapped
from ..model.restoring import opened
from ..norms.full_statistics import apply_norm_mode
from ..norms.normalisation import norm_layers_as_is, norm_mode_of
from ..norms.shared_statistics import SharedStatistics
from ..passes.batches import refuse_two_alike
from ..passes.forecast import as_bytes
from ..passes.grouping import read_batches
from ..passes.problem import Problem, given_in, problem_of
from ..passes.ranks import refuse_other_weights
from .derivative_check import refuse_lost_graphs
from .operator import Operator
from .span import Block, linearise

# Cotangents pulled back at a time: 16 to 200 ran equally fast on a CPU.
CHUNK = 64


class BlockJacobian(Operator):
    r"""Jacobian of a block's outputs by its inputs, at the activations of a real batch.

    The model runs once in the norm mode; the graph between the block's two ends is
    kept and products go through it. $J^\top v$ is one backward pass and $Jv$ the
    derivative of $v \mapsto J^\top v$, pulled back once more: both are correct through
    batch statistics, where forward over reverse mode is not (torch 2.13). Rows are
    output units and columns input units, sample by sample.

    Coupled, train-mode BatchNorm lets each sample's output depend on every sample's
    input. Per sample (``coupled=False``), statistics are held at those of the batch:
    the Jacobian is block-diagonal and differs by rank ``coupling_rank`` at most.

    Over ranks, units are those of all samples, rank after rank. Every rank keeps the
    graph of its samples; under ``full`` statistics, and cotangents through them, are
    summed over all ranks.

    Args:
        model: Any module, never changed; or a :class:`Problem` of one batch, of which
            model, data, ``norm_mode``, ``outputs`` and ``team`` are used.
        batch: A tensor, a pair (inputs, targets) or a mapping of keywords.
        block: Name of a submodule, or of the first and the last of a span.
        norm_mode: Statistics that normalisation layers use, as for :class:`Problem`;
            ``full`` is ``batch`` here, since one batch is all the data, except over
            ranks, whose batches it joins.
        coupled: Whether samples depend on one another.
        outputs: ``outputs(model, batch)`` runs the model; by default it is called on
            the inputs.
        team: Processes that hold the other samples.
        checked: Whether samples are known to be independent; skips the check.

    Attributes:
        norm_mode: As given.
        block: As given.
        coupled: As given.
        team: Processes that multiply together.
        samples: Samples along the first axis of the block's input, on all ranks.
        input_shape: Shape of the activation entering the block, in this process.
        output_shape: Shape of the activation leaving it.
        own: Rows and columns that belong to this process.
        across: Whether samples of different ranks depend on one another.
        coupling_rank: Rank by which batch statistics couple samples at most: twice
            the channels, summed over the BatchNorm layers inside, under ``batch`` and
            ``full``, and under ``as_is`` over those in train mode; else 0.
        norm_layers: Names of norm layers by their mode, under ``as_is``.

    Example:
        >>> net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Tanh())
        >>> _ = nn.init.eye_(net[0].weight)
        >>> jacobian = BlockJacobian(
        ...     net, torch.zeros(1, 2), block=("0", "1"), norm_mode="eval"
        ... )
        >>> jacobian @ torch.tensor([1.0, 2.0])
        tensor([1., 2.])
    """

    def __init__(
        self,
        model: nn.Module | Problem,
        batch: Batch | None = None,
        *,
        block: Block,
        norm_mode: NormMode | str | None = None,
        coupled: bool = True,
        outputs: Outputs | None = None,
        team: Team | None = None,
        checked: bool = False,
    ) -> None:
        if isinstance(model, Problem):
            settings = {"norm_mode": norm_mode, "outputs": outputs, "team": team}
            problem = problem_of(model, batch, given_in(settings))
            norm_mode, outputs = problem.norm_mode, problem.outputs
            batch, team = _only_batch(problem), problem.team
        if batch is None:
            raise MeasurementError("no batch came: pass one, or a Problem of one batch")
        network: nn.Module = model.model if isinstance(model, Problem) else model
        self.norm_mode = norm_mode_of(network, norm_mode)
        self.block, self.coupled = block, coupled
        self.team = as_team(team)
        self.model, self.items, self.loss = network, [batch], None
        self._settings = {"block": block, "coupled": coupled, "outputs": outputs}
        self._dual: tuple[Tensor, Tensor | None] | None = None
        self._batched: bool | None = None
        with Exclusive(), self.team.reporting_errors():
            if outputs is None:
                refuse_two_alike(batch)
            if self.team.several:
                network = unwrapped(network)
                refuse_other_weights(network, self.norm_mode, self.team)
            self._run(network, batch, outputs or run_model)
            self._find_places()
            if not coupled and not checked:
                self._refuse_coupling()

    def _run(self, model: nn.Module, batch: Batch, run: Outputs) -> None:
        """Run the model once, and keep the graph of the block."""
        mode = self.norm_mode
        through = mode.by_batch or mode is NormMode.FULL
        self.norm_layers = norm_layers_as_is(model, mode)
        norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
        if mode is NormMode.AS_IS:
            norms = [m for m in norms if m.training or m.running_mean is None]
        hold = through and bool(norms) and not self.coupled
        # Each batch has its own statistics, on every rank.
        sharing = Team() if mode.by_batch else self.team
        shared = SharedStatistics(sharing)
        joined = sharing.several and mode is NormMode.FULL and not hold
        with opened(model, careful=True, reach=ReachableState([model, run])) as before:
            before.lend_buffers()
            with BatchNormCalls(shared if joined else plain_statistics):
                forward = lambda: run(model, batch)  # noqa: E731
                apply_norm_mode(model, mode, forward, sharing, hold=hold)
                linear = linearise(
                    model, self.block, forward, norms=norms, ranks=sharing.size
                )
        self._inputs, self._outputs = linear.inputs, linear.outputs
        self.input_shape = tuple(linear.inputs.shape)
        self.output_shape = tuple(linear.outputs.shape)
        self.coupling_rank = linear.norm_rank if through else 0
        if mode.by_batch:
            rank = torch.tensor(self.coupling_rank, device="cpu")
            self.coupling_rank = int(self.team.sum(rank))
        self.across = self.team.largest(shared.coupled) > 0
        self.torch_dtype, self.device = linear.inputs.dtype, linear.inputs.device

    def _find_places(self) -> None:
        """Find which units and samples of all belong to this process."""
        samples = self.input_shape[0] if self.input_shape else 1
        here = [self._outputs.numel(), self._inputs.numel(), samples]
        counts = torch.stack(self.team.gather(torch.tensor(here, device="cpu")))
        self._counts = counts.T.tolist()
        rows, columns, self.samples = counts.sum(0).tolist()
        first = counts[: self.team.rank].sum(0).tolist()
        self.shape = (rows, columns)
        self.own = (
            slice(first[0], first[0] + here[0]),
            slice(first[1], first[1] + here[1]),
        )

    def here(self) -> Self:
        """Return the Jacobian of the outputs of this process by its inputs.

        These are all its derivatives, unless samples depend on those of other ranks.
        """
        if not self.team.several:
            return self
        own = copy.copy(self)
        own.team, own.passes = Team(), 0
        own._find_places()
        return own

    @property
    def source(self) -> "BlockJacobian":
        """The operator itself, which holds the model."""
        return self

    def remaking(
        self, model: nn.Module, batch: Batch, *_: object
    ) -> Callable[[], Operator]:
        """Return a function that makes the operator of another model and batch."""
        return partial(
            BlockJacobian,
            model,
            batch,
            norm_mode=self.norm_mode,
            team=self.team,
            checked=True,
            **self._settings,
        )

    def product(self, vector: Tensor) -> Tensor:
        """Return $Jv$ for a flat direction of the input."""
        with self.team.reporting_errors():
            own = agreed(vector.detach(), self.team)[self.own[1]]
            return self.team.concatenate(self._pushed(own), self._counts[0])

    def transposed_product(self, vector: Tensor) -> Tensor:
        r"""Return $J^\top v$ for a flat cotangent of the output."""
        with self.team.reporting_errors():
            own = agreed(vector.detach(), self.team)[self.own[0]]
            return self.team.concatenate(self._pulled(own), self._counts[1])

    def _pushed(self, vector: Tensor) -> Tensor:
        self.passes += 1
        counted()
        with differentiating():
            dual, pulled = self._doubled()
            if pulled is None:
                return vector.new_zeros(self._outputs.numel())
            direction = vector.reshape(self.input_shape).to(pulled)
            (product,) = pull_back([pulled], [dual], [direction])
        return product.detach().reshape(-1).to(self.torch_dtype)

    def _pulled(self, vector: Tensor) -> Tensor:
        self.passes += 1
        counted()
        cotangent = vector.reshape(self.output_shape).to(self._outputs)
        with differentiating():
            (product,) = pull_back([self._outputs], [self._inputs], [cotangent])
        return product.detach().reshape(-1)

    def pull_back_block(self, cotangents: Tensor) -> Tensor:
        """Return the products of flat cotangents (k, outputs) with the Jacobian."""
        self.passes += len(cotangents)
        counted(len(cotangents))
        own = cotangents[:, self.own[0]]
        block = own.reshape(-1, *self.output_shape).to(self._outputs)
        with self.team.reporting_errors(), differentiating():
            if self._batched is None:
                can = can_batch(self._outputs, [self._inputs], by_rules=self.across)
                self._batched = not self.team.largest(not can)
            (products,) = pull_back_many(
                self._outputs,
                [self._inputs],
                block,
                batched=self._batched,
                by_rules=self.across,
            )
            parts = products.detach().reshape(len(block), -1)
            return self.team.concatenate(parts.T, self._counts[1]).T

    def dense(self, *, matrix_bytes: int = 4 * 2**30) -> np.ndarray:
        """Return the whole matrix in float64, many rows at a time."""
        matrix_bytes = as_bytes("matrix_bytes", matrix_bytes)
        height, width = self.shape
        if 8 * height * width > matrix_bytes:
            raise MeasurementError(
                f"the dense Jacobian of shape {self.shape} takes "
                f"{8 * height * width / 2**30:.3g} GiB, allowed are "
                f"{matrix_bytes / 2**30:.3g}: work with products, or raise matrix_bytes"
            )
        matrix = np.empty(self.shape)
        for start in range(0, height, CHUNK):
            stop = min(start + CHUNK, height)
            units = torch.arange(start, stop, device=self.device)
            matrix[start:stop] = self.rows(units).cpu().double().numpy()
        return matrix

    def rows(self, units: Tensor) -> Tensor:
        """Return the rows of some output units, by their indices."""
        cotangents = torch.zeros(
            len(units), self.shape[0], dtype=self.torch_dtype, device=self.device
        )
        cotangents[torch.arange(len(units), device=self.device), units] = 1
        return self.pull_back_block(cotangents)

    def _doubled(self) -> tuple[Tensor, Tensor | None]:
        r"""Return a dummy cotangent and the graph of $J^\top$ at it, made once."""
        if self._dual is None:
            dual = torch.zeros_like(self._outputs, requires_grad=True)
            (pulled,) = pull_back_with_graph([self._outputs], [self._inputs], [dual])
            depends = pulled is not None and pulled.requires_grad
            self._dual = dual, pulled if depends else None
            refuse_lost_graphs(self._outputs, [self._inputs])
        return self._dual

    def _refuse_coupling(self) -> None:
        """Check that no sample's output depends on another sample's input.

        Each rank runs a number of products that depends on its samples, so nothing may
        be summed over ranks meanwhile.
        """
        if self.across:
            raise MeasurementError(
                f"block {self.block!r} couples samples of {self.team.size} ranks by "
                "batch statistics that no BatchNorm module takes: use coupled=True"
            )
        why = self._coupling()
        if self.team.largest(why is not None):
            raise MeasurementError(
                why
                or f"block {self.block!r} couples samples of another rank: use "
                "coupled=True"
            )

    def _coupling(self) -> str | None:
        """Return a message that says how samples are coupled, None if they are not.

        Any two samples differ in a bit of their number, so cotangents on the samples
        with that bit set, and on the others, see every pair.
        """
        count = self.input_shape[0] if self.input_shape else 1
        if not self.output_shape or self.output_shape[0] != count:
            return (
                f"block {self.block!r} maps {self.input_shape} to {self.output_shape}, "
                "and per-sample Jacobians want samples along both first axes: use "
                "coupled=True"
            )
        numbers = torch.arange(count, device=self.device)
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randn(
            self.output_shape, generator=generator, dtype=torch.float64, device="cpu"
        )
        noise = drawn.to(self._outputs)
        for bit in range((count - 1).bit_length()):
            for side in (0, 1):
                inside = (numbers >> bit) & 1 == side
                cotangent = noise.clone()
                cotangent[~inside] = 0
                pulled = self._pulled(cotangent.reshape(-1)).reshape(self.input_shape)
                if bool(pulled[~inside].ne(0).any()):
                    return (
                        f"block {self.block!r} couples samples by other means than "
                        "the statistics of BatchNorm modules: use coupled=True"
                    )
        return None


def _only_batch(problem: Problem) -> Batch:
    """Return the batch of a problem, or raise if there are several."""
    items = read_batches(problem.batches, max_batches=problem.max_batches)
    if len(items) > 1:
        raise MeasurementError(
            f"the problem has {len(items)} batches, and a block is measured on one: "
            "pass dataclasses.replace(problem, max_batches=1)"
        )
    return items[0]
