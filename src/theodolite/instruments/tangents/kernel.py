"""The whole tangent kernel of a batch, its certificate and its result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.core import (
    Dims,
    Exclusive,
    MeasurementError,
    NormMode,
    Reading,
    Scalar,
    Status,
    Stopwatch,
    condition_of,
)

from ..differentiate.batch_norm_twice import own_statistics, plain_statistics
from ..differentiate.twice import BatchNormCalls
from ..distributed.processes import Team, as_team
from ..model.objective import (
    Batch,
    Outputs,
    check_devices,
    checked_outputs,
    outputs_of,
)
from ..model.process_state import settle_dropout, with_progress
from ..model.reachable_state import (
    ReachableState,
    chosen_parameters,
    norm_layers,
    unwrapped,
)
from ..model.restoring import opened
from ..norms.full_statistics import Moments, frozen_statistics
from ..norms.normalisation import freeze_norm_layers, norm_layers_as_is, set_norm_layers
from ..operators.jacobian import TangentKernel
from ..operators.rounding_noise import RoundingNoise
from ..passes.batches import Batches, join_batches, refuse_two_alike
from ..passes.forecast import as_bytes
from ..passes.grouping import read_batches
from ..passes.problem import (
    Measure,
    Model,
    Problem,
    problem_of,
    refuse_unknown,
    with_settings,
)
from ..passes.ranks import refuse_other_calls, refuse_other_weights
from .layer_sweep import one_width, plan
from .product_strategy import ProductStrategy, kernel_noise
from .strategies import LayerStrategy


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseTangentKernel(Reading):
    r"""The tangent kernel $DF\,DF^\top$ of some data, and its extreme eigenvalues.

    Attributes:
        matrix: Rows are (sample, output), samples slow; or samples alone, summed over
            equal outputs, if traced.
        matrix_error: Largest rounding error of an entry.
        largest: Largest eigenvalue.
        smallest: Smallest eigenvalue.
        eigenvalue_error: How far the true one is at most: that of a backward stable
            eigensolver plus the rounding of the matrix.
        condition: Their ratio; infinite and ``status`` ROUNDING where the smallest
            cannot be distinguished from 0.
        peak_bytes: Memory forecast for the call, which it keeps within.
        samples: Number of samples.
        outputs: Outputs of one sample.
        traced: Whether the matrix is summed over equal outputs.
    """

    matrix: Annotated[np.ndarray, Dims("row", "column")]
    matrix_error: Scalar
    largest: Annotated[float, Dims(error="eigenvalue_error")]
    smallest: Annotated[float, Dims(error="eigenvalue_error")]
    eigenvalue_error: Scalar
    condition: Scalar
    condition_error: Scalar
    peak_bytes: Annotated[int, Dims()]
    samples: int
    outputs: int
    traced: bool


def spectrum_ends(
    matrix: Tensor, rounding: float
) -> tuple[tuple[float, float, float, float, float], Status]:
    r"""Return the ends of the spectrum, their error and the condition number.

    Rounding moves $JJ^\top$ by $\varepsilon \|J\|_F^2 = \varepsilon \operatorname{tr}K$
    in norm, up to a factor near 1, and the eigensolver adds $\varepsilon n
    \lambda_{\max}$.
    """
    values = torch.linalg.eigvalsh(matrix).cpu().numpy()
    largest, smallest = float(values[-1]), float(values[0])
    error = rounding + float(np.finfo(np.float64).eps) * len(values) * largest
    if smallest < -error:
        raise MeasurementError(
            f"the tangent kernel has an eigenvalue {smallest:.2e}, below the "
            f"-{error:.2e} that rounding explains, though it is a Gram matrix: look "
            "for changing state in the model"
        )
    condition = condition_of(np.maximum(values, 0), quantile=0.0, rounding=error)
    status = Status.EXACT if condition.resolved else Status.ROUNDING
    ratio = condition.ratio if condition.resolved else float("inf")
    return (largest, smallest, error, ratio, condition.error), status


# Where there is no finer type to compare with, so many roundings of the largest entry
# are allowed for, by choice.
_ROUNDINGS = 16


class KernelSettings(TypedDict, total=False):
    """Settings of :class:`Problem` that a kernel of layers takes."""

    norm_mode: NormMode | str | None
    params: Sequence[str] | None
    outputs: Outputs | None
    max_batches: int | None
    team: Team | None


@with_settings
@with_progress()
def tangent_kernel(
    model: Model | Problem,
    batches: Batches | None = None,
    *,
    trace_outputs: bool = False,
    certify: bool = True,
    matrix_bytes: int = 4 * 2**30,
    **settings: Unpack[KernelSettings],
) -> DenseTangentKernel:
    r"""Measure the tangent kernel $K = DF\,DF^\top$ of some data.

    If samples are independent, derivatives by the parameters of known layers come from
    the layers' inputs and from one backward pass per output of a sample; other
    parameters are differentiated sample by sample. With batch statistics every row
    takes one backward pass. Only a slice of the Jacobian is held at a time. A random
    quadratic form of the result is compared with $\|DF^\top v\|^2$ from plain backward
    passes; if they disagree, the slower algorithm is used. If several ranks share
    statistics (``full``), no rank has the whole graph, and every row takes a product.

    Except for norm mode ``batch`` through BatchNorm, how the data is split changes
    nothing. Rows are the outputs of all ranks of a ``team``, and every rank has the
    whole.

    Args:
        model: Any module, never changed; or a :class:`Problem`, without ``batches``.
        batches: Inputs, a pair (inputs, …) or a mapping of keyword arguments, or a
            list or DataLoader of them. A list of tensors is one batch; two tensors of
            one shape are refused.
        trace_outputs: Sum over equal outputs, $K_{nm} = \sum_c K_{nc,mc}$.
        certify: Compute the eigenvalues and check that none is negative; without,
            they are NaN.
        matrix_bytes: Memory that the matrix and the work on it may take.
        settings: Those of :class:`Problem`, such as ``norm_mode`` and ``params``.

    Returns:
        The reading.

    Example:
        >>> layer = nn.Linear(2, 1, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
        >>> tangent_kernel(layer, x, norm_mode="batch").matrix
        array([[ 6., 12.],
               [12., 26.]])
    """
    refuse_unknown(tangent_kernel, settings)
    matrix_bytes = as_bytes("matrix_bytes", matrix_bytes)
    problem, watch = problem_of(model, batches, settings), Stopwatch()
    mode, team, outputs = problem.mode, as_team(problem.team), problem.outputs
    with Exclusive(), team.reporting_errors():
        network: nn.Module = unwrapped(problem.model) if team.several else problem.model
        named = chosen_parameters(network, problem.params)
        chosen = list(named.values())
        refuse_other_calls(team, "tangent kernel", mode, named, trace_outputs)
        refuse_other_weights(network, mode, team)
        if outputs is None:
            refuse_two_alike(problem.batches)
        given = tuple(read_batches(problem.batches, max_batches=problem.max_batches))
        check_devices(given, chosen[0].device)
        pick = Measure(outputs or outputs_of)

        def operator(micro_batch: int | None) -> TangentKernel:
            return TangentKernel(problem, norm_mode=mode, micro_batch=micro_batch)

        with (
            opened(
                network, careful=True, reach=ReachableState([network, outputs])
            ) as state,
            BatchNormCalls(plain_statistics),
        ):
            state.lend_buffers()
            for parameter in network.parameters():
                parameter.requires_grad_(False)
            frozen: dict[nn.Module, Moments] = {}

            def run(batch: Batch) -> Tensor:
                state.lend_buffers()  # of a state that the last run moved
                freeze_norm_layers(frozen)
                return _checked(pick(network, batch))

            settle_dropout(network, mode)
            set_norm_layers(norm_layers(network), mode)

            def first() -> object:
                state.lend_buffers()
                try:
                    with pick.trying_out() as run:
                        return run(network, given[0])
                except RuntimeError:
                    if not pick.differentiates:
                        raise
                    state.lend_buffers()  # its own backward failed without a graph
                    with pick.trying_out() as run:
                        return run(network, given[0])

            norms = _takes_batch_statistics(first, mode, team)
            coupled = norms and mode is not NormMode.FROZEN
            apart = coupled and mode is NormMode.FULL and team.several
            if norms and mode is NormMode.FROZEN:
                layers = norm_layers(network)
                frozen |= frozen_statistics(layers, given, run, team)
            width = one_width(given, run, team) if apart else 0
            done: tuple[LayerStrategy | ProductStrategy, Tensor, str] | None = None
            if not apart:
                scenes = _scenes(given, mode, norms)
                sheet = plan(network, scenes, run, chosen, team)
                if coupled:
                    sheet = replace(sheet, units=[], rest=chosen)
                by_passes = LayerStrategy(
                    network,
                    scenes,
                    run,
                    chosen,
                    sheet,
                    trace_outputs,
                    matrix_bytes,
                    team,
                )
                done = (by_passes, *by_passes.kernel(coupled=coupled))
        if done is None:
            by_products = ProductStrategy(
                operator(None), width, trace_outputs, matrix_bytes
            )
            done = (by_products, *by_products.kernel())
        work, matrix, method = done
        noise = None
        if matrix.dtype != torch.float64:
            noise = kernel_noise(
                lambda micro_batch: operator(None if coupled else micro_batch),
                matrix,
                work.width if trace_outputs else 1,
                team,
                # The matrix itself and a copy in float64 are there meanwhile.
                room=work.peak_bytes - matrix.numel() * (matrix.itemsize + 8),
            )
        return _read(network, matrix, work, mode, method, certify, watch, noise)


def _takes_batch_statistics(
    forward: Callable[[], object], mode: NormMode, team: Team
) -> bool:
    """Return whether any batch norm does, be it a module or a function, on any rank."""
    with torch.no_grad(), BatchNormCalls(own_statistics) as calls:
        forward()
    if calls.calls and mode is NormMode.EVAL:
        raise MeasurementError(
            "a batch norm takes batch statistics also in eval mode: use norm mode "
            "'batch' or 'full'"
        )
    return team.largest(calls.calls) > 0


def _scenes(given: Sequence[Batch], mode: NormMode, norms: bool) -> Sequence[Batch]:
    """Return the batches to run; one joined batch if norms use statistics of all."""
    if len(given) == 1 or not norms or mode is not NormMode.FULL:
        return given
    joined = join_batches(given)
    if joined is None:
        raise MeasurementError(
            "batches of different shapes cannot be joined, which statistics of all the "
            "data want here: pass them as one, or use products of TangentKernel"
        )
    return [joined]


def _checked(given: object) -> Tensor:
    outputs = checked_outputs(given)
    if outputs.ndim == 0 or not outputs.numel() or not outputs.is_floating_point():
        raise MeasurementError(
            f"the outputs have shape {tuple(outputs.shape)} and type {outputs.dtype}: "
            "the tangent kernel wants real ones, samples along the first axis"
        )
    return outputs


def _read(
    model: nn.Module,
    matrix: Tensor,
    work: LayerStrategy | ProductStrategy,
    mode: NormMode,
    method: str,
    certify: bool,
    watch: Stopwatch,
    noise: RoundingNoise | None,
) -> DenseTangentKernel:
    whole = matrix.double()
    eps = torch.finfo(matrix.dtype).eps
    trace = float(whole.diagonal().sum())
    ends, status = (float("nan"),) * 5, Status.EXACT
    off, entry = (
        _ROUNDINGS * eps * trace,
        _ROUNDINGS * eps * float(whole.diagonal().max()),
    )
    if noise is not None:
        off, entry = noise.norm, float(noise.rows.max())
    if certify:
        ends, status = spectrum_ends(whole, off)
    largest, smallest, error, ratio, ratio_error = ends
    return DenseTangentKernel(
        matrix=whole.cpu().numpy(),
        matrix_error=entry,
        largest=largest,
        smallest=smallest,
        eigenvalue_error=error,
        condition=ratio,
        condition_error=ratio_error,
        peak_bytes=work.peak_bytes,
        samples=work.samples,
        outputs=work.width,
        traced=work.traced,
        status=status,
        norm_mode=mode,
        norm_layers=norm_layers_as_is(model, mode),
        cost=watch.read(passes=work.passes),
        method=method,
    )
