"""What a search for eigenvalues will take, before it takes it."""

from collections.abc import Sequence
from typing import Unpack, get_args

from torch import nn

from theodolite.core import NormMode, unknown_name
from theodolite.instruments.curvature.measured import Curvature, measured_by
from theodolite.instruments.model.objective import Loss
from theodolite.instruments.operators.loss_hessian import Hessian, HessianOptions
from theodolite.instruments.operators.operator import Operator
from theodolite.instruments.passes.batches import Batches
from theodolite.instruments.solvers.checks import check_count
from theodolite.instruments.solvers.eigenpairs import Ends, least_basis
from theodolite.instruments.solvers.fitting import MemoryForecast, forecast_of


def memory_of(
    operator: Operator,
    *,
    k: int = 1,
    ends: Ends = "both",
    vectors: int | None = None,
    seed: int = 0,
) -> MemoryForecast:
    """Return what a search on an operator will take; nothing is multiplied.

    Example:
        >>> import torch
        >>> from theodolite.instruments import MatrixOperator
        >>> found = memory_of(MatrixOperator(torch.eye(1000), symmetric=True), k=2)
        >>> found.basis_vectors, found.basis, found.placement
        (23, 92000, 'device')
    """
    del seed  # nothing is drawn
    check_count("k", k)
    if ends not in get_args(Ends):
        raise unknown_name("end", ends, get_args(Ends))
    if vectors is None:
        sides = 2 if ends == "both" else 1
        # The basis, its pending vector, the pairs that are found, and as many while
        # it is tested that none was missed.
        size = operator.shape[1]
        vectors = min(size, least_basis(k, sides)) + 1 + 2 * min(size, sides * k)
    check_count("vectors", vectors)
    return forecast_of(operator, vectors=vectors)


@measured_by(memory_of)
def memory_forecast(
    model: nn.Module,
    batches: Batches,
    *,
    loss: Loss,
    norm_mode: NormMode | str,
    k: int = 1,
    ends: Ends = "both",
    vectors: int | None = None,
    params: Sequence[str] | None = None,
    seed: int = 0,
    operator: Curvature = Hessian,
    **options: Unpack[HessianOptions],
) -> MemoryForecast:
    """Say what measuring a model's curvature will take, and where its basis fits.

    The graph's share is extrapolated from that of a few samples, which is built; no
    product is made. ``print`` says all of it in one sentence.

    Args:
        model: Any module, where it will be measured.
        batches: A pair (inputs, targets) or a mapping, or a list or DataLoader of them.
        loss: A loss of torch, or a function of outputs and targets, or of model and
            batch.
        norm_mode: Statistics that normalisation layers use.
        k: How many eigenvalues at each end are sought.
        ends: At which ends.
        vectors: Vectors that are kept: the fewest of a search for ``k`` by default;
            ``steps + 1`` for a density, up to a third of the products for a trace and
            two thirds for a diagonal, where a trace can do with none.
        params: Names of parameters; all that require a gradient by default.
        seed: Seed of whatever the model draws.
        operator: What is measured: ``Hessian``, ``GaussNewton``, ``Fisher`` or
            ``EmpiricalFisher``.
        options: Passed on to the operator, such as ``micro_batch``.

    Example:
        >>> import torch
        >>> layer = nn.Linear(100, 10)
        >>> batch = torch.randn(4, 100), torch.randn(4, 10)
        >>> given = {"loss": nn.MSELoss(), "norm_mode": "eval"}
        >>> found = memory_forecast(layer, batch, **given)
        >>> found.parameters, found.basis, found.placement
        (1010, 60600, 'device')
    """
    ...
