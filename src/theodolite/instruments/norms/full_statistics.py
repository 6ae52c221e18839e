r"""Batch statistics over chunks that are never in memory together.

The two moments of every batch-norm call are separate variables, $s_k = S_k(\theta,
s_{<k})$, sums over samples. Given $s$ the chunks are independent, so the loss
$\ell(\theta, s)$ and the moments add up chunk by chunk, and the derivatives of
$\ell(\theta, s(\theta))$ follow from two triangular systems, with $A = \partial S /
\partial s$:

- tangents, first call to last: $\sigma_k = S_{k,\theta} v + \sum_{j<k} A_{kj}\sigma_j$;
- adjoints, last call to first: $\beta_k = b_k + \sum_{j>k} A_{jk}^\top \beta_j$.

Each takes one pass over the data per call: memory of one chunk, and time that grows
with the number of calls. A Hessian-vector product of a net with ten calls costs about
fifty gradients; ``lockstep`` costs about five, and memory for tensors that cross norms.

Notation: a call's moments are $m = E[x]$ and $q = E[(x - c)^2]$ with $c$ the mean's
number held constant, so that the variance $q - (m - c)^2$ cancels nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.instancenorm import _InstanceNorm

from theodolite.core import MeasurementError, NormMode

from ..differentiate.batch_norm_twice import NormCall
from ..differentiate.derivatives import Map, Parts, add, pull_back, zeros
from ..differentiate.twice import BatchNormCalls
from ..distributed.processes import Team
from ..model.process_state import settle_dropout
from ..model.reachable_state import norm_layers
from .normalisation import check_layer, freeze_norm_layers, set_norm_layers

# Of a chunk and the moments: tensors, cotangents on them, and the chunk's shares.
Source = Callable[[Any, Parts], tuple[Sequence[Tensor | None], Parts, Parts]]


@dataclass(frozen=True)
class Moments:
    """Values per channel, mean and variance of the input of a batch-norm call."""

    count: int
    mean: Tensor
    variance: Tensor

    def merge(self, other: "Moments") -> "Moments":
        """Return the moments of both sets (Chan et al. 1979), without cancellation."""
        if not self.count or not other.count:  # means of nothing are NaN
            return self if self.count else other
        count = self.count + other.count
        share = other.count / count
        gap = other.mean - self.mean
        mean = self.mean + gap * share
        variance = (1 - share) * self.variance + share * other.variance
        return Moments(count, mean, variance + gap.square() * share * (1 - share))


def merged_over(team: Team, moments: Sequence[Moments]) -> Moments | None:
    """Return the moments of all sets, those of other processes included.

    Args:
        team: Processes that have other sets of the same call.
        moments: Moments of each set here; empty if there was no call.
    """
    ends = team.largest(not moments), team.largest(bool(moments))
    if ends == (1.0, 0.0):
        return None
    if not moments or ends != (0.0, 1.0):
        raise other_path()
    merged = reduce(Moments.merge, moments)
    if not team.several:
        return merged
    counts = team.gather(torch.tensor(merged.count, device="cpu"))
    both = team.gather(torch.stack([merged.mean, merged.variance]))
    pairs = zip(counts, both, strict=True)
    return reduce(Moments.merge, [Moments(int(n), *part.unbind()) for n, part in pairs])


class Reached(BaseException):
    """Raised when a pass reaches a given call; no model should catch it."""


def moments_of(x: Tensor) -> Moments:
    """Return the moments of one input of batch norm, channels on axis 1."""
    x = x.detach()
    axes = [axis for axis in range(x.ndim) if axis != 1]
    count, mean = x.numel() // x.shape[1], x.mean(axes)
    # torch's own variance takes twice the time of the convolution before it.
    centred = x - mean.reshape([-1 if axis == 1 else 1 for axis in range(x.ndim)])
    return Moments(count, mean, centred.square_().mean(axes))


class FullStatistics:
    """Moments of every batch-norm call over several chunks, and their derivatives.

    Args:
        chunks: Pieces of the data.
        run: Runs the model on a chunk and returns the measured value.
        team: Who else holds chunks; sums over chunks go over all of them, except that
            of :meth:`pull`, which is this process's share.
    """

    def __init__(
        self,
        chunks: Sequence[Any],
        run: Callable[[Any], Tensor],
        team: Team | None = None,
    ) -> None:
        self._chunks, self._run, self._team = chunks, run, team or Team()
        self.known: list[Moments] = []
        with torch.no_grad():
            while (moments := self._next()) is not None:
                self.known.append(moments)

    def variables(self) -> Parts:
        """Return the moments as new leaves, one of shape (2, channels) per call."""
        return [
            torch.stack([moments.mean, moments.variance]).requires_grad_()
            for moments in self.known
        ]

    def forward(self, chunk: Any, variables: Parts) -> tuple[Tensor, Parts]:
        """Run a chunk under given moments; return its value and its own shares."""
        shares: Parts = []
        with BatchNormCalls(self._sharing(variables, shares, None)) as calls:
            value = self._run(chunk)
        if calls.calls != len(self.known):
            raise other_path()
        return value, shares

    def tangent(self, leaves: Parts, tangents: Parts) -> Parts:
        """Return the change of the moments along tangents of the parameters."""
        changes: Parts = []
        for place, moments in enumerate(self.known):
            change = torch.zeros_like(torch.stack([moments.mean, moments.variance]))
            for chunk in self._chunks:
                variables = self.variables()[:place]
                share = self._shares(chunk, variables, place)[place]
                if share.requires_grad:
                    change += Map(share, [*leaves, *variables]).push(
                        [*tangents, *changes]
                    )
            changes.append(self._team.sum_(change))
        return changes

    def solve(self, source: Source) -> Parts:
        r"""Return the adjoints $\beta$ of cotangents on the outputs of a source."""
        solved = zeros(self.variables())
        for place in reversed(range(len(self.known))):
            for chunk in self._chunks:
                solved[place] += self._adjoint(source, chunk, place, solved)
            self._team.sum_(solved[place])
        return solved

    def pull(self, leaves: Parts, source: Source) -> Parts:
        """Pull cotangents back to the parameters, directly and through the moments.

        All paths go in one pass: separately, cotangents that batch statistics keep
        small would grow from layer to layer, and cancel only at the end. The result is
        this process's share, to be summed over the team.
        """
        total, solved = zeros(leaves), self.solve(source)
        for chunk in self._chunks:
            add(total, self._pulled(source, chunk, leaves, solved))
        return total

    # A chunk's graph is freed when the function returns, before the next is built.

    def _adjoint(self, source: Source, chunk: Any, place: int, solved: Parts) -> Tensor:
        """Return a chunk's part of a call's adjoint, given those of later calls."""
        variables = self.variables()
        outputs, cotangents, shares = source(chunk, variables)
        later = slice(place + 1, None)
        return pull_back(
            [*outputs, *shares[later]],
            [variables[place]],
            [*cotangents, *solved[later]],
        )[0]

    def _pulled(
        self, source: Source, chunk: Any, leaves: Parts, solved: Parts
    ) -> Parts:
        """Return a chunk's part of the pulled-back cotangents, given all adjoints."""
        outputs, cotangents, shares = source(chunk, self.variables())
        return pull_back([*outputs, *shares], leaves, [*cotangents, *solved])

    def _next(self) -> Moments | None:
        """Return the moments of the first unknown call, or None at the end."""
        moments: list[Moments] = []

        def act(call: NormCall) -> Tensor:
            if call.place < len(self.known):
                known = self.known[call.place]
                return call.by(known.mean, known.variance)
            moments.append(moments_of(call.x))
            raise Reached

        for chunk in self._chunks:
            with _until_reached(), BatchNormCalls(act):
                self._run(chunk)
        if moments and len(moments) != len(self._chunks):
            raise other_path()
        return merged_over(self._team, moments)

    def _shares(self, chunk: Any, variables: Parts, last: int) -> Parts:
        """Run a chunk up to a call; return its shares in all moments so far."""
        shares: Parts = []
        with _until_reached(), BatchNormCalls(self._sharing(variables, shares, last)):
            self._run(chunk)
        return shares

    def _sharing(
        self, variables: Parts, shares: Parts, last: int | None
    ) -> Callable[[NormCall], Tensor]:
        def act(call: NormCall) -> Tensor:
            if call.place >= len(self.known):
                raise other_path()
            moments, x = self.known[call.place], call.x
            axes = [axis for axis in range(x.ndim) if axis != 1]
            shape = [-1 if axis == 1 else 1 for axis in range(x.ndim)]
            centred = x - moments.mean.reshape(shape)
            spread = centred.square().sum(axes)
            shares.append(torch.stack([x.sum(axes), spread]) / moments.count)
            if call.place == last:
                raise Reached
            mean, square = variables[call.place].unbind()
            return call.by(mean, square - (mean - moments.mean).square())

        return act


def frozen_statistics(
    norms: Sequence[nn.Module],
    chunks: Sequence[Any],
    run: Callable[[Any], Tensor],
    team: Team | None = None,
    find: Callable[[Sequence[Any], Team], list[Moments]] | None = None,
) -> dict[nn.Module, Moments]:
    """Return the moments over all chunks of every norm layer that is called.

    Args:
        norms: Layers whose statistics to return.
        chunks: Pieces of the data.
        run: Runs the model on a chunk.
        team: Who else holds chunks.
        find: Finds the moments of several chunks; by default one pass per call.
    """
    team = team or Team()
    order: list[nn.Module] = []
    # Instance norms have statistics per sample: nothing can be frozen.
    handles = [
        norm.register_forward_pre_hook(lambda module, _: order.append(module))
        for norm in norms
        if not isinstance(norm, _InstanceNorm)
    ]
    try:
        known = _known(chunks, run, team, find)
        _refuse_one_value(known)
        order.clear()
        with torch.no_grad(), BatchNormCalls(passing(known)):
            run(chunks[0])
    finally:
        for handle in handles:
            handle.remove()
    order = [norm for norm in order if norm.training or norm.running_mean is None]
    if len(set(order)) != len(order) or len(order) != len(known):
        raise MeasurementError(
            "a batch norm is applied more than once a pass, or as a function, so it "
            "has no one set of statistics to freeze: use 'batch', 'full' or 'eval'"
        )
    return dict(zip(order, known, strict=True))


def _known(
    chunks: Sequence[Any],
    run: Callable[[Any], Tensor],
    team: Team,
    find: Callable[[Sequence[Any], Team], list[Moments]] | None,
) -> list[Moments]:
    """Return all moments, in one pass if there is one chunk."""
    if len(chunks) > 1 or team.several:
        if find is not None:
            return find(chunks, team)
        return FullStatistics(chunks, run, team).known
    known: list[Moments] = []

    def act(call: NormCall) -> Tensor:
        known.append(moments_of(call.x))
        return call.by(known[-1].mean, known[-1].variance)

    with torch.no_grad(), BatchNormCalls(act):
        run(chunks[0])
    return known


def _refuse_one_value(known: Sequence[Moments]) -> None:
    if any(moments.count == 1 for moments in known):
        raise MeasurementError(
            "batch norm got one value a channel of all the data, which has no "
            "statistics: pass more samples"
        )


def passing(known: list[Moments]) -> Callable[[NormCall], Tensor]:
    """Normalise by known moments."""

    def act(call: NormCall) -> Tensor:
        if call.place >= len(known):
            raise other_path()
        return call.by(known[call.place].mean, known[call.place].variance)

    return act


@contextmanager
def _until_reached() -> Iterator[None]:
    try:
        yield
    except Reached:
        pass


def other_path() -> MeasurementError:
    """Return the error for chunks that do not call the same norms."""
    return MeasurementError(
        "the passes over the data met different batch norms, by a path that depends "
        "on the data or by activation checkpointing: pass all data as one batch"
    )


def apply_norm_mode(
    model: nn.Module,
    mode: NormMode,
    forward: Callable[[], object],
    team: Team | None = None,
    *,
    hold: bool = False,
) -> None:
    """Set every layer with running statistics for one batch.

    Must be called inside ``preserve``. Only those layers change mode, and under
    ``EVAL`` dropout; all others stay as found. ``FULL`` is ``BATCH`` here, since one
    batch is all the data given; under ``AS_IS`` nothing changes.

    Args:
        model: The model to set.
        mode: Which statistics to use.
        forward: Runs the model once on the batch; called under ``FROZEN`` or ``hold``.
        team: Processes whose samples also count in the statistics.
        hold: Whether to hold statistics of the batch constant, as ``FROZEN`` does, in
            the layers that take them.
    """
    settle_dropout(model, mode)
    set_norm_layers(norm_layers(model), mode)
    if mode is NormMode.FROZEN or (hold and mode is not NormMode.EVAL):
        for norm in norm_layers(model):
            if norm.training:
                check_layer(norm, NormMode.FROZEN)

        def run(_: object) -> Tensor:
            forward()
            return torch.empty(0, device="cpu")

        freeze_norm_layers(frozen_statistics(norm_layers(model), [None], run, team))
