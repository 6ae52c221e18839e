"""The whole tangent kernel of a batch, streamed, checked and certified."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError, NormMode, Status, Stopwatch
from theodolite.instruments.differentiate.own_passes import Measure
from theodolite.instruments.model.as_found import opened
from theodolite.instruments.model.objective import (
    Batch,
    checked_outputs,
    chosen_parameters,
    outputs_of,
)
from theodolite.instruments.model.reach import Reach
from theodolite.instruments.norms.batch_norm_calls import (
    BatchNormCalls,
    own_statistics,
    plain_statistics,
)
from theodolite.instruments.norms.full_statistics import Moments, frozen_statistics
from theodolite.instruments.norms.normalisation import (
    freeze_norm_layers,
    norm_layers,
    set_norm_layers,
    settle_dropout,
)
from theodolite.instruments.operators.graph_noise import GraphNoise
from theodolite.instruments.operators.tangent import TangentKernel
from theodolite.instruments.passes.announcing import announcing
from theodolite.instruments.passes.batches import (
    Batches,
    join_batches,
    refuse_two_alike,
)
from theodolite.instruments.passes.forecast import as_bytes
from theodolite.instruments.passes.one_model import (
    refuse_other_calls,
    refuse_other_weights,
    unwrapped,
)
from theodolite.instruments.passes.streams import read_batches
from theodolite.instruments.tangents.by_products import ProductWork
from theodolite.instruments.tangents.layer_sweep import one_width, plan
from theodolite.instruments.tangents.noise import kernel_noise
from theodolite.instruments.tangents.reading import DenseTangentKernel, spectrum_ends
from theodolite.instruments.tangents.work import KernelWork
from theodolite.instruments.team.processes import Team, as_team

# Where there is no finer type to compare with, so many roundings of the largest entry
# are allowed for, by choice.
_ROUNDINGS = 16


@announcing()
def tangent_kernel(
    model: nn.Module,
    batches: Batches,
    *,
    norm_mode: NormMode | str,
    params: Sequence[str] | None = None,
    trace_outputs: bool = False,
    certify: bool = True,
    matrix_bytes: int = 4 * 2**30,
    outputs: Callable[[nn.Module, Batch], Tensor] | None = None,
    team: Team | None = None,
) -> DenseTangentKernel:
    r"""Measure the tangent kernel $K = DF\,DF^\top$ of some data.

    Where samples do not act on one another, derivatives by the parameters of known
    layers come from what entered them and from as many backward passes as a sample has
    outputs; other parameters sample by sample. Through batch statistics every row takes
    a backward pass of its own. Only a slice of the Jacobian is held at a time. A random
    quadratic form of the result is compared with $\|DF^\top v\|^2$ from plain backward
    passes; where it disagrees the slower way is taken. Statistics of batches that ranks
    hold apart (``full``) are beyond any one graph, and every row takes a product.

    Args:
        model: Any module; left as found.
        batches: Inputs, a pair (inputs, …) or a mapping of keyword arguments, or a
            list or DataLoader of them. A list of tensors is one batch, as loaders
            make it of a pair; of two tensors alike it is refused.
        norm_mode: Statistics that normalisation layers use. But for ``batch`` through
            BatchNorm, how the data is split changes nothing.
        params: Names of parameters; all that require a gradient by default.
        trace_outputs: Sum over equal outputs, $K_{nm} = \sum_c K_{nc,mc}$.
        certify: Compute the eigenvalues and check that none is negative; without,
            they are NaN.
        matrix_bytes: Memory that the matrix and the work on it may take.
        outputs: ``outputs(model, batch) -> tensor``; the model's own by default.
        team: Who else holds batches, where this process holds its share of them. Rows
            are the outputs of all, rank after rank, and every rank has the whole.

    Returns:
        The reading.

    Example:
        >>> layer = nn.Linear(2, 1, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
        >>> tangent_kernel(layer, x, norm_mode="batch").matrix
        array([[ 6., 12.],
               [12., 26.]])
    """
    matrix_bytes = as_bytes("matrix_bytes", matrix_bytes)
    mode, watch, team = NormMode(norm_mode), Stopwatch(), as_team(team)
    with team.telling():
        model = unwrapped(model) if team.several else model
        named = chosen_parameters(model, params)
        chosen = list(named.values())
        refuse_other_calls(team, "tangent kernel", mode, named, trace_outputs)
        refuse_other_weights(model, mode, team)
        if outputs is None:
            refuse_two_alike(batches)
        given = tuple(read_batches(batches))
        pick = Measure(outputs or outputs_of)

        def operator(micro_batch: int | None) -> TangentKernel:
            return TangentKernel(
                model,
                batches,
                norm_mode=mode,
                params=params,
                outputs=outputs,
                micro_batch=micro_batch,
                team=team,
            )

        with (
            opened(model, careful=True, reach=Reach([model, outputs])) as found,
            BatchNormCalls(plain_statistics),
        ):
            found.lend_buffers()
            for parameter in model.parameters():
                parameter.requires_grad_(False)
            frozen: dict[nn.Module, Moments] = {}

            def run(batch: Batch) -> Tensor:
                found.lend_buffers()  # of a state that the last run moved
                freeze_norm_layers(frozen)
                return _checked(pick(model, batch))

            settle_dropout(model, mode)
            set_norm_layers(model, mode)
            norms = _takes_batch_statistics(
                lambda: pick.try_out(model, given[0], begin=found.lend_buffers),
                mode,
                team,
            )
            coupled = norms and mode is not NormMode.FROZEN
            apart = coupled and mode is NormMode.FULL and team.several
            if norms and mode is NormMode.FROZEN:
                layers = norm_layers(model)
                frozen |= frozen_statistics(layers, given, run, team)
            width = one_width(given, run, team) if apart else 0
            done: tuple[KernelWork | ProductWork, Tensor, str] | None = None
            if not apart:
                scenes = _scenes(given, mode, norms)
                sheet = plan(model, scenes, run, chosen, team)
                if coupled:
                    sheet = replace(sheet, units=[], rest=chosen)
                by_passes = KernelWork(
                    model, scenes, run, chosen, sheet, trace_outputs, matrix_bytes, team
                )
                done = (by_passes, *by_passes.kernel(coupled=coupled))
        if done is None:
            by_products = ProductWork(
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
        return _read(matrix, work, mode, method, certify, watch, noise)


def _takes_batch_statistics(
    forward: Callable[[], object], mode: NormMode, team: Team
) -> bool:
    """Say whether any batch norm does, be it a module or a function, on any rank."""
    with torch.no_grad(), BatchNormCalls(own_statistics) as calls:
        forward()
    if calls.calls and mode is NormMode.EVAL:
        raise MeasurementError(
            "a batch norm takes batch statistics also in eval mode: use norm mode "
            "'batch' or 'full'"
        )
    return team.largest(calls.calls) > 0


def _scenes(given: Sequence[Batch], mode: NormMode, norms: bool) -> Sequence[Batch]:
    """Return the batches to run; joined where statistics are those of all the data."""
    if len(given) == 1 or not norms or mode is not NormMode.FULL:
        return given
    joined = join_batches(given)
    if joined is None:
        raise MeasurementError(
            "batches of different shapes cannot be joined, which statistics of all the "
            "data want here: pass them as one, or use products of TangentKernel"
        )
    return [joined]


def _checked(found: object) -> Tensor:
    outputs = checked_outputs(found)
    if outputs.ndim == 0 or not outputs.numel() or not outputs.is_floating_point():
        raise MeasurementError(
            f"the outputs have shape {tuple(outputs.shape)} and type {outputs.dtype}: "
            "the tangent kernel wants real ones, samples along the first axis"
        )
    return outputs


def _read(
    matrix: Tensor,
    work: KernelWork | ProductWork,
    mode: NormMode,
    method: str,
    certify: bool,
    watch: Stopwatch,
    noise: GraphNoise | None,
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
        cost=watch.read(passes=work.passes),
        method=method,
    )
